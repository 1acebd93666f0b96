"""Updates by the cloud: a check and a download, told apart under one name."""

from __future__ import annotations

import pytest

from at.commands.serial_modem.cloud_update import UpdateByCloud
from at.protocol import notices
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value

NAME = "#XNRFCLOUDFOTA"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"{NAME}: 0", {"result": 0, "error": None}),
        (f"{NAME}: 1", {"result": 1, "error": None}),
        (f"{NAME}: -1,-11", {"result": -1, "error": -11}),
        (f"{NAME}: 0,0", {"stage": 0, "status": 0, "info": None}),
        (f"{NAME}: 1,0,45", {"stage": 1, "status": 0, "info": 45}),
        (f"{NAME}: 1,1,3", {"stage": 1, "status": 1, "info": 3}),
        (f"{NAME}: 1,1,71303171", {"stage": 1, "status": 1, "info": 71303171}),
        (f"{NAME}: 1,2", {"stage": 1, "status": 2, "info": None}),
        (f"{NAME}: 4,0", {"stage": 4, "status": 0, "info": None}),
        (f"{NAME}: 5,3", {"stage": 5, "status": 3, "info": None}),
    ],
)
def test_one_value_is_a_check_and_more_are_progress(line, value):
    assert notice_value(line) == value


@pytest.mark.parametrize(
    "line", [f"{NAME}: {text}" for text in ("", "2", "-1", "-2,3", "6,0", "1,0", "1,0,101", "4,4")]
)
def test_what_neither_form_has_is_refused(line):
    assert isinstance(notice_of(line), Malformed)


def test_the_1_of_a_check_is_none_of_a_command_that_downloads():
    one = f"{NAME}: 1"
    for op, known in ((1, False), (2, False), (4, True), (6, True), (14, True)):
        for command in (f"AT{NAME}={op}", f'AT{NAME}={op},"key"'):
            found = notices.parse(NAME, one, command)
            assert isinstance(found, Malformed) is not known, command


def test_the_key_is_left_out_where_there_is_none():
    assert UpdateByCloud(4).encode() == "AT#XNRFCLOUDFOTA=4"
    assert UpdateByCloud(2, "k").encode() == 'AT#XNRFCLOUDFOTA=2,"k"'


def test_the_form_before_the_release_is_read():
    from tests.support.modem.answers import value_of

    found = value_of("AT#XNRFCLOUDFOTAAUTO?", '#XNRFCLOUDFOTAAUTO: 0,"modem",86400')
    assert_fields(found, {"enable": 0, "what": "modem", "interval_seconds": 86400})
