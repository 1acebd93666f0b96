"""The kit runs what is scheduled at its time, and clears it at a restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.virtual.kit import VirtualKit
from tests.support.modem.virtual_modems import UNIX_TIME, ask, switched_on


def kit() -> VirtualKit:
    return switched_on().kit


@given(delays=st.lists(st.floats(0, 100), max_size=10), cancelled=st.sets(st.integers(0, 9)))
def test_actions_run_in_the_order_of_their_times_but_those_that_were_cancelled(
    delays: list[float], cancelled: set[int]
) -> None:
    modem = kit()
    ran: list[int] = []
    numbers = [
        modem.schedule(delay, lambda index=index: ran.append(index))  # type: ignore[misc]
        for index, delay in enumerate(delays)
    ]
    for index in cancelled & set(range(len(delays))):
        modem.cancel(numbers[index])
    while modem.run_next(100.0):
        pass
    kept = [index for index in range(len(delays)) if index not in cancelled]
    assert ran == sorted(kept, key=lambda index: (delays[index], index))
    assert modem.next_at is None


def test_what_is_due_later_does_not_run_yet() -> None:
    modem = kit()
    modem.schedule(2.0, lambda: modem.notify("done"))
    assert not modem.run_next(1.9)
    assert modem.run_next(2.0)
    assert (modem.notices, modem.now) == (["done"], 2.0)


def test_a_restart_clears_actions_and_session_and_keeps_the_flash() -> None:
    modem = kit()
    modem.saved.operation_mode = 2
    modem.session.cmee = 1
    modem.schedule(1.0, lambda: modem.notify("never"))
    modem.restart()
    assert modem.next_at is None
    assert (modem.session.cmee, modem.saved.operation_mode, modem.restarts) == (0, 2, 1)


def test_a_restart_of_the_modem_alone_ends_what_was_under_way_in_its_session() -> None:
    modem = kit()
    modem.schedule(1.0, lambda: modem.notify("of the kit"))
    modem.schedule_in_session(1.0, lambda: modem.notify("never"))
    modem.restart_modem()
    modem.notices.clear()
    while modem.run_next(1.0):
        pass
    assert modem.notices == ["of the kit"]


@pytest.mark.parametrize(
    ("firmware", "new"),
    [
        ("mfw_nrf9160_1.2.9", False),
        ("mfw_nrf9160_1.3.0", True),
        ("mfw_nrf91x1_1.0.0", False),
        ("mfw_nrf91x1_2.0.0", True),
        ("mfw_nrf91x1_ntn_1.0.0", True),
    ],
)
def test_a_feature_is_there_from_the_firmware_that_brought_it(firmware: str, new: bool) -> None:
    assert switched_on(firmware=firmware).kit.at_least(1, 3, 0) is new


def test_the_time_is_unknown_until_the_network_gives_it() -> None:
    modem = switched_on()
    assert modem.kit.modem_time() is None
    ask(modem, "AT+CFUN=1")
    assert modem.kit.modem_time() == UNIX_TIME
