"""Uploads of observations and chunks by the Serial Modem."""

from __future__ import annotations

import pytest

from at.commands.serial_modem.observability import ForwardChunk, SetAutomaticUpload
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("#XNRFCLOUDOBSUPLOAD: 0,108", {"result": 0, "bytes": 108}),
        ("#XNRFCLOUDOBSUPLOAD: 0,0", {"result": 0, "bytes": 0}),
        ("#XNRFCLOUDOBSUPLOAD: -1", {"result": -1, "bytes": None}),
        ("#XNRFCLOUDOBSFORWARD: 0", {"result": 0}),
        ("#XNRFCLOUDOBSFORWARD: -1", {"result": -1}),
    ],
)
def test_a_result_becomes_its_fields(line, value):
    assert notice_value(line) == value


@pytest.mark.parametrize(
    "line",
    [
        "#XNRFCLOUDOBSUPLOAD: 0",
        "#XNRFCLOUDOBSUPLOAD: -1,5",
        "#XNRFCLOUDOBSUPLOAD: 0,-1",
        "#XNRFCLOUDOBSFORWARD: 1",
        "#XNRFCLOUDOBSFORWARD: 0,0",
    ],
)
def test_a_malformed_result_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


def test_the_settings_of_the_factory_are_read():
    found = value_of("AT#XNRFCLOUDOBSAUTO?", '#XNRFCLOUDOBSAUTO: 0,3600,""')
    assert found == {"enable": 0, "interval_seconds": 3600, "project_key": ""}
    serial = "50344654-3037-409f-802d-2206917f23d2"
    line = f'#XNRFCLOUDOBSDEVINFO: "{serial}","app","2.0.0+0","nrf9151dk"'
    assert_fields(
        value_of("AT#XNRFCLOUDOBSDEVINFO", line),
        {"device_serial": serial, "software_version": "2.0.0+0", "hardware_version": "nrf9151dk"},
    )


def test_an_interval_outside_the_manuals_range_is_refused():
    with pytest.raises(ParseError):
        value_of("AT#XNRFCLOUDOBSAUTO?", '#XNRFCLOUDOBSAUTO: 0,59,""')


def test_what_is_left_out_keeps_what_is_stored():
    assert SetAutomaticUpload(1).encode() == "AT#XNRFCLOUDOBSAUTO=1"
    assert SetAutomaticUpload(1, None, "").encode() == 'AT#XNRFCLOUDOBSAUTO=1,,""'
    assert ForwardChunk("CAKn").encode() == 'AT#XNRFCLOUDOBSFORWARD="CAKn"'
