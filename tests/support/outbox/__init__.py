"""The outbox: on a clock that the test moves, damaged, on full disks, after power cuts."""
