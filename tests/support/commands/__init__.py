"""Programs as people run them: ours, others' and installed ones, at terminals or without."""
