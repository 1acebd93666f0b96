"""Options of the virtual modem are completed or refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from at.virtual.options import OptionError, VirtualOptions, check_digit, firmware_version
from tests.support.modem.virtual_modems import switched_on


def test_identities_are_test_identities() -> None:
    kit = switched_on()
    imei = kit.kit.saved.imei
    assert imei.startswith("00")  # no device that was sold has such a TAC
    assert check_digit(imei[:14]) == imei[14]
    assert switched_on(imei="35265610036787").kit.saved.imei == "352656100367872"


@given(name=st.text(st.characters(exclude_categories=()), min_size=1))
@example(name="kit \ud800")
def test_a_kit_with_a_name_has_an_identity_of_its_own_the_same_each_time(name: str) -> None:
    one, again, usual = (VirtualOptions(name=name).completed() for name in (name, name, ""))
    assert (one.imei, one.uuid) == (again.imei, again.uuid)
    assert (one.imei, one.uuid) != (usual.imei, usual.uuid)
    assert (one.imei[:5], one.imei[14:]) == ("00101", check_digit(one.imei[:14]))
    named_and_given = VirtualOptions(name=name, imei=usual.imei).completed()
    assert (named_and_given.imei, named_and_given.uuid) == (usual.imei, usual.uuid)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "nrf52"},
        {"dialect": "morse"},
        {"terminator": "cr"[::-1]},
        {"imei": "12"},
        {"imei": "3526561003678x"},
        {"uuid": "none"},
        {"firmware": "1.3"},
        {"firmware": "serial_modem-2.0.0"},
    ],
)
def test_an_option_that_no_kit_has_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        VirtualOptions(**wrong).completed()


@pytest.mark.parametrize(
    ("options", "model", "firmware"),
    [
        ({}, "nrf9161", "mfw_nrf91x1_2.0.4"),
        ({"firmware": "mfw_nrf9160_1.3.5"}, "nrf9160", "mfw_nrf9160_1.3.5"),
        ({"model": "nRF9160"}, "nrf9160", "mfw_nrf9160_1.3.7"),
        ({"model": "nrf9151", "firmware": "2.0.2"}, "nrf9151", "mfw_nrf91x1_2.0.2"),
    ],
)
def test_a_firmware_implies_its_chip_and_a_chip_its_firmware(
    options: dict[str, str], model: str, firmware: str
) -> None:
    completed = VirtualOptions(**options).completed()
    assert (completed.model, completed.firmware) == (model, firmware)
    assert completed.completed() == completed


@pytest.mark.parametrize(
    ("firmware", "version"),
    [
        ("mfw_nrf9160_1.3.7", (1, 3, 7)),
        ("mfw_nrf91x1_2.0.4-rc1", (2, 0, 4)),
        ("nonsense", (0, 0, 0)),
        ("1.2.3_4.5.6", (0, 0, 0)),
    ],
)
def test_the_version_is_read_from_the_name(firmware: str, version: tuple[int, int, int]) -> None:
    assert firmware_version(firmware) == version


def test_the_serial_modem_is_named_by_its_version() -> None:
    kit = VirtualOptions(firmware="serial-modem-2.0.0").completed()
    named = (kit.model, kit.dialect, kit.firmware, kit.application)
    assert named == ("nrf9151", "serial-modem", "mfw_nrf91x1_2.0.4", "2.0.0")
    assert kit.completed() == kit
    old = VirtualOptions(firmware="serial-modem-v1.99.0-68-gb2d3dde", model="nrf9160").completed()
    assert (old.model, old.application) == ("nrf9160", "1.99.0-68-gb2d3dde")
    with pytest.raises(OptionError, match="no dialect but its own"):
        VirtualOptions(firmware="serial-modem-2.0.0", dialect="at-host").completed()


@pytest.mark.parametrize(
    ("version", "generation"), [("1.0.0", 1), ("1.98.9", 1), ("1.99.0", 2), ("2.1.3+5", 2)]
)
def test_the_generation_follows_the_version(version: str, generation: int) -> None:
    assert switched_on(firmware=f"serial-modem-{version}").kit.generation == generation
