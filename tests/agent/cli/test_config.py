"""`cellagent config` as it is run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from agent.files.private_files import make_private_folder
from tests.support.commands.command_line import cellagent, private_text


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
    for wrong in ("canary two words\n", "canary-api\nkey-0003\n", "abc\n"):
        unusable = await cellagent("config", "set", "api_key", stdin=wrong)
        assert unusable.code == 2
        assert "canary" not in unusable.err + unusable.out
        assert "canary-api-key-0001" in private_text(path["secrets"])
    empty = await cellagent("config", "set", "api_key", stdin="\n")
    assert empty.code == 2


async def test_where_nothing_is_set_it_is_said_how_to_see_the_defaults(private_home: Path) -> None:
    shown = await cellagent("config", "show")
    assert shown.out.splitlines()[-1].endswith("`cellagent config show --all` lists them")
    assert "\nkit.baud  " in (await cellagent("config", "show", "--all")).out


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
    assert (unknown.code, "did you mean `cellagent config " in unknown.err) == (2, True)


async def test_a_profile_that_is_chosen_before_it_is_there_is_told_how_it_is_made(
    private_home: Path,
) -> None:
    chosen = await cellagent("config", "set", "profile", "lab")
    assert (chosen.code, "no profile lab yet: `cellagent config set KEY" in chosen.err) == (0, True)
    assert (await cellagent("config", "set", "kit.baud", "1000000")).code == 0
    assert (await cellagent("config", "set", "profile", "lab")).err == ""


async def test_the_password_in_a_proxy_s_url_is_not_shown(private_home: Path) -> None:
    url = "http://me:canary-word@127.0.0.1:3128"
    for key, value in (("hosts.proxy", url), ("fota.command", f"flash,{url},{{image}}")):
        for more in ((), ("--json",)):
            assert "canary" not in (await cellagent("config", "set", key, value, *more)).out
    for words in (("hosts.proxy",), ("fota.command",), ("hosts.proxy", "--json"), ()):
        shown = await cellagent("config", "show", *words)
        assert ("canary" in shown.out, "@127.0.0.1:3128" in shown.out) == (False, True)


async def test_profiles_are_listed_and_one_is_chosen(private_home: Path) -> None:
    await cellagent("config", "set", "kit.baud", "1000000", "--profile", "lab")
    assert (await cellagent("config", "use", "lab")).code == 0
    listed = (await cellagent("config", "list", "--json")).lines
    assert listed[0] == {"profile": "lab", "in_use": True, "base": "custom", "from": "file"}
    assert [line["profile"] for line in listed] == ["lab", "custom", "standin", "public"]
    people = (await cellagent("config", "list")).out
    assert "*  lab" in people
    wrong = await cellagent("config", "use", "lba")
    assert (wrong.code, "lab`?" in wrong.err) == (2, True)
    assert (await cellagent("config", "list", "--json")).lines[0]["in_use"]


async def test_a_value_and_a_secret_are_taken_back(private_home: Path) -> None:
    await cellagent("config", "set", "kit.baud", "1000000")
    await cellagent("config", "set", "kit.port", "virtual:")
    await cellagent("config", "set", "api_key", stdin="canary-api-key-0001\n")
    assert (await cellagent("config", "unset", "kit.baud")).code == 0
    assert (await cellagent("config", "unset", "api_key")).code == 0
    (baud,) = (await cellagent("config", "show", "kit.baud", "--json")).lines
    (port,) = (await cellagent("config", "show", "kit.port", "--json")).lines
    (secret,) = (await cellagent("config", "show", "api_key", "--json")).lines
    assert (baud["from"], port["value"], secret["set"]) == ("default", "virtual:", False)
    again = await cellagent("config", "unset", "kit.baud")
    assert (again.code, "custom" in again.err) == (2, True)
    other = await cellagent("config", "unset", "kit.baud", "--profile", "the lab")
    assert "`cellagent config show kit.baud --profile 'the lab'`" in other.err
    no_key = await cellagent("config", "unset", "kit.buad")
    assert "did you mean `cellagent config unset kit.baud`?" in no_key.err


async def test_what_a_running_agent_has_read_before_is_told_to_need_a_reload(
    private_home: Path,
) -> None:
    words = [("set", "kit.baud", "1000000"), ("set", "api_key"), ("unset", "kit.baud")]
    (path,) = (await cellagent("config", "path", "--json")).lines
    run = Path(path["state"], "run")
    make_private_folder(run)

    async def told(*, of: str = "lab") -> set[bool]:
        reload, key = f"`cellagent reload --profile {of}`", "canary-api-key-0001\n"
        every = [await cellagent("config", *each, "--profile", of, stdin=key) for each in words]
        assert {done.code for done in every} == {0}
        return {reload in done.err for done in every}

    with socket.socket(socket.AF_UNIX) as of_an_agent:
        of_an_agent.bind(str(run / "lab.sock"))
        of_an_agent.listen()
        assert await told() == {True}
        assert await told(of="another") == {False}
    assert await told() == {False}  # one that was killed leaves its socket


async def test_where_a_value_comes_from_that_is_set_by_its_older_name(private_home: Path) -> None:
    lab = ("--profile", "lab")
    assert (await cellagent("config", "set", "fota.mcuboot_port", "/dev/smp", *lab)).code == 0
    shown = await cellagent("config", "show", *lab)
    (kit,) = (line for line in shown.out.splitlines() if line.startswith("kit.mcuboot_port "))
    assert kit.endswith("profiles.lab.fota.mcuboot_port")
    (older,) = (line for line in shown.out.splitlines() if line.startswith("fota.mcuboot_port "))
    assert older.split() == ["fota.mcuboot_port", "/dev/smp", "file"]


async def test_a_kit_of_the_table_is_shown_with_what_it_has_of_all_kits(private_home: Path) -> None:
    """`(value, from, where)`: its own, then that of all kits, then the default."""
    lab = ("--profile", "lab")
    for key, value in (
        ("kit.baud", "1000000"),
        ("kit.keep_online", "always"),
        ("kit.port", "/dev/own"),
        ("kit.device_id", "mine"),
        ("kits.left.port", "/dev/left"),
        ("kits.left.baud", "9600"),
    ):
        assert (await cellagent("config", "set", key, value, *lab)).code == 0

    async def shown(*options: str, **environment: str) -> dict[str, tuple[object, str, str]]:
        done = await cellagent("config", "show", *lab, "--json", *options, environment=environment)
        return {
            line["key"]: (line["value"], line["from"], (line["where"] or "").rpartition(": ")[2])
            for line in done.lines
            if "key" in line
        }

    for_all = ("always", "file", "profiles.lab.kit.keep_online")
    own = (9600, "file", "profiles.lab.kits.left.baud")
    every = await shown()
    assert every["kits.left.keep_online"] == for_all
    assert every["kits.left.dialect"] == ("auto", "default", "")
    assert every["kits.left.device_id"][1:] == ("default", "")  # that of the kit on kit.port
    assert (every["kits.left.baud"], every["kit.baud"][0]) == (own, 1000000)
    for left in (await shown("--port", "left"), await shown(CELLAGENT_PORT="/dev/left")):
        assert (left["kit.keep_online"], left["kit.baud"]) == (for_all, own)
        assert left["kit.port"][0] == "/dev/left"
    assert (await shown("--port", "/dev/other"))["kit.baud"][0] == 1000000


@pytest.mark.parametrize(
    ("key", "environment", "giver"),
    [
        ("kit.mcuboot_port", {}, "profiles.custom.fota.mcuboot_port gives it now\n"),
        ("kits.left.baud", {}, "profiles.custom.kit.baud gives it now\n"),
        ("kit.port", {"CELLAGENT_PORT": "virtual:"}, "CELLAGENT_PORT gives it now\n"),
        ("api_key", {"CELLAGENT_API_KEY": "canary-api-key-0002"}, "CELLAGENT_API_KEY gives it now"),
        ("kit.device_id", {}, ""),
        ("kits", {}, ""),
    ],
)
async def test_what_gives_a_value_that_is_unset_is_told(
    private_home: Path, key: str, environment: dict[str, str], giver: str
) -> None:
    for setting in (
        "kit.mcuboot_port=/dev/own",
        "fota.mcuboot_port=/dev/smp",
        "kit.baud=9600",
        "kit.device_id=mine",
        "kits.left.baud=19200",
        "kit.port=/dev/one",
    ):
        assert (await cellagent("config", "set", setting)).code == 0
    await cellagent("config", "set", "api_key", stdin="canary-api-key-0001\n")
    done = await cellagent("config", "unset", key, environment=environment)
    assert (done.code, "gives it" in done.err) == (0, bool(giver)), done.err
    assert giver in done.err


@pytest.mark.parametrize(
    ("words", "environment", "first"),
    [
        (("fota.mcuboot_port", "/dev/smp"), {}, "kit.mcuboot_port"),
        (("kit.port", "/dev/one"), {"CELLAGENT_PORT": "virtual:"}, "CELLAGENT_PORT"),
        (("api_key",), {"CELLAGENT_API_KEY": "canary-api-key-0002"}, "CELLAGENT_API_KEY"),
        (("api_key",), {"CREDENTIALS_DIRECTORY": "given"}, "cellagent.api_key"),
        (("profile", "public"), {"CELLAGENT_PROFILE": "custom"}, "CELLAGENT_PROFILE=custom"),
        (("profile", "public"), {"CELLAGENT_PROFILE": "public"}, ""),
        (("api_key",), {"CELLAGENT_API_KEY": "of no use"}, ""),
        (("kit.mcuboot_port", "/dev/smp"), {"CELLAGENT_PORT": "virtual:"}, ""),
        (("api_key",), {"CELLAGENT_PORT": "virtual:"}, ""),
    ],
)
async def test_what_takes_precedence_over_a_value_that_is_set_is_told(
    private_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    environment: dict[str, str],
    first: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "cellagent.api_key").write_text("canary-api-key-0003")
    await cellagent("config", "set", "kit.mcuboot_port", "/dev/own")
    key = "canary-api-key-0001\n"
    done = await cellagent("config", "set", *words, stdin=key, environment=environment)
    said = f"{first} takes precedence" if first else ""
    assert (done.code, "takes precedence" in done.err) == (0, bool(first))
    assert said in done.err


@pytest.mark.parametrize(
    "typed",
    ["apikey canary-key-0001", "organization-token canary-key-0001", "api_key=canary-key-0001"],
)
async def test_a_secret_behind_a_name_that_is_nearly_its_own_is_neither_kept_nor_repeated(
    private_home: Path, typed: str
) -> None:
    refused = await cellagent("config", "set", *typed.split())
    assert (refused.code, "canary" in refused.err) == (2, False)
    assert "is a secret: it is no argument of a command" in refused.err


async def test_a_value_may_stand_behind_an_equals_sign(private_home: Path) -> None:
    done = await cellagent("config", "set", "kit.port=/dev/ttyACM1")
    assert (done.code, done.out) == (0, "kit.port = /dev/ttyACM1\n")


async def test_where_no_key_is_near_the_list_that_is_cut_ends_in_a_whole_key(
    private_home: Path,
) -> None:
    refused = await cellagent("config", "set", "zzzzzz", "1")
    assert refused.err.rstrip().endswith(", …")


async def test_a_value_may_be_below_zero(private_home: Path) -> None:
    key = "provisioning.limits.rsrp_min_dbm"
    set_ = await cellagent("config", "set", key, "-110", "--profile", "lab")
    assert (set_.code, set_.out) == (0, f"{key} = -110\n")
    assert (await cellagent("config", "set", key, "-x")).code == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("satus --json", "cellagent status --json"),
        ("modem chek --port virtual:", "cellagent modem check --port virtual:"),
        ("config lst", "cellagent config list"),
    ],
)
async def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    done = await cellagent(*typed.split())
    assert done.code == 2
    assert f"did you mean `{meant}`?" in done.err + done.out


@pytest.mark.parametrize(
    ("typed", "key"),
    [("provision run --station 3", "provisioning.station"),
     ("fota pull --allow-downgrade", "fota.allow_downgrade")],
)  # fmt: skip
async def test_an_option_that_only_the_profile_has_is_answered_with_its_key(
    typed: str, key: str
) -> None:
    done = await cellagent(*typed.split())
    assert (done.code, f"`cellagent config set {key} VALUE`" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("line", "word", "found"),
    [
        ("cellagent config use l", 3, ["lab"]),
        ("cellagent ports --profile s", 3, ["standin"]),
        ("cellagent config unset kit.ba", 3, ["kit.baud"]),
        ("cellagent config set api", 3, ["api_key"]),
        ("cellagent modem virtual --model nrf91", 4, ["nrf9160", "nrf9161", "nrf9151"]),
        ("cellagent modem virtual --fault sim-p", 4, ["sim-pin", "sim-puk"]),
        ("cellagent cloud serve --fault tls", 4, ["tls-wrong-certificate"]),
        ("cellagent ports --port le", 3, ["left"]),
        ("cellagent ports --profile standin --port le", 5, ["le"]),
        ("cellagent provision plan le", 3, ["left"]),
        ("cellagent config set kit.port le", 4, ["le"]),
    ],
)
async def test_names_that_are_known_are_completed(
    private_home: Path, line: str, word: int, found: list[str]
) -> None:
    for key, value in (("kit.baud", "1000000"), ("kits.left.port", "virtual:")):
        await cellagent("config", "set", key, value, "--profile", "lab")
    asked = {"_CELLAGENT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    done = await cellagent(environment={**asked, "CELLAGENT_PROFILE": "lab"})
    assert [each.partition(",")[2] for each in done.out.splitlines()] == found


async def test_a_stand_in_that_starts_again_keeps_what_a_person_set_in_its_profile(
    private_home: Path,
) -> None:
    serve = ("cloud", "serve", "--write-profile", "lab", "--", "true")
    assert (await cellagent(*serve)).code == 0
    for key, value in (("kit.port", "virtual:"), ("hosts.proxy", "http://127.0.0.1:9")):
        assert (await cellagent("config", "set", key, value, "--profile", "lab")).code == 0
    file = (await cellagent("config", "path", "--json")).lines[0]["config"]
    with open(file, "a", encoding="utf-8") as added:  # noqa: ASYNC230, PTH123 - a short file
        added.write("# mine\n")
    assert (await cellagent(*serve)).code == 0
    assert "# mine" in private_text(file)
    shown = (await cellagent("config", "show", "--profile", "lab", "--json")).lines
    values = {line["key"]: line["value"] for line in shown if "key" in line}
    assert (values["kit.port"], values["hosts.proxy"]) == ("virtual:", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("key", "value"), [("hosts.api", "https://api.example"), ("api_key", None)]
)
async def test_a_stand_in_does_not_take_a_profile_of_other_services(
    private_home: Path, key: str, value: str | None
) -> None:
    words = [value] if value else []
    stdin = "" if value else "canary-api-key-0001\n"
    await cellagent("config", "set", "kit.baud", "9600", "--profile", "real")
    await cellagent("config", "set", key, *words, "--profile", "real", stdin=stdin)
    done = await cellagent("cloud", "serve", "--write-profile", "real", "--", "true")
    assert done.code == 4
    assert key in done.err
    assert "canary" not in done.err
    (shown,) = (await cellagent("config", "show", key, "--profile", "real", "--json")).lines
    assert shown["from"] == "file"
