"""Version and reports of the Serial Modem."""

from __future__ import annotations

import pytest
from answers import assert_fields, notice_of, notice_value, value_of

from at.protocol.notices import Malformed


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [("AT#XSMVER", ['#XSMVER: "v1.0.0","v3.1.0"'], {"git_describe": "v1.0.0"})],
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
