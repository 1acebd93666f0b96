"""Each operation is served on its hosts."""

from __future__ import annotations

import pytest
from observability import an_event, error_of, with_project_key, with_token
from standin import running_standin

from agent.standin.observability.routes import every_operation


@pytest.mark.contract("O1.4")
async def test_the_four_hosts_are_told_apart(tmp_path) -> None:
    async with running_standin(tmp_path, split=True) as standin:
        device, user = with_project_key(standin), with_token(standin)
        events = [an_event()]
        assert (await device("POST", "/api/v0/events", "ingress", json=events)).status_code == 202
        assert (await device("POST", "/api/v0/events", "chunks", json=events)).status_code == 404
        assert (await user("GET", "~/devices", "api")).status_code == 200
        for host in ("chunks", "ingress", "files"):
            assert error_of(await user("GET", "~/devices", host))["http_code"] == 404
        octets = {"Content-Type": "application/octet-stream"}
        for host, status in (("chunks", 202), ("api", 202), ("ingress", 404), ("files", 404)):
            answer = await device(
                "POST", "/api/v0/chunks/kit-1", host, content=b"\x08\0\0", headers=octets
            )
            assert answer.status_code == status, host
        prepare = {"kind": "MAR", "size": 3}
        for host, status in (("files", 200), ("api", 200), ("ingress", 200), ("chunks", 404)):
            answer = await device("POST", "/api/v0/upload", host, json=prepare)
            assert answer.status_code == status, host


def test_an_operation_has_one_name_and_one_path() -> None:
    every = every_operation()
    assert len({served.operation.name for served in every}) == len(every)
    paths = [(served.operation.method, served.operation.path) for served in every]
    assert len(set(paths)) == len(paths)
