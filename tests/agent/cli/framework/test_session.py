"""Which kit the options, the profile and the plugged-in kits choose."""

from __future__ import annotations

import sys

import pytest

from agent.cli.framework.session import Session, modem_on
from agent.config.write import set_value
from agent.daemon.kit.store import KitStore
from agent.errors import UsageError
from agent.files.paths import state_dir
from at.ports import usb
from at.ports.usb import UsbPort
from at.protocol.errors import NoAnswer, PortNotFound
from tests.support.modem.pty_far_end import PtyFarEnd

LEFT, RIGHT = "/dev/ttyLEFT", "/dev/ttyRIGHT"


def two_kits() -> None:
    for name, port in (("left", LEFT), ("right", RIGHT)):
        set_value(f"kits.{name}.port", port, profile="lab")


def test_a_port_of_the_table_chooses_its_kit_and_another_port_no_kit_of_it() -> None:
    two_kits()
    set_value("kits.right.baud", "1000000", profile="lab")
    kit = Session(profile_name="lab", port=RIGHT).kit
    assert (kit.port, kit.baud) == (RIGHT, 1000000)
    kit = Session(profile_name="lab", port="/dev/ttyOTHER").kit
    assert (kit.port, kit.baud) == ("/dev/ttyOTHER", 115200)


def test_the_name_of_a_kit_of_the_table_is_as_good_as_its_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two_kits()
    set_value("kits.right.baud", "1000000", profile="lab")
    named = Session(profile_name="lab", port="right")
    assert (named.kit.port, named.kit.baud) == (RIGHT, 1000000)
    assert Session(profile_name="lab", port="none").kit.port == "none"
    set_value("kits.unplugged.baud", "9600", profile="lab")
    with pytest.raises(UsageError, match="kit unplugged has no port"):
        _ = Session(profile_name="lab", port="unplugged").kit
    set_value("kits.unplugged.port", "/dev/ttyTHIRD", profile="lab")
    monkeypatch.setenv("CELLAGENT_PORT", "right")
    assert Session(profile_name="lab").kit.port == RIGHT


@pytest.mark.parametrize("name", ["right", RIGHT])
def test_a_kit_of_the_table_is_chosen_also_where_another_one_has_the_port_of_all(name: str) -> None:
    set_value("kit.port", LEFT, profile="lab")
    set_value("kits.left.baud", "9600", profile="lab")
    set_value("kits.right.port", RIGHT, profile="lab")
    session = Session(profile_name="lab", port=name)
    assert (session.kit.port, session.kit.baud) == (RIGHT, 115200)
    assert session.profile.kits["left"].port == LEFT


def test_the_only_kit_of_the_table_needs_no_port_and_of_two_one_is_to_be_named() -> None:
    set_value("kits.left.port", LEFT, profile="lab")
    assert Session(profile_name="lab").profile.kit.port == LEFT
    two_kits()
    with pytest.raises(UsageError, match="2 kits") as refused:
        _ = Session(profile_name="lab").kit
    assert refused.value.hint == "name one: `--port left`, `--port right`"
    set_value("kits.by the door.port", "replay:session.txt", profile="lab")
    with pytest.raises(UsageError) as refused:
        _ = Session(profile_name="lab").kit
    assert "`--port 'by the door'`" in refused.value.hint


def test_the_only_kit_that_is_plugged_in_is_named_by_its_serial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kit(serial: str) -> list[UsbPort]:
        ports = (f"/dev/tty{serial[-2:]}{index}" for index in range(2))
        return [UsbPort(port, usb.SEGGER, serial=serial) for port in ports]

    plugged = [UsbPort("/dev/ttyS0")]
    monkeypatch.setattr(usb, "system_ports", lambda: plugged)
    with pytest.raises(PortNotFound):
        Session().only_kit_port()
    plugged += kit("001050900001")
    assert Session().only_kit_port() == "serial:001050900001"
    plugged += kit("001050900002")
    with pytest.raises(UsageError, match="2 kits are plugged in"):
        Session().only_kit_port()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_mute_kit_is_told_apart_from_a_wrong_port_by_having_answered_before(
    is_known: bool,
) -> None:
    with PtyFarEnd(answer=lambda _line: b"") as mute:
        if is_known:  # `run` spoke to it once
            # A kit with kit.device_id pinned keeps no other id.
            KitStore(state_dir(), "lab", "kit").update(port=mute.path, imei="351234567890123")
        with pytest.raises(NoAnswer) as silent:
            async with modem_on(mute.path, list):
                raise AssertionError("nothing answers")
    assert ("answered AT here before" in str(silent.value)) is is_known
    assert ("unplug it" in silent.value.hint) is is_known


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("asked", "speed"), [(9600, "B9600"), (None, "B115200")])
async def test_the_speed_that_is_asked_for_goes_before_that_of_the_profile(
    asked: int | None, speed: str
) -> None:
    import termios

    with PtyFarEnd() as far:
        async with Session(port=far.path).modem(baud=asked):
            assert termios.tcgetattr(far.master)[5] == getattr(termios, speed)
