"""Which port is a kit's console."""

from __future__ import annotations

import pytest

from agent.config.profile import KitSettings
from agent.console.port import own_port


@pytest.mark.parametrize(
    ("console_port", "own"),
    [("same", ""), ("none", ""), ("auto", ""), ("/dev/ttyACM1", "/dev/ttyACM1")],
)
async def test_the_console_is_on_a_port_of_its_own_only_where_that_is_known(console_port, own):
    assert await own_port(KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)) == own
