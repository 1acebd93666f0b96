"""`cellagent run` before it runs: the kits that are meant, and what the system needs for it."""

from __future__ import annotations

import click
import pytest
from command_line import completed

from agent.cli.framework.command import Options
from agent.cli.run import _configure
from agent.config import Configuration
from agent.config.kits import kits_of
from agent.config.write import set_value
from at.ports import usb
from at.ports.usb import UsbPort


def configured_with(given: Options) -> Configuration:
    with click.Context(click.Command("run"), obj=given):
        return _configure()


def test_a_port_on_the_command_line_means_that_kit_alone() -> None:
    for name in ("left", "right"):
        set_value(f"kits.{name}.port", f"/dev/tty{name}", profile="lab")
    everything = configured_with(Options(profile="lab")).profile
    assert {kit.port for kit in kits_of(everything).values()} == {"/dev/ttyleft", "/dev/ttyright"}
    one = configured_with(Options(profile="lab", port="/dev/ttyright")).profile
    assert [kit.port for kit in kits_of(one).values()] == ["/dev/ttyright"]


def test_where_no_kit_is_named_it_is_the_only_one_that_is_plugged_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serial = "001050900001"
    plugged = [UsbPort("/dev/ttyACM0", usb.SEGGER, serial=serial)]
    monkeypatch.setattr(usb, "system_ports", lambda: plugged)
    assert configured_with(Options()).profile.kit.port == f"serial:{serial}"


@pytest.mark.parametrize(
    ("option", "holds"), [("--print-unit", "ExecStart="), ("--print-udev", "ID_MM_DEVICE_IGNORE")]
)
def test_what_the_system_needs_for_it_is_printed_without_a_kit(option: str, holds: str) -> None:
    done = completed("run", option)
    assert (done.returncode, done.stderr) == (0, "")
    assert holds in done.stdout
