"""`cellagent reload` where no agent runs."""

from __future__ import annotations

from tests.support.commands.command_line import completed


def test_where_no_agent_runs_it_is_exit_3() -> None:
    done = completed("reload")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
