"""What a handler can read of a request: what its operation declares, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import agent.standin
from agent.standin.core.serving import Query

_STANDIN = Path(agent.standin.__file__).parent
_UNDECLARED = {"query_params", "_request", "_served", "scope", "stream", "form"}
"""Ways to what a request brings beside what its operation declares."""


def test_a_parameter_that_is_not_declared_cannot_be_read() -> None:
    query = Query(frozenset({"tags", "name"}), {"tags": ["a"]})
    assert (query["tags"], query.get("name"), "name" in query) == (["a"], None, False)
    for read in (query.get, query.__getitem__, query.__contains__):
        with pytest.raises(AssertionError, match="declares no parameter 'deviceIdentifiers'"):
            read("deviceIdentifiers")


@pytest.mark.contract("D1.2")
@pytest.mark.parametrize("half", ["device_cloud", "observability"])
def test_no_half_reads_of_a_request_what_is_not_declared(half: str) -> None:
    read = {
        f"{path.name}:{node.lineno} {node.attr}"
        for path in (_STANDIN / half).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in _UNDECLARED
    }
    assert read == set()
