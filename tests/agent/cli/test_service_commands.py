"""`cellagent device`, `observe` and `config` as they are run, against the stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Done, cellagent
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from standin import StandIn

from agent.config.write import set_default_profile, write_profile
from agent.standin.device_cloud import seed


@pytest.fixture
def profile(standin: StandIn, private_home: Path) -> str:
    """Write a profile for the stand-in, and make it the one that is used."""
    given = standin.credentials
    hosts = {name: url for name, url in standin.urls.items() if name != "downloads"}
    account = {"organization": standin.organization, "project": standin.project}
    write_profile(
        "sim",
        {"hosts": hosts, "account": {**account, "email": given["user_email"]}},
        {
            "api_key": given["api_key"],
            "organization_token": given["organization_auth_token"],
            "project_key": given["project_key"],
            "user_api_key": given["user_api_key"],
            "user_password": given["user_password"],
            "service_token": given["service_token"],
            "evaluation_token": given["evaluation_token"],
        },
    )
    set_default_profile("sim")
    return "sim"


def private_text(file: str) -> str:
    path = Path(file)
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text()


@pytest.mark.contract("O5.6")
async def test_devices_are_listed_shown_renamed_and_written(profile: str) -> None:
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


async def test_a_key_is_registered(profile: str, tmp_path: Path) -> None:
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


@pytest.mark.contract("O5.6", "O5.5")
async def test_resources_are_created_listed_changed_and_deleted(
    profile: str, standin: StandIn
) -> None:
    assert (await cellagent("observe", "whoami")).out.startswith(standin.credentials["user_email"])
    made = await cellagent(
        "observe", "cohort", "create", "--field", "slug=beta", "--field", "name=B"
    )
    assert made.code == 0
    await cellagent("observe", "cohort", "update", "beta", "--from", "-", stdin='{"name": "B 2"}')
    shown = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert shown.lines[0]["name"] == "B 2"
    listing = await cellagent("observe", "cohort", "list", "--sort", "-slug", "--json")
    assert "beta" in [cohort["slug"] for cohort in listing.lines]
    assert (await cellagent("observe", "cohort", "delete", "beta")).code == 0
    gone = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert (gone.code, gone.lines[-1]["error"]["kind"]) == (1, "not-found")
    key = await cellagent("observe", "project-key", "--json")
    assert key.lines == [{"project_key": standin.credentials["project_key"]}]


@pytest.mark.contract("O5.5")
async def test_a_new_user_key_is_kept_and_not_shown(profile: str, private_home: Path) -> None:
    done = await cellagent("observe", "user-key", "--cycle", "--json")
    assert done.code == 0
    text = private_text(done.lines[0]["file"])
    kept = next(line for line in text.splitlines() if line.startswith("user_api_key"))
    assert kept.split('"')[1] not in done.out + done.err
    assert (await cellagent("observe", "whoami")).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("observe", "event", "create", "--field", "a=1"), 2, "report event"),
        (("observe", "release", "show", "1.2"), 2, "Semantic Version"),
        (("observe", "event", "list", "--filter", "since=2026-01-01"), 2, "not a valid time"),
        (("observe", "cohort", "create"), 2, "no fields"),
        (("observe", "cohort", "create", "--field", "x"), 2, "NAME=VALUE"),
        (("observe", "cohort", "create", "--from", "-"), 2, "no JSON"),
        (("device", "write", seed.BLE, "nope", "00"), 1, "no characteristic"),
        (("device", "write", seed.BLE, seed.LED_CHARACTERISTIC, "256,0"), 2, "no bytes"),
        (("device", "show", ".."), 2, "cannot be a device id"),
        (("device", "show", "x", "--profile", "smi"), 2, "did you mean 'sim'"),
        (("device", "list", "--transform", "{{"), 1, "400"),
    ],
)
async def test_a_mistake_ends_with_its_code_and_says_what_to_do(
    profile: str, arguments: tuple[str, ...], code: int, named: str
) -> None:
    done = await cellagent(*arguments)
    assert done.code == code
    assert named in done.err
    assert "Traceback" not in done.err


async def test_a_service_that_cannot_be_reached_is_exit_6_and_a_bad_key_exit_5(
    profile: str,
) -> None:
    nobody = {"CELLAGENT_API_KEY": "no-such-key-of-the-test"}
    refused = await cellagent("device", "account", "--json", environment=nobody)
    assert (refused.code, refused.lines[-1]["error"]["kind"]) == (5, "credentials")
    write_profile("dead", {"hosts": {"device_cloud": "http://127.0.0.1:1"}}, {"api_key": "abcdef"})
    dead = await cellagent("device", "account", "--profile", "dead", "--json")
    assert (dead.code, dead.lines[-1]["error"]["kind"]) == (6, "unreachable")
    assert "try again in" in dead.err


@pytest.mark.parametrize("verbosity", [(), ("-v",), ("--json", "-vvv")])
async def test_no_secret_is_shown_at_any_verbosity(
    profile: str, standin: StandIn, verbosity: tuple[str, ...]
) -> None:
    secrets = {
        name: value
        for name, value in standin.credentials.items()
        if name not in {"user_email", "service_key_file"}
    }
    wrong = {"CELLAGENT_API_KEY": "canary-wrong-key-0123", "CELLAGENT_ORG_TOKEN": "oat_canary-0123"}
    runs: list[Done] = []
    for arguments in (
        ("device", "list"),
        ("device", "show", "no such device"),
        ("observe", "cohort", "list"),
        ("config", "show", "--all"),
    ):
        runs.append(await cellagent(*arguments, *verbosity))
        runs.append(await cellagent(*arguments, *verbosity, environment=wrong))
    canaries = [*secrets.values(), *wrong.values()]
    for run in runs:
        for canary in canaries:
            assert canary not in run.out + run.err
        assert "Traceback" not in run.err
    if "-vvv" in verbosity:
        assert any("DEBUG" in run.err for run in runs)


async def test_a_secret_is_read_from_standard_input_and_kept_private(private_home: Path) -> None:
    done = await cellagent("config", "set", "api_key", stdin="canary-api-key-0001\n")
    assert done.code == 0
    assert "canary" not in done.out + done.err
    (path,) = (await cellagent("config", "path", "--json")).lines
    assert "canary-api-key-0001" in private_text(path["secrets"])
    (shown,) = (await cellagent("config", "show", "api_key", "--json")).lines
    assert shown["set"] is True
    assert shown["from"] == "file"
    refused = await cellagent("config", "set", "api_key", "canary-api-key-0002")
    assert refused.code == 2
    empty = await cellagent("config", "set", "api_key", stdin="\n")
    assert empty.code == 2


async def test_configuration_is_shown_with_its_sources(private_home: Path) -> None:
    await cellagent("config", "set", "kit.baud", "1000000", "--profile", "lab")
    await cellagent("config", "set", "profile", "lab")
    shown = await cellagent("config", "show", "--json", environment={"CELLAGENT_PORT": "virtual:"})
    values = {line["key"]: line for line in shown.lines if "key" in line}
    assert (values["kit.baud"]["value"], values["kit.baud"]["from"]) == (1000000, "file")
    assert (values["kit.port"]["from"], values["kit.port"]["where"]) == (
        "environment",
        "CELLAGENT_PORT",
    )
    assert values["kit.dialect"]["from"] == "default"
    people = await cellagent("config", "show", "kit")
    assert all(line.startswith("k") for line in people.out.splitlines())
    unknown = await cellagent("config", "show", "kit.buad")
    assert (unknown.code, "did you mean 'kit.baud'?" in unknown.err) == (2, True)
