"""Faults that a kit prints as text, and the lines of which one start of it is made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.fault_lines import BOOT_S, FaultText, RestartCounter
from tests.support.dumps.console_items import items_of


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


def test_the_address_of_a_secure_fault_is_that_of_its_frame():
    lines = ["FATAL ERROR: SecureFault", "        LR:   0x00044181"]
    lines += ["        PC:   0x0003D700", "        xPSR: 0x61000000"]
    faults = [one for one in items_of("\n".join(lines).encode()) if isinstance(one, FaultText)]
    assert [(one.address, one.first) for one in faults] == [(None, True), (0x3D700, False)]


BOOTLOADER = "*** Booting MCUboot v2.1.0-dev ***"
SYSTEM = "*** Booting nRF Connect SDK v3.1.1 ***"
KERNEL = "*** Using Zephyr OS v4.1.99 ***"
FAULT, INIT, READY = "#XMODEM: FAULT,0x1,0x2", "#XMODEM: INIT,0", "Ready"

STARTS = {
    "an AT host without banners on its AT port": [BOOTLOADER, SYSTEM, KERNEL],
    "Serial Modem on one port": [BOOTLOADER, SYSTEM, READY],
    "Serial Modem whose banners come late, over the other port": [READY, BOOTLOADER, SYSTEM],
    "two stages with one banner": [SYSTEM, SYSTEM, READY],
    "a modem that faults": [FAULT, INIT],
    "a modem whose fault restarts the application": [FAULT, BOOTLOADER, SYSTEM, READY],
    "a modem that starts with the application": [SYSTEM, READY, INIT],
}


@pytest.mark.parametrize("lines", STARTS.values(), ids=STARTS)
def test_a_start_is_one_however_many_lines_tell_of_it(lines):
    restarts = RestartCounter()
    assert [restarts.is_new(line, 100.0 + at / 10) for at, line in enumerate(lines)] == [
        True,
        *[False] * (len(lines) - 1),
    ]


@pytest.mark.parametrize(
    "lines", [[READY, READY], [BOOTLOADER, READY, BOOTLOADER, READY], [FAULT, FAULT]]
)
def test_a_kit_that_was_up_and_says_so_again_has_restarted_again(lines):
    restarts = RestartCounter()
    for line in lines:
        restarts.is_new(line, 100.0)
    assert restarts.count == 2


def test_the_end_of_a_fault_belongs_to_it_however_late_it_comes():
    restarts = RestartCounter()
    assert restarts.is_new(FAULT, 0.0)
    assert not restarts.is_new(INIT, 50.0)
    assert restarts.is_new(INIT, 100.0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(STARTS.values())), st.floats(min_value=BOOT_S, max_value=1e6)
        ),
        max_size=20,
    )
)
def test_as_many_restarts_are_counted_as_there_were(starts):
    restarts, now = RestartCounter(), 0.0
    for lines, pause_s in starts:
        for line in lines:
            restarts.is_new(line, now)
        now += pause_s
    assert restarts.count == len(starts)
