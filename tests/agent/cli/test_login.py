"""`cellagent login`, with a stand-in as the service."""

from __future__ import annotations

from pathlib import Path

from command_line import cellagent, private_text
from standin import StandIn

from agent.config.write import set_default_profile, write_profile


def profile_of(standin: StandIn) -> None:
    """Write a profile of the stand-in that holds no secret."""
    urls = dict.fromkeys(("device_cloud", "api"), standin.urls["device_cloud"])
    write_profile("lab", {"hosts": urls, "account": {"organization": "acme"}}, {})
    set_default_profile("lab")


async def test_what_is_accepted_is_kept_and_what_works_now_is_said(
    standin: StandIn, private_home: Path
) -> None:
    profile_of(standin)
    done = await cellagent("login", "api_key", stdin=standin.credentials["api_key"] + "\n")
    assert done.code == 0, done.err
    assert "cellagent device list --profile lab" in done.out
    assert standin.credentials["api_key"] not in done.out + done.err
    (path,) = (await cellagent("config", "path", "--json")).lines
    assert standin.credentials["api_key"] in private_text(path["secrets"])
    assert (await cellagent("device", "list")).code == 0


async def test_what_is_refused_is_not_kept(standin: StandIn, private_home: Path) -> None:
    profile_of(standin)
    done = await cellagent("login", "--json", stdin="api_key=canary-no-key-0001\n")
    (told,) = done.lines
    assert (done.code, told["accepted"], told["kept"]) == (5, False, None)
    assert "canary" not in done.out + done.err
    (shown,) = (await cellagent("config", "show", "api_key", "--json")).lines
    assert not shown["set"]


async def test_what_cannot_be_tried_is_kept_and_told(private_home: Path) -> None:
    write_profile("lab", {"hosts": {"device_cloud": "http://127.0.0.1:9"}}, {})
    words = ("login", "api_key", "--profile", "lab", "--json")
    done = await cellagent(*words, stdin="canary-a-key-0001\n")
    (told,) = done.lines
    assert (done.code, told["accepted"]) == (6, None)
    assert told["kept"]
    assert "canary" not in done.out + done.err


async def test_a_profile_without_services_and_lines_that_are_no_secrets_are_named(
    standin: StandIn, private_home: Path
) -> None:
    nothing = await cellagent("login", stdin="api_key=x")
    assert (nothing.code, "cellagent login --profile public" in nothing.err) == (2, True)
    profile_of(standin)
    wrong = await cellagent("login", stdin="canary-value\n")
    assert (wrong.code, "canary" in wrong.err) == (2, False)
