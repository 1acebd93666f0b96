"""The kits of a profile: what they have in common, and what must differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load
from agent.config.kits import kits_of
from agent.config.profile import KitSettings, Profile
from agent.errors import UsageError


def test_a_kit_takes_what_it_does_not_say_from_the_common_part(file: Path) -> None:
    file.write_text(
        '[profiles.x.kit]\nbaud = 9600\nslot = "1"\nconsole_port = "none"\n'
        '[profiles.x.kits.a]\nport = "COM1"\n'
        '[profiles.x.kits.b]\nport = "COM2"\nbaud = 115200\nconsole_port = "auto"\n'
    )
    assert kits_of(load("x").profile) == {
        "a": KitSettings(port="COM1", baud=9600, slot="1", console_port="none"),
        "b": KitSettings(port="COM2", baud=115200, slot="1", console_port="auto"),
    }


@pytest.mark.parametrize(
    ("kits", "said", "sets"),
    [
        (
            {"a": KitSettings(port="p"), "b": KitSettings(port="p")},
            "a and b have the same port",
            "kits.b.port",
        ),
        ({"b 2": KitSettings()}, "b 2 has no port", "'kits.b 2.port'"),
        ({}, "kit has no port", "kit.port"),
        (
            {
                "a": KitSettings(port="p", device_id="one"),
                "b": KitSettings(port="q", device_id="one"),
            },
            "a and b have the same device_id",
            "kits.b.device_id",
        ),
        (
            {
                "a": KitSettings(port="p", console_port="c"),
                "b": KitSettings(port="q", console_port="c"),
            },
            "a and b have the same console_port",
            "kits.b.console_port",
        ),
    ],
    ids=["port", "no port", "no table", "device", "console"],
)
def test_what_two_kits_may_not_share_is_named_with_the_key_to_set(kits, said, sets):
    with pytest.raises(UsageError, match=said) as wrong:
        kits_of(Profile(kits=kits))
    assert wrong.value.hint == f"`cellagent config set {sets} VALUE`"


@pytest.mark.parametrize("name", ["", ".", "..", "  "])
def test_a_name_that_no_address_of_a_page_can_hold_or_nobody_sees_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        kits_of(Profile(kits={name: KitSettings(port="p")}))
