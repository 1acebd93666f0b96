"""The environment of the demonstration serves a kit that is configured, and leaves nothing."""

from __future__ import annotations

from agent.demo.environment import demo_environment
from at.discovery import probe
from at.ports.usb import UsbPort


async def test_the_configured_port_answers_and_is_gone_afterwards() -> None:
    async with demo_environment() as environment:
        kit = environment.configuration.profile.kit
        report = await probe(UsbPort(kit.port))
        assert (report.answers, report.dialect) == (True, "serial-modem")
        assert report.imei == environment.kit.modem.kit.saved.imei
        assert kit.console_port == environment.console_port
        folder = environment.configuration.state_dir.parent
        assert folder.is_dir()
    assert not folder.exists()


async def test_the_true_position_is_that_of_the_virtual_kit() -> None:
    async with demo_environment() as environment:
        modem = environment.kit.modem
        start = environment.true_position()
        assert start == modem.kit.world.position(0.0)
        modem.advance(modem.kit.switched_on_at + 65.0)
        assert environment.true_position() == modem.kit.world.position(60.0) != start
