"""Firmware for the virtual kit over the UART: checked, started, put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from at.virtual.families.serial_modem.firmware_update import image_version
from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.fota.signed_images import signed_image

PIECE = 4096


class Person:
    """Somebody who types at the Serial Modem's port, and whose clock goes on as they wait."""

    def __init__(self, **options: object) -> None:
        given = VirtualOptions(dialect="serial-modem", instant=True, **options)  # type: ignore[arg-type]
        self.modem = VirtualModem(given, now=0.0, unix_time=1_700_000_000.0)

    def types(self, text: str | bytes) -> list[str]:
        data = text.encode() + b"\r" if isinstance(text, str) else text
        self.modem.receive(data, now=self.modem.kit.now + 0.01)
        return [line for line in self.modem.data_to_send().decode().split("\r\n") if line]

    def writes(self, kind: int, image: bytes) -> list[str]:
        assert self.types(f"AT#XDFUINIT={kind},{len(image)}") == ["OK"]
        for place in range(0, len(image), PIECE):
            piece = image[place : place + PIECE]
            assert self.types(f"AT#XDFUWRITE={kind},{place},{len(piece)}") == ["OK"]
            # In two parts, the first of which would read as a command.
            self.types(piece[:7])
            assert self.types(piece[7:]) == ["#XDATAMODE: 0", f"#XDFU: {kind},1,0"]
        return self.types(f"AT#XDFUAPPLY={kind}")


def test_an_application_image_runs_after_the_reset(tmp_path: Path) -> None:
    image = signed_image(tmp_path, "2.1.3").read_bytes()
    person = Person()
    assert person.types("AT#XSMVER")[0] == '#XSMVER: "v1.0.0","3.1.1"'
    assert person.writes(0, image) == ["OK", "#XDFU: 0,2,0"]
    assert person.types("AT#XSMVER")[0] == '#XSMVER: "v1.0.0","3.1.1"'
    assert person.types("AT#XRESET") == ["OK", "Ready"]
    assert person.types("AT#XSMVER")[0] == '#XSMVER: "v2.1.3","3.4.0"'


@pytest.mark.parametrize("place", [0, 0x210, -40])
def test_a_damaged_image_is_not_accepted(place: int, tmp_path: Path) -> None:
    image = bytearray(signed_image(tmp_path, "2.1.3", sha="256").read_bytes())
    if place == -40:
        del image[-len(image) // 2 :]
    else:
        image[place] ^= 1
    assert image_version(bytes(image)) is None
    assert Person().writes(0, bytes(image)) == ["OK", "#XDFU: 0,2,-1"]


def test_what_is_written_out_of_order_is_refused() -> None:
    person = Person()
    person.types("AT#XDFUINIT=0,100")
    person.types("AT#XDFUWRITE=0,50,10")
    assert person.types(b"0123456789") == ["#XDATAMODE: 0", "#XDFU: 0,1,-1"]
    assert person.types("AT#XDFUWRITE=1,0,10") == ["ERROR"]
    assert person.types("AT#XDFUINIT=0") == ["ERROR"]


def test_a_modem_image_runs_after_the_modems_reset() -> None:
    person = Person()
    assert person.writes(1, b"opaque mfw_nrf91x1_2.0.5 opaque" * 200) == ["OK", "#XDFU: 1,2,0"]
    assert person.types("AT+CGMR")[0] == "mfw_nrf91x1_2.0.4"
    assert person.types("AT#XMODEMRESET") == ["#XMODEMRESET: 0", "OK"]
    assert person.types("AT+CGMR")[0] == "mfw_nrf91x1_2.0.5"
    assert person.writes(1, b"mfw_nrf9160_1.3.7, of another chip") == ["OK", "#XDFU: 1,2,-1"]


def test_a_full_modem_image_goes_through_the_bootloader_mode() -> None:
    person = Person()
    assert person.types("AT#XDFUINIT=2") == ["OK", "Bootloader mode ready"]
    assert person.types("AT+CGMR") == ["ERROR"]
    for segment in (b"bootloader", b"mfw_nrf91x1_2.0.6 firmware"):
        person.types(f"AT#XDFUWRITE=2,0,{len(segment)}")
        person.types(segment)
        last = person.types("AT#XDFUAPPLY=2")
        assert last[:2] == ["OK", "#XDFU: 2,2,0"]
    assert last[2:] == ["Ready"]
    assert person.types("AT+CGMR")[0] == "mfw_nrf91x1_2.0.6"


def test_faults_of_an_update(tmp_path: Path) -> None:
    image = signed_image(tmp_path, "2.1.3").read_bytes()
    assert Person(faults=("flash-failed",)).writes(0, image) == ["OK", "#XDFU: 0,2,-1"]
    person = Person(faults=("update-reverted",))
    person.writes(0, image)
    person.types("AT#XRESET")
    assert person.types("AT#XSMVER")[0] == '#XSMVER: "v1.0.0","3.1.1"'
