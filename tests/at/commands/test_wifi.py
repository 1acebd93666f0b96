"""Access points whatever their names hold."""

from __future__ import annotations

import pytest

from at.commands.wifi import read_access_point
from at.protocol.errors import ParseError
from tests.support.modem.answers import value_of


@pytest.mark.parametrize(
    ("command", "lines"), [("AT+CWLAP", ['+CWLAP:(3,"x",-300,"aa:bb:cc:dd:ee:ff",1)'])]
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "ssid", "channel"),
    [
        ('+CWLAP:(3,"home",-40,"AA:bb:cc:dd:ee:ff",11,-6,0,4,4,7,1)', "home", 11),
        ('+CWLAP:(0,"a,"(b)",-3",-128,"aa:bb:cc:dd:ee:ff")', 'a,"(b)",-3', None),
        ('+CWLAP:("x",-40,"aa:bb:cc:dd:ee:ff")', "x", None),
        ('+CWLAP:(-40,"aa:bb:cc:dd:ee:ff",1)', None, 1),
        ('+CWLAP:(3,"",-40,"aa:bb:cc:dd:ee:ff",1)', "", 1),
    ],
)
def test_access_points_are_read_whatever_their_name_holds(line, ssid, channel):
    found = read_access_point(line)
    assert (found.ssid, found.channel, found.mac) == (ssid, channel, "aa:bb:cc:dd:ee:ff")
