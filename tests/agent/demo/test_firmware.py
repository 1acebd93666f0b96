"""The image of the demonstration is one that the kit accepts."""

from __future__ import annotations

import pytest

from agent.demo.firmware import mcuboot_image
from at.virtual.families.serial_modem.firmware_update import image_version


@pytest.mark.parametrize("size", [0, 1, 14, 15, 16, 4096])
def test_the_kit_accepts_an_image_of_any_size(size: int) -> None:
    image = mcuboot_image((2, 0, 1), size)
    assert image_version(image) == "2.0.1"
    assert len(image) == 32 + size + 40
