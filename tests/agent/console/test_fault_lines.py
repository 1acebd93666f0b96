"""Faults that a kit prints as text."""

from __future__ import annotations

import pytest
from console_items import items_of


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"[00:00:01.000,000] <err> os: ***** BUS FAULT *****", "bus fault"),
        (b"E: Faulting instruction address (r15/pc): 0x00001234", "faulting instruction"),
        (b"E: Current thread: 0x20001000 (main)", "current thread"),
        (b"ASSERTION FAIL [x] @ WEST_TOPDIR/a.c:12", "ASSERTION FAIL [x] @ WEST_TOPDIR/a.c:12"),
        (b"FATAL ERROR: SecureFault", "FATAL ERROR: SecureFault"),
        (b"Faulting instruction address = 0xae42714c", "faulting instruction"),
        (b"Current thread ID = 0x2000a98c", "current thread"),
        (b"[   12.3] Kernel panic - not syncing: x", "Kernel panic - not syncing: x"),
    ],
)
def test_the_text_of_a_crash_is_recognised(line, what):
    _, fault = items_of(line)
    assert fault.what == what
