"""What of a failure is shown: the frames of the test, and of nothing that is installed."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import agent
import at
from agent.testing.failure import without_our_frames

TEST = "/home/me/proj/test_kit.py"
INSTALLED = [
    "/home/me/proj/.venv/lib/python3.11/site-packages/pytest_asyncio/plugin.py",
    "/home/me/.local/lib/python3.11/site-packages/_pytest/python.py",
    "/usr/lib/python3/dist-packages/_pytest/runner.py",
    f"{sysconfig.get_path('stdlib')}/asyncio/tasks.py",
    f"{at.__path__[0]}/driver/modem.py",
    f"{agent.__path__[0]}/testing/modem.py",
]


def raising(file: str, inner: Callable[[], object] | None = None) -> Callable[[], object]:
    """Return a function of a file that calls another, or fails."""
    scope: dict[str, Any] = {"inner": inner}
    code = "def outer():\n    return inner() if inner else 1 / 0\n"
    exec(compile(code, file, "exec"), scope)
    made: Callable[[], object] = scope["outer"]
    return made


def frames_of(failing: Callable[[], object]) -> TracebackType | None:
    with pytest.raises(ZeroDivisionError) as failed:
        failing()
    return failed.tb.tb_next  # that of this file is not asked about


def files(frames: TracebackType | None) -> list[str]:
    return [] if frames is None else [frames.tb_frame.f_code.co_filename, *files(frames.tb_next)]


def test_the_frames_of_a_test_are_shown_and_of_nothing_that_is_installed() -> None:
    for file in INSTALLED:
        within, around = raising(TEST, raising(file)), raising(file, raising(TEST))
        assert files(without_our_frames(frames_of(within))) == [TEST]
        assert files(without_our_frames(frames_of(around))) == [TEST]
        assert without_our_frames(frames_of(raising(file))) is None
    helper = str(Path(TEST).with_name("helper.py"))
    assert files(without_our_frames(frames_of(raising(TEST, raising(helper))))) == [TEST, helper]
