"""`cellagent provision ca create` as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.provisioning.ca.device_ca import DeviceCa
from tests.support.commands.command_line import cellagent


async def test_a_ca_is_made_with_the_passphrase_of_the_environment(tmp_path: Path) -> None:
    done = await cellagent(
        "provision", "ca", "create", str(tmp_path / "ca"), "--json",
        environment={"CELLAGENT_DEVICE_CA_PASSPHRASE": "canary-passphrase"},
    )  # fmt: skip
    assert done.code == 0, done.err
    [made] = done.lines
    DeviceCa.load(Path(made["certificate"]), Path(made["key"]), lambda: "canary-passphrase")
    assert "canary" not in done.out + done.err
    # Before a passphrase is asked for, or missed.
    again = await cellagent("provision", "ca", "create", str(tmp_path / "ca"))
    assert (again.code, "never overwritten" in again.err) == (2, True)


@pytest.mark.parametrize("name", ["", "x" * 65])
async def test_a_name_that_no_certificate_can_have_is_refused(tmp_path: Path, name: str) -> None:
    done = await cellagent("provision", "ca", "create", str(tmp_path / "ca"), "--name", name)
    assert (done.code, "1 to 64 characters" in done.err) == (2, True)


async def test_without_a_terminal_it_names_the_command_and_the_variable(tmp_path: Path) -> None:
    done = await cellagent("provision", "ca", "create", str(tmp_path / "ca"))
    assert "try: `cellagent config set device_ca_passphrase" in done.err
    assert "CELLAGENT_DEVICE_CA_PASSPHRASE" in done.err
    assert not (tmp_path / "ca").exists()
