"""`cellagent device` as it is run, against the stand-in."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_line import cellagent
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.device_cloud import seed


@pytest.mark.contract("O5.6")
async def test_devices_are_listed_shown_renamed_and_written(standin_profile: str) -> None:
    listing = await cellagent("device", "list", "--json")
    assert listing.code == 0
    assert {device["id"] for device in listing.lines} >= {seed.BLE, seed.GATEWAY}
    people = await cellagent("device", "list", "--type", "BLE")
    assert people.out.splitlines()[0].split() == ["id", "name", "type", "tags", "updated"]
    assert len(people.out.splitlines()) == 2
    assert (await cellagent("device", "rename", seed.GENERIC, "north door")).code == 0
    assert "north door" in (await cellagent("device", "show", seed.GENERIC)).out
    written = await cellagent("device", "write", seed.BLE, seed.LED_CHARACTERISTIC, "0a 00")
    assert written.code == 0
    assert "[0a 00]" in (await cellagent("device", "show", seed.BLE)).out
    stale = await cellagent("device", "rename", seed.GENERIC, "x", "--if-match", "old", "--json")
    assert stale.code == 1
    assert stale.lines[-1]["error"]["kind"] == "precondition-failed"
    ids = await cellagent("device", "list", "--transform", "type = 'BLE' ? id")
    assert ids.lines.count(None) == len(ids.lines) - 1


async def test_the_example_that_the_help_of_write_gives_can_be_run(standin_profile: str) -> None:
    helped = await cellagent("device", "write", "--help")
    example = " ".join(helped.out.partition("Example: cellagent ")[2].split())
    assert (await cellagent(*shlex.split(example))).code == 0


@pytest.mark.contract("D3.4", "D6")
async def test_a_characteristic_that_allows_no_write_is_sent_only_with_force(
    standin_profile: str,
) -> None:
    write = ("device", "write", seed.BLE, seed.BUTTON_CHARACTERISTIC, "01", "--json")
    refused = await cellagent(*write)
    assert refused.code == 4
    error = refused.lines[-1]["error"]
    assert "its properties are notify, read" in error["message"]
    assert "--force" in error["try"]
    sent = await cellagent(*write, "--force")
    assert (sent.code, sent.lines[-1]["error"]["kind"]) == (1, "conflict")


async def test_a_key_is_registered(standin_profile: str, tmp_path: Path) -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    file = tmp_path / "public.pem"
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    file.write_bytes(public.public_bytes(encoding, form))
    done = await cellagent("device", "register-key", seed.GENERIC, str(file), "--json")
    assert done.lines[0]["status"] == "SUCCEEDED"
    missing = await cellagent("device", "register-key", seed.GENERIC, str(tmp_path / "none"))
    assert missing.code == 1
    assert "none" in missing.err
    assert "Traceback" not in missing.err
