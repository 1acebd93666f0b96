"""Core dumps of the device SDK."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from agent.observability.coredumps.device_coredump import parse_device_coredump


@given(st.binary(max_size=100).map(lambda body: b"CORE\x02\0\0\0" + body) | st.binary(max_size=40))
@example(b"CORE\x02\0\0\0\x1c\0\0\0DUMP" + bytes(12))
def test_any_bytes_are_a_device_core_dump_or_an_error(data):
    with suppress(ValueError):
        assert parse_device_coredump(data).size <= len(data)
