"""The files that a service needs: the unit of systemd and the rules of udev."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

PACKAGING = files("agent.daemon") / "packaging"


@pytest.mark.parametrize(
    ("option", "name"),
    [("--print-unit", "cellagent.service"), ("--print-udev", "60-cellagent.rules")],
)
def test_run_prints_what_a_service_needs(option: str, name: str):
    done = subprocess.run(
        [sys.executable, "-m", "agent", "run", option], capture_output=True, text=True, check=True
    )
    assert done.stdout == (PACKAGING / name).read_text()


def test_the_udev_rule_names_every_kit_that_is_known():
    from at.ports.usb import MODELS

    rule = (PACKAGING / "60-cellagent.rules").read_text()
    for model in MODELS:
        assert f"{model.vendor:04x}" in rule
        for serial in model.serials:
            assert any(
                serial.startswith(known.rstrip("*"))
                for known in rule.replace('"', "|").split("|")
                if known.endswith("*")
            ), serial
