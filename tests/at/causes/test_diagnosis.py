"""Every log of troubles.txt has its cause; none is called certain that is not."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.causes.diagnosis import causes_of_log
from at.causes.table import Certainty, load
from at.protocol.errors import TranscriptError
from tests.support.modem.cause_logs import HEALTHY, TROUBLES

UNSPACED = str.maketrans("", "", ", \\")
"""Commas are put back where a logger took them out, and JSON escapes quotes."""


@pytest.mark.parametrize(("cause", "log"), TROUBLES, ids=[cause for cause, _ in TROUBLES])
def test_a_log_of_trouble_has_its_cause_among_the_first_two(cause: str, log: str) -> None:
    found = causes_of_log(log.encode())
    right = cause.removesuffix("!")
    place = [one.cause for one in found].index(right)
    assert place < 2, found
    assert (found[place].certainty == "certain") is cause.endswith("!")
    for one in found:
        assert one.evidence.translate(UNSPACED) in log.translate(UNSPACED)
        assert one.next
        assert one.says.endswith(".")
        assert not set("{}?") & set(one.says + one.cause)


@pytest.mark.parametrize(("cause", "log"), HEALTHY)
def test_a_log_without_trouble_has_none(cause: str, log: str) -> None:
    assert [one.cause for one in causes_of_log(log.encode())] == [cause]


def test_a_write_after_which_nothing_answers_may_wait_for_its_quote() -> None:
    lines = ("AT+CFUN=4", "OK", 'AT%CMNG=0,42,0,"-----BEGIN CERTIFICATE-----', "MIIB", "AT")
    found = causes_of_log("\n".join(lines).encode())
    assert found[0].cause == "cred-quote-open"
    assert "MIIB" not in found[0].evidence


def test_a_card_whose_files_are_asked_for_one_by_one_is_an_esim_without_a_profile_first() -> None:
    for sent in ('AT+CSIM=10,"0070000001"', 'AT+CCHO="A0000005591010FFFFFFFF8900000100"'):
        found = causes_of_log(f"{sent}\n+CME ERROR: 13\n".encode())
        assert [one.cause for one in found] == ["sim-no-profile", "sim-failure"]


@pytest.mark.parametrize("wrong", ['AT+CPIN="1234"', 'AT+CPIN="12345678","1234"'])
def test_a_card_that_waits_for_its_puk_is_said_before_a_wrong_try(wrong: str) -> None:
    """A PUK that is guessed at destroys the card."""
    lines = (wrong, "+CME ERROR: 16", "AT+CPIN?", "+CPIN: SIM PUK", "OK")
    assert causes_of_log("\n".join(lines).encode())[0].cause == "sim-puk"


def test_the_network_that_is_searched_now_is_not_the_only_one_that_may_be() -> None:
    for mode in ("LTE-M", "NB-IoT"):
        log = f"Network registration status: searching\nCurrently active system mode: {mode}\n"
        assert [one.cause for one in causes_of_log(log.encode())] == ["first-search"]


def test_the_bootloaders_before_an_application_are_of_its_start() -> None:
    one, other = "Attempting to boot slot 0.\n", "I: Jumping to the first image slot\n"
    banner = "*** Booting nRF Connect SDK v2.9.0 ***\n"
    mcuboot = "*** Booting MCUboot v2.1.0 ***\n"  # all that a build without its log prints of it
    starts = (f"{banner}{one}{banner}{other}{banner}", f"{banner}{other}", f"{mcuboot}{banner}")
    for start in (*starts, f"{banner}{one}{mcuboot}{other}{banner}", mcuboot):
        for times, cause in ((1, "first-search"), (2, "first-search"), (3, "reset-loop")):
            assert causes_of_log(f"{start * times}+CEREG: 2\n".encode())[0].cause == cause


def test_what_is_left_of_a_date_is_no_dump_in_hex() -> None:
    assert causes_of_log(b"03-02 10:")


@pytest.mark.parametrize(
    "clock",
    [
        ("2026-03-02 23:58:31.001 ", "2026-03-03 00:09:31.010 "),
        ("[00:09:51.001,000] <inf> ", "[00:00:01.100,000] <inf> ", "[00:08:01.010,000] <inf> "),
    ],
    ids=["midnight", "a restart"],
)
def test_a_search_lasts_as_long_as_the_clock_that_passed_midnight_or_began_anew_says(
    clock: tuple[str, ...],
) -> None:
    lines = [f"{time}modem: +CEREG: 2" for time in clock]
    lines.append(f"{clock[-1]}modem: +CESQ: 99,99,255,255,255,255")
    assert causes_of_log("\n".join(lines).encode())[0].cause == "no-cell"


@pytest.mark.parametrize(("ran", "is_loop"), [("00:00:20", True), ("00:05:02", False)])
def test_a_kit_that_ran_for_minutes_before_each_restart_is_in_no_reset_loop(
    ran: str, is_loop: bool
) -> None:
    start = "*** Booting nRF Connect SDK ***\n[00:00:02.000,000] <inf> app: +CEREG: 2\n"
    log = f"{start}[{ran}.000,000] <wrn> app: no network yet\n" * 3 + start
    assert ("reset-loop" in {cause.cause for cause in causes_of_log(log.encode())}) is is_loop


def test_the_troubles_are_sixty_and_more() -> None:
    assert len(TROUBLES) >= 60


@given(log=st.sampled_from([log for _, log in TROUBLES]), data=st.data())
def test_no_cut_and_no_order_of_a_log_is_refused(log: str, data: st.DataObject) -> None:
    lines = data.draw(st.permutations(log.splitlines()))
    text = "\n".join(lines)
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    try:
        found = causes_of_log(text[begin:end].encode())
    except TranscriptError:
        left = text[begin:end].strip().strip("^M")
        # Of an SDK that dumps what it sends: perhaps bytes alone, the first of them cut.
        dump = r"(?:\S* ?a?p{0,2}: )?(?:[0-9A-F]{1,2} ){3}[0-9A-F ]*"
        assert not left or re.fullmatch(dump, left)
        return
    assert 1 <= len(found) <= 5
    order = [one.certainty for one in found]
    assert order == sorted(order, key=[kind.value for kind in Certainty].index)


@given(st.binary(max_size=400))
def test_any_bytes_have_causes_or_are_no_text(data: bytes) -> None:
    with contextlib.suppress(TranscriptError):
        assert causes_of_log(data)


@pytest.mark.parametrize("words", ["error fail ", "no response to ", "certificate verif ", "CR"])
def test_a_long_line_of_words_takes_no_more_than_its_length(words: str) -> None:
    """By the square of its length, or the cube, these would take hours."""
    line = words * (16_000 // len(words))
    log = f"AT\nOK\n{line}+CME ERROR: 10 \n" + f"{line}\n" * 20
    assert causes_of_log(log.encode())[0].cause == "sim-missing"


def test_no_pattern_repeats_what_the_repeat_behind_it_takes_too() -> None:
    """Each way to share a line between the two would be tried: a line of `fota` took minutes."""
    twice = re.compile(r"\\[wS][*+]\[\^")
    assert not [one.pattern for one in load().words if twice.search(one.pattern)]


def test_a_long_line_of_arrows_costs_no_more_than_its_length() -> None:
    causes_of_log(b"AT+CGMR\n" + (b"+CGMR: " + b"<" * 16_000 + b"!\n") * 20)
