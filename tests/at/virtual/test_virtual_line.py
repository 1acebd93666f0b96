"""The virtual modem's line: what is printed does not depend on how bytes were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from at.virtual.modem import VirtualModem
from at.virtual.options import DIALECTS, VirtualOptions
from at.virtual.signing import new_key

IDENTITY = new_key()  # a test key
PIECES = st.sampled_from(
    [
        b"AT\r",
        b"AT+CFUN=1\r",
        b"AT+CFUN=4\r",
        b"AT+CEREG=5\r",
        b"AT+CEREG?\r",
        b'AT%CMNG=0,7,0,"a\r\nOK\r\n"\r',
        b"AT%CMNG=1,7\r",
        b"AT+CMEE=1\r",
        b"ATE1\r",
        b"\r\n",
        b'AT%CMNG=0,7,0,"',
        b'"\r',
        b"AT\x08\x7f",
        b"\x00\xff junk",
        b"AT+CGSN=1\r\n",
        b"at AT+CGMM\r",
        b"AT+NOSUCH=1,,\r",
    ]
)


def printed(pieces: list[bytes], options: VirtualOptions) -> bytes:
    modem = VirtualModem(options, now=0.0, unix_time=1_700_000_000.0)
    modem.kit.saved.identity_key = IDENTITY
    out = b""
    for piece in pieces:
        modem.receive(piece, now=1.0)
        out += modem.data_to_send()
    return out


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("instant", [True, False])
@settings(max_examples=60)
@given(typed=st.lists(PIECES, max_size=8), cuts=st.sets(st.integers(0, 200), max_size=8))
def test_answers_do_not_depend_on_where_the_bytes_were_cut(
    dialect: str, instant: bool, typed: list[bytes], cuts: set[int]
) -> None:
    stream = b"".join(typed)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    cut = [stream[a:b] for a, b in itertools.pairwise(edges) if a < b]
    options = VirtualOptions(
        dialect=dialect, instant=instant, faults=("log-noise", "doubled-bytes")
    )
    assert printed(cut, options) == printed([stream], options)


@settings(max_examples=200)
@given(data=st.binary(max_size=300), dialect=st.sampled_from(DIALECTS))
def test_no_bytes_upset_the_modem(data: bytes, dialect: str) -> None:
    options = VirtualOptions(dialect=dialect, instant=True)
    modem = VirtualModem(options, now=0.0, unix_time=1_700_000_000.0)
    modem.receive(data, now=1.0)
    modem.receive(b"\rat AT\r" if dialect == "shell" else b"\rAT\r", now=2.0)
    modem.receive(b'"\rAT\r', now=3.0)  # in case a quote was open
    assert b"OK\r\n" in modem.data_to_send()


def test_the_at_host_loses_what_is_sent_while_a_command_runs() -> None:
    modem = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    modem.receive(b"AT+CFUN=1\r", now=0.0)
    modem.receive(b"AT+CFUN?\r", now=0.01)
    modem.advance(0.5)
    assert modem.data_to_send() == b"OK\r\n"


def test_the_serial_modem_keeps_what_is_sent_while_a_command_runs() -> None:
    modem = VirtualModem(VirtualOptions(dialect="serial-modem"), now=0.0, unix_time=0.0)
    modem.receive(b"AT+CFUN=1\r", now=0.0)
    modem.receive(b"AT+CFUN?\r", now=0.01)
    modem.advance(0.5)
    assert modem.data_to_send() == b"\r\nOK\r\n\r\n+CFUN: 1\r\n\r\nOK\r\n"


def test_a_serial_modem_that_waits_for_cr_lf_says_nothing_to_a_cr() -> None:
    options = VirtualOptions(dialect="serial-modem", terminator="crlf")
    modem = VirtualModem(options, now=0.0, unix_time=0.0)
    modem.receive(b"AT\r", now=0.0)
    assert modem.data_to_send() == b""
    modem.receive(b"\n", now=0.0)
    assert modem.data_to_send() == b"\r\nOK\r\n"
