"""The kits of a profile: what they have in common, and what must differ."""

from __future__ import annotations

import pytest

from agent.config.kits import kits_of
from agent.config.profile import KitSettings, Profile
from agent.errors import UsageError


def test_a_kit_takes_what_it_does_not_say_from_the_common_part():
    profile = Profile(
        kit=KitSettings(baud=9600, slot="1"),
        kits={"a": KitSettings(port="p"), "b": KitSettings(port="q")},
    )
    assert kits_of(profile) == {
        "a": KitSettings(port="p", baud=9600, slot="1"),
        "b": KitSettings(port="q", baud=9600, slot="1"),
    }


@pytest.mark.parametrize(
    ("common", "kits", "said"),
    [
        (
            KitSettings(),
            {"a": KitSettings(port="p"), "b": KitSettings(port="p")},
            "a and b have the same port",
        ),
        (KitSettings(), {"a": KitSettings()}, "a has no port"),
        (
            KitSettings(device_id="one"),
            {"a": KitSettings(port="p"), "b": KitSettings(port="q")},
            "a and b have the same device_id",
        ),
    ],
    ids=["port", "no port", "device"],
)
def test_what_two_kits_may_not_share_is_named(common, kits, said):
    with pytest.raises(UsageError, match=said):
        kits_of(Profile(kit=common, kits=kits))
