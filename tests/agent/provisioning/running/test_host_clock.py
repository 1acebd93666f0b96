"""The modem's clock is set only from one that is known to be right."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from agent.errors import RefusedByRule
from agent.provisioning.running import host_clock


@pytest.mark.parametrize(
    ("kernel", "ahead_s", "says"),
    [
        (True, None, "is synchronised"),
        (True, 0.4, "is synchronised"),
        (False, -1.5, "agrees with the service's"),
        (None, 1.5, "agrees with the service's"),
    ],
)
def test_a_clock_that_is_right_is_trusted_and_why_is_told(
    monkeypatch: pytest.MonkeyPatch, kernel: bool | None, ahead_s: float | None, says: str
) -> None:
    monkeypatch.setattr(host_clock, "kernel_says_synchronised", lambda: kernel)
    assert says in host_clock.check_host_clock(ahead_s)


@pytest.mark.parametrize(
    ("kernel", "ahead_s", "says"),
    [
        (False, None, "is not synchronised"),
        (None, None, "cannot be asked"),
        (True, 3600.0, "differs from the service's by 3600 s"),
        (None, -61.0, "differs"),
    ],
)
def test_a_clock_that_may_be_wrong_is_refused(
    monkeypatch: pytest.MonkeyPatch, kernel: bool | None, ahead_s: float | None, says: str
) -> None:
    monkeypatch.setattr(host_clock, "kernel_says_synchronised", lambda: kernel)
    with pytest.raises(RefusedByRule, match=says):
        host_clock.check_host_clock(ahead_s)


def test_asking_the_kernel_changes_nothing_and_gives_an_answer() -> None:
    assert host_clock.kernel_says_synchronised() in {True, False, None}


@pytest.mark.parametrize(
    ("state", "synchronised"),
    [(0, True), (1, True), (4, True), (5, False), (-1, None)],  # adjtimex(2): TIME_ERROR is 5
)
def test_a_clock_is_synchronised_in_any_state_but_an_error(
    monkeypatch: pytest.MonkeyPatch, state: int, synchronised: bool | None
) -> None:
    library = SimpleNamespace(adjtimex=lambda _timex: state)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name, use_errno: library)
    assert host_clock.kernel_says_synchronised() is synchronised


@pytest.mark.parametrize(
    ("kernel", "ahead_s", "says"),
    [
        (False, 3600.0, ""),
        (False, -86399.0, ""),
        (True, None, ""),
        (None, None, ""),
        (False, None, "certificates are dated by it"),
    ],
)
def test_certificates_are_dated_by_a_clock_that_is_right_to_a_day(
    monkeypatch: pytest.MonkeyPatch, kernel: bool | None, ahead_s: float | None, says: str
) -> None:
    monkeypatch.setattr(host_clock, "kernel_says_synchronised", lambda: kernel)
    doubt = host_clock.check_clock_for_certificates(ahead_s)
    assert says in doubt
    assert bool(says) == bool(doubt)


@pytest.mark.parametrize("ahead_s", [-86401.0, 86401.0, 1.7e9])
def test_certificates_are_not_dated_by_a_clock_that_is_days_off(ahead_s: float) -> None:
    with pytest.raises(RefusedByRule, match="differs") as refused:
        host_clock.check_clock_for_certificates(ahead_s)
    assert "timedatectl" in refused.value.hint
