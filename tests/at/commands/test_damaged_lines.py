"""Every byte of a right line of every type cut, flipped and doubled: a whole record or none.

What a record of a damaged line holds stands in that line; and a line that was cut lacks nothing but
what the manuals let a modem leave out.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

import pytest
from msgspec import Struct

from at.commands.catalog import TYPES, command_of
from at.protocol import notices
from at.protocol.errors import ParseError
from at.protocol.values import as_json, name_before_colon
from tests.support.modem.answers import notice_of
from tests.support.modem.typed_answers import ANSWERS, NOTICES

_NETWORKS = "stat long short numeric act"  # of a list that may be empty
MAY_LACK = {
    "": "imei",  # of AT+CGSN alone, which may answer any serial number
    "#XFOTA": "info",
    "%COAP": "parameters family",  # words may come that no manual names yet
    "%FOTA": "bytes parameters",
    "%NRFCLOUDSHADOW": "lines",  # whose shape is not known
    "%NRFCLOUDOBSFORWARD": "lines",
    "%NRFCLOUDOBSUPLOAD": "chunks",
    "#XNRFCLOUD": "sec_tag device_id",
    "#XSMVER": "customer",
    "#XNRFCLOUDFOTA": "error stage status info",  # the other form is a whole line, too
    "#XNRFCLOUDOBSUPLOAD": "",
    "+IPR": "rates",
    "%COPS": _NETWORKS,
    "%LOCATION": "next_accuracy_m next_in_s",
    "%NCELLMEAS": "ta_meas_time time_diff",
    "%XMODEMSLEEP": "time_ms",
    "%XMONITOR": "periodic_tau further",
    "%XPOFWARN": "voltage",
    "%XSIM": "cause",
    "%XTIME": "dst",
    "+C5GREG": "n tac ci act allowed_nssai_length allowed_nssai",
    "+CEDRXP": "requested_edrx_value nw_provided_edrx_value paging_time_window",
    "+CEDRXRDP": "requested_edrx_value nw_provided_edrx_value paging_time_window",
    "+CEDRXS": "requested_edrx_value",
    "+CEER": "module cause",
    "+CEREG": "n tac ci act active_time periodic_tau_ext",
    "+CGAUTH": "user",
    "+CGCONTRDP": "dns_primary dns_secondary ipv4_mtu",
    "+CGDCONT": "apn address ipv4_alloc",
    "+CGEREP": "bfr",
    "+CGEV": "cid parameters",  # events may come that no manual names yet
    "+CGPADDR": "ipv4 ipv6",
    "+CGREG": "n lac ci act rac",
    "+CNEC_ESM": "cid",
    "+COPS": f"format oper act {_NETWORKS}",
    "+CPSMS": "requested_active_time requested_periodic_tau",
    "+CREG": "n lac ci act",
    "+CRSM": "response",
    "+CSCON": "state access",
    "+CSQ": "",
    "+CWLAP": "freq_offset freqcal_val pairwise group phy wps",
}
"""Name of a line -> the fields that its grammar has in brackets."""
SIGNED = {
    "%JWT",
    "%KEYGEN",
    "%ATTESTTOKEN",
    "%REGJWT",
}  # their lines are base64, and whole by themselves
NOT_OF_THE_LINE = {
    *("snt", "serving"),  # which serial number was asked for, and which measurement
    *("snts", "funs", "modes", "bands", "permanent", "run_time"),  # of a range, or of bits
    "status",  # of a build that tells none
}


def damaged(line: str) -> Iterator[str]:
    for at in range(len(line)):
        yield line[:at]
        yield line[:at] + line[at + 1 :]
        yield line[: at + 1] + line[at:]
        for bit in range(8):
            yield line[:at] + chr(ord(line[at]) ^ (1 << bit)) + line[at + 1 :]


def test_every_type_has_an_answer_here_that_it_reads() -> None:
    read = set()
    for text, lines in ANSWERS.items():
        command = command_of(text)
        assert command is not None, text
        as_json(command.parse(lines))
        read.add(type(command))
    assert {kind for kinds in TYPES.values() for kind in kinds if kind.prefix} - read == set()
    assert {name_before_colon(line) for line in NOTICES} >= set(notices._parsers) - {"+CEDRXS"}


@pytest.mark.parametrize("text", ANSWERS)
def test_a_damaged_answer_is_read_or_refused(text: str) -> None:
    command = command_of(text)
    assert command is not None
    lines = ANSWERS[text]
    for index, line in enumerate(lines):
        for one in damaged(line):
            with contextlib.suppress(ParseError):
                whole = [*lines[:index], one, *lines[index + 1 :]]
                value = command.parse(whole)
                as_json(value)
                if command.name not in SIGNED:
                    assert_of(value, whole)


@pytest.mark.parametrize("line", NOTICES)
def test_a_damaged_notice_is_read_or_refused(line: str) -> None:
    assert not isinstance(notice_of(line), notices.Malformed)
    for one in damaged(line):
        name = name_before_colon(one)
        if not notices.is_known(name):
            continue
        notice = notices.parse(name, one)
        if not isinstance(notice, notices.Malformed) and hasattr(notice, "value"):
            as_json(notice.value)
            assert_of(notice.value, [one])


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each field that is neither None nor empty."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from leaves(getattr(value, name), name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, path)
    elif value is not None and not isinstance(value, bytes | dict):
        yield path, value


def assert_of(value: object, lines: Sequence[str]) -> None:
    """Check that every number and text of a value stands in the lines that it was read from."""
    text = " ".join(lines)
    numbers = {float(number) for number in re.findall(r"[+-]?\d+(?:\.\d+)?", text)}
    for name, found in leaves(value):
        if isinstance(found, bool) or name in NOT_OF_THE_LINE:
            continue
        if isinstance(found, int | float):
            assert found in numbers, (name, found, text)
        elif isinstance(found, str):
            padded = text.replace(" ", "0")  # as some modems pad hex
            assert found in text or found.lower() in padded.lower(), (name, found, text)


def lacking(whole: object, cut: object) -> set[str]:
    return {name for name, _ in leaves(whole)} - {name for name, _ in leaves(cut)}


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_that_was_cut_lacks_nothing_that_must_be_there(text: str) -> None:
    command = command_of(text)
    assert command is not None
    *others, line = ANSWERS[text]
    whole = command.parse([*others, line])
    for at in range(1, len(line)):
        with contextlib.suppress(ParseError):
            cut = command.parse([*others, line[:at]])
            assert lacking(whole, cut) <= set(MAY_LACK.get(name_before_colon(line), "").split())


@pytest.mark.parametrize("line", NOTICES)
def test_a_notice_that_was_cut_lacks_nothing_that_must_be_there(line: str) -> None:
    name = name_before_colon(line)
    whole = notice_of(line)
    for at in range(line.index(":") + 1, len(line)):
        cut = notices.parse(name, line[:at])
        if not isinstance(cut, notices.Malformed) and hasattr(cut, "value"):
            assert lacking(whole.value, cut.value) <= set(MAY_LACK.get(name, "").split())
