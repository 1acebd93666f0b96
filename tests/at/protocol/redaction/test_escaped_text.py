"""What is changed in a text is changed in each way of writing it; what is not stays as it is."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.redaction.command_redaction import without_secrets
from at.protocol.redaction.escaped_text import cleaned_in_each_spelling
from tests.support.modem.secret_spellings import ANSWERS, CANARY, COMMANDS, spelled


def _lines(data: bytes) -> Iterator[tuple[int, bytes, str]]:
    """Yield offset, bytes and text of each line of sixteen."""
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        yield at, part, "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)


def _zephyr(data: bytes) -> list[str]:
    return [
        f"{part[:8].hex(' ')} {' ' if len(part) > 8 else ''}{part[8:].hex(' '):<24}|"
        f"{text[:8]} {text[8:]}|"
        for _, part, text in _lines(data)
    ]


DUMPS: dict[str, Callable[[bytes], list[str]]] = {
    "Zephyr": _zephyr,
    "xxd": lambda data: [
        f"{at:08x}: {part.hex(' ', -2):<40} {text}" for at, part, text in _lines(data)
    ],
    "hexdump": lambda data: [
        f"{at:08x}  {part.hex(' '):<48} |{text}|" for at, part, text in _lines(data)
    ],
    "pairs": lambda data: [data.hex(" ")],
    "colons": lambda data: [data.hex(":").upper()],
    "dashes": lambda data: [data.hex("-").upper()],
    "C": lambda data: [", ".join(f"0x{byte:02x}" for byte in data)],
}
QUOTED: dict[str, Callable[[str], str]] = {
    "HTML": html.escape,
    "JSON": json.dumps,
    "HTML of JSON": lambda text: html.escape(json.dumps(text)),
    "bytes of Python": lambda text: repr(text.encode()),
    "spelt ends": lambda text: f"--> '{text}<CR><LF>'",
    "hex": lambda text: text.encode().hex(),
}
SECRET_LINES = [
    *(f"AT{name}={','.join(given_)}\r\n" for name, given_ in COMMANDS),
    *(f"{name}: {','.join(given_)}\r\n" for name, given_ in ANSWERS),
]


@pytest.mark.parametrize("way", QUOTED)
def test_no_secret_is_shown_by_another_way_of_writing_it(way: str) -> None:
    canary = CANARY.encode().hex() if way == "hex" else CANARY
    for _name, spelling, line, _sent in spelled():
        shown = without_secrets(f"[00:00:01.000,000] <dbg> app: {QUOTED[way](line)}")
        assert canary not in shown, (spelling, shown)
        assert without_secrets(shown) == shown


@pytest.mark.parametrize("style", DUMPS)
def test_a_hex_dump_of_a_line_shows_no_four_characters_of_its_secret(style: str) -> None:
    pieces = [CANARY[at : at + 4] for at in range(len(CANARY) - 3)]
    for line in SECRET_LINES:
        dumped = [f"[00:00:01.000,000] <dbg> app: {one}" for one in DUMPS[style](line.encode())]
        shown = [without_secrets(one) for one in dumped]
        assert [one[:30] for one in shown] == [one[:30] for one in dumped]
        for one in shown:
            digits = re.sub("0x|[^0-9a-f]", "", one[30:].lower())
            told = [piece for piece in pieces if piece in one or piece.encode().hex() in digits]
            assert not told, line
        assert [without_secrets(one) for one in shown] == shown


@pytest.mark.parametrize("style", DUMPS)
def test_a_dump_of_what_is_no_text_stays(style: str) -> None:
    for line in DUMPS[style](bytes(range(0x80, 0x100)) + b"up" + bytes(64)):
        assert without_secrets(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "+CESQ: 99,99,255,255,19,47",
        "bands 20 28 66 67 71",
        "up since 2026-11-02 10:00:00, 12 34 56 lines",
        "peer 42:43:44:45:46:47",
        "41 54 2B 43 46 55 4E 3D|AT+CFUN=",
        "C:\\temp\\new &amp; others",
    ],
)
def test_a_line_with_numbers_stays(line: str) -> None:
    assert without_secrets(line) == line


@given(st.text(st.sampled_from("&quot;lm\\nx41u00\"'<CR> \x08\x1b[mAT+=")))
def test_a_text_without_what_is_looked_for_stays(text: str) -> None:
    assert cleaned_in_each_spelling(text, lambda read: read) == text


@given(
    st.text(st.sampled_from("ab\"'<\\&\n")),
    st.text(st.sampled_from("ab\"'<\\&\n")),
    st.sampled_from(["HTML", "JSON"]),
)
def test_what_stands_around_what_was_changed_stays(before: str, behind: str, way: str) -> None:
    def changed(read: str) -> str:
        return re.sub('S"CRET', "-", read)

    whole = QUOTED[way](f'{before}S"CRET{behind}')
    assert cleaned_in_each_spelling(whole, changed) == QUOTED[way](f"{before}-{behind}")


@pytest.mark.parametrize(
    "unit", ["41 54 2b ", "4154 ", "0x41,", "41", "&quot;", "\\n", "\\\\", "<CR>", "\x08", "a&lt;"]
)
def test_a_long_line_is_read_a_bounded_number_of_times(unit: str) -> None:
    seen = 0

    def counted(read: str) -> str:
        nonlocal seen
        seen += len(read)
        return read.replace("A", "B")

    line = unit * (1_000_000 // len(unit))
    cleaned_in_each_spelling(line, counted)
    assert seen <= 16 * len(line)
