"""Positions by the cloud: notices, and what is sent."""

from __future__ import annotations

import pytest

from at.commands.serial_modem.cloud import LocateByCloud
from at.protocol.errors import UnsafeArgument
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("#XNRFCLOUDPOS: 0,2,35.457335,139.624443,60", {"type": 2, "uncertainty": 60.0}),
        ("#XNRFCLOUDPOS: -1", {"status": -1, "lat": None}),
        ("#XNRFCLOUDPOS: 40100", {"status": 40100, "lat": None}),
        ("#XNRFCLOUDPOS: 1,35.455833,139.626111,1094", {"status": 0, "type": 1}),  # Serial Modem 1
        ("#XNRFCLOUD: 1,0", {"ready": 1, "send_location": 0, "device_id": None}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        "#XNRFCLOUDPOS: 0",
        "#XNRFCLOUDPOS: -2",
        "#XNRFCLOUDPOS: 40100,2,63.42,10.39,40",
        "#XNRFCLOUDPOS: 0,2,63.42,10.39,-40",
        "#XNRFCLOUDPOS: 0,2,63.42,10.39",  # cut: no type 0 at 2 degrees north
        "#XNRFCLOUD: 1,0,7",
    ],
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


def test_a_position_by_the_cloud_is_asked_for_with_the_levels_that_are_known():
    spots = (("aa:bb:cc:dd:ee:ff", -40), ("aa:bb:cc:dd:ee:fe", None))
    assert (
        LocateByCloud(1, spots).encode()
        == 'AT#XNRFCLOUDPOS=1,1,"aa:bb:cc:dd:ee:ff",-40,"aa:bb:cc:dd:ee:fe"'
    )


@pytest.mark.parametrize(
    "command",
    [
        LocateByCloud(16),
        LocateByCloud(1, (("aa:bb:cc:dd:ee:ff", -40),)),
        LocateByCloud(1, (("x", -40), ("y", -40))),
    ],
)
def test_a_request_that_the_firmware_does_not_take_is_not_sent(command):
    with pytest.raises(UnsafeArgument):
        command.encode()
