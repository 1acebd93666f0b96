"""`cellagent device`: lists by pages, the account and the documents, against the stand-in."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from agent.standin.device_cloud import seed
from agent.standin.faults import set_faults
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent, private_text


async def pages_of(*listing: str) -> list[Done]:
    """Return what each page of a list printed, following the tokens to the end."""
    pages = [await cellagent(*listing, "--json")]
    while (token := pages[-1].lines[-1]["paging"]["next"]) is not None:
        pages.append(await cellagent(*listing, "--json", "--page", token))
    return pages


@pytest.mark.contract("D4.1")
async def test_the_pages_of_a_list_are_together_the_whole_list(standin_profile: str) -> None:
    for listing in (("device", "list"), ("device", "list", "--transform", "id")):
        whole = (await cellagent(*listing, "--json")).lines
        pages = await pages_of(*listing, "--per-page", "3")
        assert [len(page.lines) - 1 for page in pages] == [3, len(whole) - 3]
        assert [item for page in pages for item in page.lines[:-1]] == whole


@pytest.mark.contract("D4.1")
async def test_a_person_is_told_how_the_next_page_is_shown(standin_profile: str) -> None:
    first = await cellagent("device", "list", "--per-page", "3")
    assert len(first.out.splitlines()) == 4
    following = first.err.partition("the same with ")[2]
    last = await cellagent("device", "list", "--per-page", "3", *shlex.split(following))
    assert last.err.strip() == "the last page"
    again = await cellagent("device", "list", "--per-page", "3", "--page", "")
    assert again.out == first.out
    wrong = await cellagent("device", "list", "--page", "no token", "--json")
    assert (wrong.code, wrong.lines[-1]["error"]["kind"]) == (1, "invalid-request")
    assert (await cellagent("device", "list", "--per-page", "101")).code == 2


async def test_messages_are_paged_whatever_their_limit(
    standin_profile: str, standin: StandIn
) -> None:
    for number in range(5):
        await standin.client.post(
            f"/v1/devices/{seed.GENERIC}/messages",
            headers=standin.bearer("api_key"),
            json={"message": {"appId": str(number)}},
        )
    pages = await pages_of("device", "messages", "--per-page", "2", "--limit", "1")
    shown = [[one["message"]["appId"] for one in page.lines[:-1]] for page in pages]
    assert shown == [["4", "3"], ["2", "1"], ["0"]]
    limited = await cellagent("device", "messages", "--limit", "3", "--json")
    assert len(limited.lines) == 3


@pytest.mark.contract("D5.2", "D7")
async def test_a_discovery_may_depend_on_the_version_of_the_device(standin_profile: str) -> None:
    version = (await cellagent("device", "show", seed.BLE, "--json")).lines[0]["$meta"]["version"]
    assert f"  version    {version}\n" in (await cellagent("device", "show", seed.BLE)).out
    discover = ("device", "discover", seed.GATEWAY, seed.BLE, "--no-wait", "--json")
    stale = await cellagent(*discover, "--if-match", "old")
    assert stale.lines[-1]["error"]["kind"] == "precondition-failed"
    assert (await cellagent(*discover, "--if-match", version)).code == 0


@pytest.mark.contract("D1.2", "O4.4")
async def test_both_services_describe_themselves(standin_profile: str) -> None:
    for half, scheme in (("device", "Simple Token"), ("observe", "Basic")):
        done = await cellagent(half, "openapi")
        [document] = done.lines
        assert document["openapi"].startswith("3.")
        assert scheme in json.dumps(document["components"]["securitySchemes"])


@pytest.mark.contract("D9.4", "D10.4")
async def test_a_service_token_is_kept_and_never_shown(
    standin_profile: str, private_home: Path, tmp_path: Path
) -> None:
    done = await cellagent("device", "service-token", "--json")
    assert done.code == 0, done.err
    assert "any time after July 1, 2026" in done.err
    stored = Path(done.lines[0]["file"])
    assert private_home in stored.parents
    before = private_text(stored)
    file = tmp_path / "service.pem"
    make = ("device", "service-token", "--new-key", str(file), "--json")
    unasked = await cellagent(*make)
    assert (unasked.code, file.exists()) == (2, False)
    made = await cellagent(*make, "--yes")
    assert made.lines == [{"file": str(stored), "key_file": str(file)}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_pem_private_key(file.read_bytes(), None)
    assert private_text(stored) != before
    key = file.read_bytes()
    refused = await cellagent(*make, "--yes")
    assert (refused.code, file.read_bytes()) == (4, key)
    for each in (done, made, refused):
        assert "PRIVATE KEY" not in each.out + each.err
        assert "eyJ" not in each.out + each.err
    command = made.err.partition("`cellagent ")[2].partition("`")[0]
    assert (await cellagent(*shlex.split(command))).code == 0


@pytest.mark.contract("D9.4", "D10.9")
async def test_a_key_that_is_not_made_leaves_no_file(
    standin_profile: str, standin: StandIn, tmp_path: Path
) -> None:
    await standin.control({"plan": "DEVELOPER"})
    file = tmp_path / "service.pem"
    refused = await cellagent("device", "service-token", "--new-key", str(file), "--yes", "--json")
    assert refused.code == 5
    assert "Pro or Enterprise plan" in refused.lines[-1]["error"]["try"]
    assert not file.exists()


@pytest.mark.contract("O5.6", "D4.1")
async def test_a_list_shows_a_name_only_where_it_is_another_than_the_id(
    standin_profile: str,
) -> None:
    assert (await cellagent("device", "rename", seed.GENERIC, "north-door")).code == 0
    rows = [line.split() for line in (await cellagent("device", "list")).out.splitlines()]
    [named] = [row for row in rows if seed.GENERIC in row]
    assert named[:2] == [seed.GENERIC, "north-door"]
    [unnamed] = [row for row in rows if seed.BLE in row]
    assert unnamed.count(seed.BLE) == 1


async def test_a_service_that_asks_for_a_wait_is_quoted_with_how_long(
    standin: StandIn, standin_profile: str
) -> None:
    set_faults(standin.cloud, ["too-many-requests=90@/v1/devices"])
    done = await cellagent("device", "list")
    assert done.code == 6
    assert "try: the service asks to wait 90 s, until " in done.err
