"""`cellagent observe` as it is run, against the stand-in."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent.observability.api.kinds import KINDS
from tests.support.cloud.byte_server import answering, serving
from tests.support.cloud.observability import deploy, make_release
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent, private_text
from tests.support.commands.on_a_terminal import answered
from tests.support.commands.running_agent import agent_on, kit_to_crash


@pytest.mark.contract("O5.6", "O5.5")
async def test_resources_are_created_listed_changed_and_deleted(
    standin_profile: str, standin: StandIn
) -> None:
    assert (await cellagent("observe", "whoami")).out.startswith(standin.credentials["user_email"])
    made = await cellagent(
        "observe", "cohort", "create", "--field", "slug=beta", "--field", "name=B"
    )
    assert made.code == 0
    await cellagent("observe", "cohort", "update", "beta", "--from", "-", stdin='{"name": "B 2"}')
    endless = await cellagent("observe", "cohort", "update", "beta", "--from", "/dev/zero")
    assert (endless.code, "/dev/zero: over 64 MiB" in endless.err) == (2, True)
    shown = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert shown.lines[0]["name"] == "B 2"
    listing = await cellagent("observe", "cohort", "list", "--sort", "-slug", "--json")
    assert "beta" in [cohort["slug"] for cohort in listing.lines]
    assert (await cellagent("observe", "cohort", "delete", "beta", "--yes")).code == 0
    gone = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert (gone.code, gone.lines[-1]["error"]["kind"]) == (1, "not-found")
    key = await cellagent("observe", "project-key", "--json")
    assert key.lines == [{"project_key": standin.credentials["project_key"]}]


@pytest.mark.contract("O5.6", "O1.2")
async def test_each_of_the_ten_kinds_has_its_commands(standin_profile: str) -> None:
    kinds = (
        "organization", "project", "release", "cohort", "device",
        "deployment", "event", "trace", "issue", "install",
    )  # fmt: skip
    listings = await asyncio.gather(
        *(cellagent("observe", kind, "list", "--json") for kind in kinds)
    )
    assert {
        kind: listing.err for kind, listing in zip(kinds, listings, strict=True)
    } == dict.fromkeys(kinds, "")
    assert {listing.code for listing in listings} == {0}


@pytest.mark.parametrize("kind", ["release", "cohort", "device"])
async def test_what_the_help_creates_is_created(standin_profile: str, kind: str) -> None:
    told = (await cellagent("observe", kind, "create", "--help")).out.rpartition("Example: ")[2]
    made = await cellagent(*told.split()[1:])
    assert made.code == 0, made.err


@pytest.mark.contract("O5.6", "O5.4")
async def test_the_latest_release_is_none_for_a_device_that_runs_it(
    standin_profile: str, standin: StandIn
) -> None:
    await make_release(standin, "2.0.0")
    await deploy(standin, "2.0.0")
    asked = ("observe", "latest-release", "kit-1", "nrf9161dk", "modem-app", "--json")
    for current, version in ((), "2.0.0"), (("--current", "1.0.0"), "2.0.0"):
        (told,) = (await cellagent(*asked, *current)).lines
        assert told["release"]["version"] == version
    (told,) = (await cellagent(*asked, "--current", "2.0.0")).lines
    assert told == {"release": None}


@pytest.mark.contract("O1.1")
async def test_a_wrong_name_is_not_sent_and_one_of_digits_is_a_text(standin_profile: str) -> None:
    for kind, field in (
        ("cohort", "slug=bad slug"),
        ("device", "device_serial=a.b"),
        ("release", "version=1.2"),
    ):
        made = await cellagent("observe", kind, "create", "--field", field, "--json")
        error = made.lines[-1]["error"]
        assert (made.code, error["kind"]) == (2, "usage")
        assert error["message"].startswith(field.partition("=")[0])
    named = ("--field", "device_serial=352656100441776", "--field", "hardware_version=2")
    made = await cellagent("observe", "device", "create", *named, "--json")
    assert made.code == 0, made.err
    assert made.lines[0]["device_serial"] == "352656100441776"
    wrong = await cellagent(
        "observe", "device", "update", "352656100441776", "--field", "cohort=a.b"
    )
    assert wrong.code == 2


@pytest.mark.contract("O4.2")
async def test_a_deleted_organization_token_ends_what_it_opened_and_the_next_step_is_named(
    standin_profile: str, standin: StandIn
) -> None:
    listing = ("observe", "cohort", "list", "--json")
    assert (await cellagent(*listing)).code == 0
    token = (await standin.control({}))["organization_tokens"][0]
    await standin.control({"delete_organization_token": token["id"]})
    refused = await cellagent(*listing)
    assert refused.code == 5
    assert "another where it was deleted" in refused.lines[-1]["error"]["try"]


@pytest.mark.contract("O5.5")
async def test_a_new_user_key_is_kept_and_not_shown(
    standin_profile: str, private_home: Path
) -> None:
    done = await cellagent("observe", "user-key", "--cycle", "--json")
    assert done.code == 0
    text = private_text(done.lines[0]["file"])
    kept = next(line for line in text.splitlines() if line.startswith("user_api_key"))
    assert kept.split('"')[1] not in done.out + done.err
    assert (await cellagent("observe", "whoami")).code == 0


async def test_a_user_without_a_name_is_shown_by_the_address_alone(standin_profile: str) -> None:
    body = b'{"email": "one@example.com", "name": null}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    async with serving(answering(answer % (len(body), body))) as url:
        assert (await cellagent("config", "set", "hosts.api", url)).code == 0
        done = await cellagent("observe", "whoami")
    assert done.out.split() == ["one@example.com"], done.err


@pytest.mark.contract("O5.5", "O4.3")
async def test_a_new_project_key_is_kept_and_the_next_push_takes_it(
    standin_profile: str, standin: StandIn
) -> None:
    old = standin.credentials["project_key"]
    done = await cellagent("observe", "project-key", "--cycle", "--json")
    assert done.code == 0, done.err
    (new,) = [line["project_key"] for line in done.lines]
    assert new != old
    told = await cellagent("config", "path", "--json")
    text = private_text(told.lines[0]["secrets"])
    assert new in text
    assert old not in text
    identity = "--device-serial k-1 --hardware-version hw --software-type app"
    event = f"report event {identity} --software-version 1.0.0 --metric x=1".split()
    pushed = await cellagent(*event)
    assert pushed.code == 0, pushed.err
    assert "403" not in pushed.err


async def test_a_user_key_that_was_ended_is_not_used_any_more(
    standin_profile: str, standin: StandIn
) -> None:
    assert (await cellagent("observe", "user-key", "--delete", "--yes")).code == 0
    told = await cellagent("config", "path", "--json")
    text = private_text(told.lines[0]["secrets"])
    assert standin.credentials["user_api_key"] not in text
    assert standin.credentials["user_password"] in text
    # The password opens the account again; a dead key before it would be a 401.
    assert (await cellagent("observe", "whoami")).code == 0


async def test_the_key_of_another_project_is_not_kept(
    standin_profile: str, standin: StandIn
) -> None:
    done = await cellagent("observe", "project-key", "--cycle", "--project", "no-location")
    assert done.code == 0, done.err
    assert "nothing is kept" in done.err
    told = await cellagent("config", "path", "--json")
    assert standin.credentials["project_key"] in private_text(told.lines[0]["secrets"])


async def test_a_key_that_could_not_be_kept_is_not_cycled(
    standin_profile: str, standin: StandIn
) -> None:
    told = await cellagent("config", "path", "--json")
    secrets = told.lines[0]["secrets"]
    os.chmod(secrets, 0o644)  # noqa: PTH101
    environment = {"CELLAGENT_ORG_TOKEN": standin.credentials["organization_auth_token"]}
    for which in ("project-key", "user-key"):
        done = await cellagent("observe", which, "--cycle", environment=environment)
        assert done.code != 0
    os.chmod(secrets, 0o600)  # noqa: PTH101
    key = await cellagent("observe", "project-key", "--json")
    assert key.lines == [{"project_key": standin.credentials["project_key"]}]


async def test_a_variable_that_still_holds_the_old_key_is_named(
    standin_profile: str, standin: StandIn
) -> None:
    environment = {"CELLAGENT_PROJECT_KEY": standin.credentials["project_key"]}
    done = await cellagent("observe", "project-key", "--cycle", environment=environment)
    assert done.code == 0, done.err
    assert "CELLAGENT_PROJECT_KEY precedes the secrets file" in done.err


async def test_a_running_agent_takes_the_new_key_at_once(
    standin_profile: str, standin: StandIn, tmp_path: Path
) -> None:
    async with kit_to_crash(tmp_path), agent_on({"CELLAGENT_PORT": str(tmp_path / "kit")}) as agent:
        done = await cellagent("observe", "project-key", "--cycle")
        assert done.code == 0, done.err
        assert "the running agent has read it" in done.err
        await agent.stop()


@pytest.mark.contract("O5.6")
@pytest.mark.parametrize(
    ("command", "question"),
    [
        (("cohort", "delete", "beta"), "Delete the cohort beta?"),
        (("cohort", "delete", "1", "2"), "Delete the cohorts 1, 2?"),
        (("user-key", "--delete"), "End your user API key, wherever it is used?"),
    ],
    ids=["one", "several", "key"],
)
async def test_nothing_is_deleted_before_somebody_was_asked(
    standin_profile: str, command: tuple[str, ...], question: str
) -> None:
    assert (await cellagent("observe", "cohort", "create", "--field", "slug=beta")).code == 0
    assert (await cellagent("observe", "user-key", "--cycle")).code == 0
    unasked = await cellagent("observe", *command, "--json")
    assert (unasked.code, unasked.lines[-1]["error"]["kind"]) == (2, "usage")
    assert "--yes" in unasked.lines[-1]["error"]["try"]
    code, out, said = await answered(b"n\n", "observe", *command)
    assert (code, out) == (130, "")
    assert question in said
    assert (await cellagent("observe", "cohort", "show", "beta")).code == 0
    assert (await cellagent("observe", "user-key", "--json")).lines[0]["user_key"] is True


async def test_the_help_of_each_kind_says_a_or_an_as_people_do() -> None:
    for kind in KINDS:
        article = "an" if kind in {"organization", "event", "issue", "install"} else "a"
        for verb, words in (("create", "Create"), ("delete", "Delete")):
            helped = await cellagent("observe", kind, verb, "--help")
            assert f"{words} {article} {kind}" in helped.out
