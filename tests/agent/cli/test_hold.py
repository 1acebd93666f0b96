"""`cellagent hold`: what is the kit, what is the program, and no agent at all."""

from __future__ import annotations

import pytest

from agent.cli.hold import command
from tests.support.commands.command_line import completed


@pytest.mark.parametrize(
    ("arguments", "kit", "program"),
    [
        ([], "", ()),
        (["left"], "left", ()),
        (["left", "--", "nrfutil", "--json", "-v"], "left", ("nrfutil", "--json", "-v")),
        (["--", "sh", "-c", "true", "--", "x"], "", ("sh", "-c", "true", "--", "x")),
    ],
)
def test_what_follows_the_first_dashes_is_the_program_s(
    arguments: list[str], kit: str, program: tuple[str, ...]
) -> None:
    context = command.make_context("hold", arguments)
    assert (context.params["kit"], context.params["cmd"]) == (kit, program)


def test_where_no_agent_runs_it_is_exit_3_and_the_program_is_not_run() -> None:
    done = completed("hold", "kit", "--", "true")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
