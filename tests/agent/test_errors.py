"""The exit codes of commands, by the errors that end them."""

from __future__ import annotations

import re

import pytest

from agent import errors
from agent.errors import AgentError, exit_code_of
from at.protocol import errors as at


def subclasses(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def drawn() -> dict[str, int]:
    """Return the codes of the tree in the module's docstring: a branch has its parent's."""
    codes: dict[str, int] = {}
    parents: list[int] = []
    for line in (errors.__doc__ or "").splitlines():
        branch = re.fullmatch(r"((?:[│ ]   )*[├└]── )?([A-Z]\w+) +(?:(\d)  )?\S.*", line)
        if branch is None or (branch[1] is None and branch[2] != "AgentError"):
            continue
        depth = len(branch[1] or "") // 4
        code = int(branch[3]) if branch[3] else parents[depth - 1]
        parents[depth:] = [code]
        codes[branch[2]] = code
    return codes


def test_the_tree_in_the_docstring_is_the_classes_with_their_codes():
    ours = {each for each in subclasses(AgentError) if each.__module__ == "agent.errors"}
    assert drawn() == {each.__name__: each.exit_code for each in ours}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (at.PortBusy("x"), 3),
        (at.LinkLost("x"), 3),
        (at.NoAnswer("x"), 3),
        (at.ModemReset("x"), 3),
        (at.FirmwareRefused("x"), 4),
        (at.UnsafeArgument("x"), 2),
        (at.ParseError("x"), 1),
        (ValueError("x"), 1),
        (errors.Unavailable("x"), 6),
        (errors.ConfigError("x"), 2),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_error_of_either_package_has_its_exit_code(error: Exception, code: int):
    assert exit_code_of(error) == code


def test_what_this_host_lacks_has_one_code_wherever_it_is_noticed():
    from agent.daemon.control.client import NotRunning
    from agent.daemon.kit.link import KitAway, KitBusy
    from agent.fota.journal import JobsHeld
    from agent.provisioning.ledger.sqlite import LedgerHeld

    kinds = (NotRunning, KitAway, KitBusy, LedgerHeld, JobsHeld)
    assert {exit_code_of(kind("x")) for kind in kinds} == {3}
