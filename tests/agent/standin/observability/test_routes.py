"""Each operation is served on its hosts."""

from __future__ import annotations

import pytest

from agent.standin.observability.routes import every_operation
from tests.support.cloud.observability import an_event, error_of, with_project_key, with_token
from tests.support.cloud.standin import running_standin


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


_DEVICE = {
    "device_serial": "kit-1",
    "hardware_version": "a",
    "software_type": "b",
    "software_version": "1.0.0",
}
_PUSHED = [
    ("ingress", "/api/v0/events", {"json": []}),
    ("ingress", "/api/v0/upload/coredump", {"content": b"CORE"}),
    ("ingress", "/api/v0/upload/elf_coredump", {"json": {"device": _DEVICE}}),
    ("ingress", "/api/v0/upload/mar", {"json": _DEVICE}),
    ("ingress", "/api/v0/upload/trace-import", {"json": {}}),
    ("chunks", "/api/v0/chunks/kit-1", {"content": b"\x08\0\0"}),
    ("files", "/api/v0/upload/bugreport", {"json": {}}),
]
"""What devices push: the host that it is for, its path, and a body that is at most refused."""


@pytest.mark.contract("O1.4", "O5.1", "O5.2", "O5.3")
@pytest.mark.parametrize(("own", "path", "body"), _PUSHED, ids=[path for _, path, _ in _PUSHED])
async def test_strictly_told_apart_a_push_is_taken_by_its_own_host_alone(
    tmp_path, own, path, body
) -> None:
    async with running_standin(tmp_path, strict=True) as standin:
        device = with_project_key(standin)
        takes = {
            host
            for host in ("api", "chunks", "ingress", "files")
            if (await device("POST", path, host, **body)).status_code != 404
        }
    assert takes == {own}


@pytest.mark.contract("O1.4", "O5.3")
async def test_strictly_told_apart_a_build_s_files_are_for_the_files_host(tmp_path) -> None:
    async with running_standin(tmp_path, strict=True) as standin:
        user = with_token(standin)
        for own, path in (
            ("files", "~/symbols"),
            ("files", "~/releases/ota_payload"),
            ("ingress", "~/coredumps"),
        ):
            takes = {
                host
                for host in ("api", "chunks", "ingress", "files")
                if (await user("POST", path, host, json={})).status_code not in {404, 405}
            }
            assert takes == {own}, path


def test_an_operation_has_one_name_and_one_path() -> None:
    every = every_operation()
    assert len({served.operation.name for served in every}) == len(every)
    paths = [(served.operation.method, served.operation.path) for served in every]
    assert len(set(paths)) == len(paths)
