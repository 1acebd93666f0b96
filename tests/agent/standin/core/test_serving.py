"""What a handler can read of a request: what its operation declares, and nothing else."""

from __future__ import annotations

import pytest

from agent.standin.core.serving import Query


def test_a_parameter_that_is_not_declared_cannot_be_read() -> None:
    query = Query(frozenset({"tags", "name"}), {"tags": ["a"]})
    assert (query["tags"], query.get("name"), "name" in query) == (["a"], None, False)
    for read in (query.get, query.__getitem__, query.__contains__):
        with pytest.raises(AssertionError, match="declares no parameter 'deviceIdentifiers'"):
            read("deviceIdentifiers")
