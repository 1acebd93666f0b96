"""`cellagent config` as it is run."""

from __future__ import annotations

from pathlib import Path

from command_line import cellagent, private_text


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
