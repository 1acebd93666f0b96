"""`cellagent device`: what changes a device, as it is run against the stand-in."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.device_cloud import seed
from agent.standin.device_cloud.devices.registry import registry, services
from agent.standin.device_cloud.tables import Service
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent
from tests.support.commands.on_a_terminal import answered
from tests.support.location.located_kit import LocatedKit


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
    standin_profile: str, standin: StandIn
) -> None:
    write = ("device", "write", seed.BLE, seed.BUTTON_CHARACTERISTIC, "01", "--json")
    refused = await cellagent(*write)
    assert refused.code == 4
    error = refused.lines[-1]["error"]
    assert "its properties are notify, read" in error["message"]
    assert "--force" in error["try"]
    sent = await cellagent(*write, "--force")
    assert (sent.code, sent.lines[-1]["error"]["kind"]) == (1, "conflict")
    devices = registry(standin.cloud)
    record = devices.get(standin.team_id, seed.BLE)
    known = services(record)
    known[seed.LED_SERVICE].characteristics[seed.BUTTON_CHARACTERISTIC].properties = {}
    record.fields.state = msgspec.to_builtins(known)
    devices.change(record)
    refused = await cellagent(*write)
    assert refused.lines[-1]["error"]["message"].endswith("its properties are none")


async def test_a_key_is_registered(standin_profile: str, tmp_path: Path) -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    file = tmp_path / "public.pem"
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    file.write_bytes(public.public_bytes(encoding, form))
    register = ("device", "register-key", seed.GENERIC)
    done = await cellagent(*register, str(file), "--json")
    assert done.lines[0]["status"] == "SUCCEEDED"
    file.write_bytes(file.read_text().encode("utf-16"))  # as PowerShell saves it
    assert (await cellagent(*register, str(file))).code == 0
    endless = await cellagent(*register, "/dev/zero")
    refused = "cellagent: /dev/zero: over 64 MiB, or without end\n"
    assert (endless.code, endless.err) == (
        2,
        refused + "  try: name a file that holds the text alone\n",
    )
    missing = await cellagent("device", "register-key", seed.GENERIC, str(tmp_path / "none"))
    assert missing.code == 2
    assert "none" in missing.err
    assert "Traceback" not in missing.err


async def test_a_device_is_deleted_after_a_yes_and_not_without(standin_profile: str) -> None:
    delete = ("device", "delete", seed.GENERIC)
    unasked = await cellagent(*delete, "--json")
    assert (unasked.code, unasked.lines[-1]["error"]["kind"]) == (2, "usage")
    assert "--yes" in unasked.lines[-1]["error"]["try"]
    code, out, said = await answered(b"n\n", *delete)
    assert (code, out) == (130, "")
    assert f"Remove {seed.GENERIC} from its team?" in said
    assert "not done: the answer was not yes" in said
    stale = await cellagent(*delete, "--yes", "--if-match", "old", "--json")
    assert stale.lines[-1]["error"]["kind"] == "precondition-failed"
    assert (await cellagent("device", "show", seed.GENERIC)).code == 0
    assert (await answered(b"y\n", *delete))[0] == 0
    assert (await cellagent("device", "show", seed.GENERIC)).code == 1
    assert (await cellagent("device", "delete", seed.FREE_FORM, "--yes")).code == 0


@pytest.mark.contract("D3.2", "D5.2")
async def test_objects_are_merged_into_the_state(standin_profile: str, standin: StandIn) -> None:
    state = ("device", "state", seed.GENERIC)
    assert (await cellagent(*state, "--desired", '{"led": {"on": true, "dim": 3}}')).code == 0
    assert (await cellagent(*state, "--desired", '{"led": {"dim": null}}')).code == 0
    shown = await cellagent("device", "show", seed.GENERIC, "--transform", "state.desired.led")
    assert shown.lines == [{"on": True}]
    stale = await cellagent(*state, "--desired", "{}", "--if-match", "old", "--json")
    assert stale.lines[-1]["error"]["kind"] == "precondition-failed"
    for wrong in ("[1]", "{", '{"a": NaN}', "[" * 100_000):
        refused = await cellagent(*state, "--desired", wrong, "--json")
        assert refused.code == 2
        assert "is no JSON object" in refused.lines[-1]["error"]["message"]
    nothing = await cellagent(*state, "--json")
    assert (nothing.code, nothing.lines[-1]["error"]["message"]) == (
        2,
        "there is nothing to change",
    )


async def test_a_kit_reports_and_sends_messages_in_its_own_name(located_kit: LocatedKit) -> None:
    kit = located_kit
    sent = await kit.run("device", "message", seed.GENERIC, '{"appId": "TEMP", "data": "21.5"}')
    assert sent.code == 0, sent.err
    topic = f"d/{seed.GENERIC}/d2c/bulk"
    bulk = '[{"appId": "A"}, {"appId": "B"}]'
    assert (await kit.run("device", "message", seed.GENERIC, bulk, "--topic", topic)).code == 0
    listed = await kit.run("device", "messages", seed.GENERIC, "--json")
    assert [one["message"]["appId"] for one in listed.lines] == ["B", "A", "TEMP"]
    wrong = await kit.run("device", "message", seed.GENERIC, "21.5", "--json")
    assert wrong.code == 2
    reported = await kit.run("device", "state", seed.GENERIC, "--reported", '{"ready": true}')
    assert reported.code == 0, reported.err


@pytest.mark.contract("D3.5", "D6")
async def test_a_descriptor_is_written_by_its_path(standin_profile: str) -> None:
    path = f"{seed.LED_SERVICE}/{seed.BUTTON_CHARACTERISTIC}/2902"
    assert (await cellagent("device", "write", seed.BLE, path.lower(), "01 00")).code == 0
    assert "descriptor 2902  [01 00]" in (await cellagent("device", "show", seed.BLE)).out
    missing = await cellagent("device", "write", seed.BLE, path + "1", "01 00", "--json")
    assert (missing.code, missing.lines[-1]["error"]["kind"]) == (1, "not-found")


@pytest.mark.contract("D3.5", "D6")
async def test_the_path_chooses_among_services_that_have_the_same_characteristic(
    standin_profile: str, standin: StandIn
) -> None:
    devices = registry(standin.cloud)
    record = devices.get(standin.team_id, seed.BLE)
    known = services(record)
    twin = msgspec.structs.replace(
        known[seed.LED_SERVICE].characteristics[seed.LED_CHARACTERISTIC],
        path=f"FFFF/{seed.LED_CHARACTERISTIC}",
    )
    known["FFFF"] = Service("FFFF", {seed.LED_CHARACTERISTIC: twin})
    record.fields.state = msgspec.to_builtins(known)
    devices.change(record)
    named = await cellagent("device", "write", seed.BLE, seed.LED_CHARACTERISTIC, "0a00", "--json")
    assert "is ambiguous" in named.lines[-1]["error"]["message"]
    path = f"FFFF/{seed.LED_CHARACTERISTIC}"
    assert (await cellagent("device", "write", seed.BLE, path, "0a00")).code == 0
    values = {
        uuid: service.characteristics[seed.LED_CHARACTERISTIC].value
        for uuid, service in services(devices.get(standin.team_id, seed.BLE)).items()
    }
    assert values == {seed.LED_SERVICE: [1, 0], "FFFF": [10, 0]}
    assert (await cellagent("device", "read", seed.BLE, path)).out == "0a 00\n"


async def test_der_is_told_the_command_that_makes_pem_of_it(
    standin_profile: str, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    file = tmp_path / "der ü.key"
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    file.write_bytes(key.public_bytes(serialization.Encoding.DER, form))
    refused = await cellagent("device", "register-key", seed.GENERIC, str(file), "--json")
    assert refused.code == 2
    error = refused.lines[-1]["error"]
    assert error["message"] == f"{file}: this is DER, and PEM is sent"
    commands = error["try"].split("`")[1::2]
    assert [shlex.split(command)[1] for command in commands] == ["x509", "pkey"]
    made = await asyncio.to_thread(subprocess.run, shlex.split(commands[1]), check=False)
    assert made.returncode == 0
    pem = f"{file}.pem"
    assert (await cellagent("device", "register-key", seed.GENERIC, pem)).code == 0


@pytest.mark.contract("D9.3", "D10.8")
async def test_a_device_is_onboarded_and_what_was_not_waited_for_is_shown_later(
    standin_profile: str, standin: StandIn, tmp_path: Path
) -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    file = tmp_path / "public.pem"
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    file.write_bytes(public.public_bytes(encoding, form))
    options = ("--tag", "bench", "--tag", "left", "--firmware", "APP", "--subtype", "tracker")
    onboard = ("device", "onboard", "new-kit", str(file), *options, "--json")
    done = await cellagent(*onboard)
    assert done.lines[0]["status"] == "SUCCEEDED", done.err
    shown = (await cellagent("device", "show", "new-kit", "--json")).lines[0]
    assert (shown["tags"], shown["subType"]) == (["bench", "left"], "tracker")
    assert shown["firmware"]["supports"] == ["APP"]
    standin.cloud.settings.bulk_s = 3600
    later = (await cellagent(*onboard, "--no-wait")).lines[0]
    assert later["status"] == "PENDING"
    request = await cellagent("device", "bulk-request", later["request"], "--json")
    assert request.lines[0]["bulkOpsRequestId"] == later["request"]
    standin.clock.advance(3601)
    people = await cellagent("device", "bulk-request", later["request"])
    assert people.out == f"bulk request {later['request']}: succeeded\n"
