"""How typed bytes become a command does not depend on where they were cut."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from at.virtual.command_line import BadRequest, RequestForm, parse_request
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


def model_of(dialect: str) -> str:
    return "nrf93m1" if dialect in {"nrf93m1", "modem-shell"} else ""


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
        model=model_of(dialect),
        dialect=dialect,
        instant=instant,
        faults=("log-noise", "doubled-bytes"),
    )
    assert printed(cut, options) == printed([stream], options)


@settings(max_examples=200)
@given(data=st.binary(max_size=300), dialect=st.sampled_from(DIALECTS))
def test_no_bytes_upset_the_modem(data: bytes, dialect: str) -> None:
    options = VirtualOptions(model=model_of(dialect), dialect=dialect, instant=True)
    modem = VirtualModem(options, now=0.0, unix_time=1_700_000_000.0)
    modem.receive(data, now=1.0)
    modem.receive(b"\rat AT\rmodem at AT\r" if dialect.endswith("shell") else b"\rAT\r", now=2.0)
    modem.receive(b'"\rAT\r', now=3.0)  # in case a quote was open
    assert b"OK\r\n" in modem.data_to_send()


def test_a_serial_modem_that_waits_for_cr_lf_says_nothing_to_a_cr() -> None:
    options = VirtualOptions(dialect="serial-modem", terminator="crlf")
    modem = VirtualModem(options, now=0.0, unix_time=0.0)
    modem.receive(b"AT\r", now=0.0)
    assert modem.data_to_send() == b""
    modem.receive(b"\n", now=0.0)
    assert modem.data_to_send() == b"\r\nOK\r\n"


@given(values=st.lists(st.none() | st.integers(-(10**6), 10**6) | st.text("aB ,=\r", max_size=5)))
def test_parameters_are_parsed_as_they_were_written(values: list[int | str | None]) -> None:
    texts = ["" if v is None else str(v) if isinstance(v, int) else f'"{v}"' for v in values]
    request = parse_request("at%cmng=" + ",".join(texts or [""]))
    assert (request.name, request.form) == ("%CMNG", RequestForm.SET)
    assert list(request.parameters) == (values or [None])


@given(text=st.text(st.characters(max_codepoint=255), max_size=30))
def test_any_text_is_a_request_or_refused(text: str) -> None:
    for line in (text, f"AT{text}", f"AT+X={text}"):
        with contextlib.suppress(BadRequest):
            parse_request(line)


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("AT+CFUN", RequestForm.RUN),
        ("AT+CFUN?", RequestForm.READ),
        ("AT+CFUN=?", RequestForm.TEST),
        ("AT+CFUN=1", RequestForm.SET),
        ("AT", RequestForm.RUN),
    ],
)
def test_the_form_follows_the_name(line: str, form: RequestForm) -> None:
    assert parse_request(line).form is form


@pytest.mark.parametrize("line", ["A", "AT+", "AT+CFUN?1", "AT+CFUN 1", 'AT+X="a', 'AT+X="a"b'])
def test_what_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(BadRequest):
        parse_request(line)
