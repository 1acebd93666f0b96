"""Version and reports of the Serial Modem."""

from __future__ import annotations

import pytest

from at.commands.serial_modem.application import (
    OldSerialModemVersion,
    ReadOldSerialModemVersion,
    SerialModemVersion,
)
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT#XSMVER", ['#XSMVER: "v1.0.0","v3.1.0"'], {"git_describe": "v1.0.0", "major": 1}),
        (
            "AT#XSMVER",
            ['#XSMVER: "v1.99.0","3.3.99","Onomondo 2.1.0"'],
            {"major": 2, "customer": "Onomondo 2.1.0"},
        ),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("line", "part"), [("#XMODEM: FAULT,0x1,0x2a", {"event": "FAULT", "values": ["0x1", "0x2a"]})]
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ["#XMODEM: HICCUP,1"])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("v2.0.0", 2),
        ("v2.0.0-preview2", 2),
        ("v2.0.0-68-gb2d3dde4dfa2-dirty", 2),
        ("v1.99.0-67-ga9e396bc3d58", 2),
        ("v1.98.9", 1),
        ("v1.0.0-dirty", 1),
        ("v10.0.1", 10),
        ("3.1.1", 3),
        ("b2d3dde4dfa2", None),
        ("v2.0", None),
        ("v2.0.0.1", None),
    ],
)
def test_the_generation_is_that_of_the_tag(text, major):
    assert SerialModemVersion(text, "3.4.0").major == major


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("1.2", OldSerialModemVersion("1.2")),
        (
            '"2.5.2","2.5.0-lte-5ccd2d4dd54c"',
            OldSerialModemVersion("2.5.2", "2.5.0-lte-5ccd2d4dd54c"),
        ),
        ('"3.0.1","3.0.1","kit 7"', OldSerialModemVersion("3.0.1", "3.0.1", "kit 7")),
    ],
)
def test_the_firmware_of_before_the_new_name_tells_its_sdk(
    answer: str, version: OldSerialModemVersion
) -> None:
    assert ReadOldSerialModemVersion().parse([f"#XSLMVER: {answer}"]) == version
