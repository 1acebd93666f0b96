"""Satellite navigation of the Serial Modem, under both names."""

from __future__ import annotations

import pytest

from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT#XGNSS?", ["#XGNSS: 1,1"], {"service": 1, "state": 1}),
        ("AT#XGPS?", ["#XGPS: 1,0"], {"service": 1, "state": 0}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("#XGNSS: 1,4", {"service": 1, "state": 4}),
        ("#XGPS: 1,1", {"service": 1, "state": 1}),
        (
            '#XGNSS: 63.42,10.39,162.850952,15.6,1.41,0.000000,"2026-02-10 14:53:12"',
            {"lon": 10.39, "acc": 15.6},  # Serial Modem 1
        ),
        (
            '#XGPS: 63.42,10.39,162.850952,15.6,1.41,0.000000,"2026-02-10 14:53:12"',
            {"lat": 63.42, "alt": 162.850952, "datetime": "2026-02-10 14:53:12"},
        ),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        *("#XGPS: 1,1,1", "#XGNSS: 1,5", "#XGNSS: 63.42,10.39"),
        '#XGNSSPOS: -90.1,10.39,162.8,15.6,1.41,0.0,"2026-02-10 14:53:12"',
    ],
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)
