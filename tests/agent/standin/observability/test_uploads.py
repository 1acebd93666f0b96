"""Uploads are prepared, put and committed: clauses O5.2 and O5.3."""

from __future__ import annotations

import hashlib
import struct

import pytest

from tests.support.cloud.observability import IDENTITY, upload, with_project_key, with_token
from tests.support.cloud.standin import StandIn
from tests.support.dumps.elf_files import small_elf
from tests.support.dumps.sdk_bytes import coredump


@pytest.mark.contract("O5.2", "O5.3")
@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("ELF_COREDUMP", "elf_coredump", {"device": IDENTITY}),
        ("MAR", "mar", IDENTITY),
        ("ANDROID_BUG_REPORT", "bugreport", {}),
        ("CUSTOM_DATA_RECORDING", "custom-data-recording",
         {"start_time": "2026-01-02T03:04:05Z", "duration_secs": 0, "reason": "r",
          "mimetypes": ["application/vnd.zephyr.coredump"], "device": IDENTITY}),
    ],
)  # fmt: skip
async def test_a_device_uploads_a_file_of_each_kind(
    standin: StandIn, kind: str, path: str, body: dict
) -> None:
    caller = with_project_key(standin)
    answer = await upload(caller, b"payload", kind, f"/api/v0/upload/{path}", body)
    assert answer.status_code == 202, answer.text
    (stored,) = await with_token(standin).data("~/files", kind=kind)
    assert (stored["size"], stored["md5"]) == (7, hashlib.md5(b"payload").hexdigest())
    if kind == "ELF_COREDUMP":
        (trace,) = await with_token(standin).data("~/traces")
        assert trace["device"]["device_serial"] == "kit-1"


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize("user", [True, False])
async def test_a_core_dump_is_uploaded_in_three_steps(standin: StandIn, user: bool) -> None:
    caller = with_token(standin) if user else with_project_key(standin)
    answer = await upload(
        caller,
        coredump("kit-5"),
        "COREDUMP",
        "~/coredumps" if user else "/api/v0/upload/coredump",
        {},
        "~/upload" if user else "/api/v0/upload",
    )
    assert answer.status_code == 202, answer.text
    (trace,) = await with_token(standin).data("~/traces")
    assert trace["device"]["device_serial"] == "kit-5"


@pytest.mark.contract("O5.3")
async def test_symbols_are_found_by_their_build_id_and_taken_once(standin: StandIn) -> None:
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    sections = struct.pack("<IIIIIIIIII", 0, 7, 0, 0, 52, len(note), 0, 0, 4, 0)
    elf = b"\x7fELF\x01\x01\x01" + bytes(25) + struct.pack("<I", 52 + len(note)) + bytes(10)
    elf += struct.pack("<HHH", 40, 1, 0)
    elf += note + sections
    caller = with_token(standin)
    build_id = bytes(range(20)).hex()
    missing = await caller("HEAD", f"~/symbols-by-gnu-build-id/{build_id}", "files")
    assert missing.status_code == 404
    for status in (202, 409):
        answer = await upload(caller, elf, "SYMBOL_FILE", "~/symbols", {}, "~/upload")
        assert answer.status_code == status
    found = await caller("HEAD", f"~/symbols-by-gnu-build-id/{build_id}", "files")
    assert found.status_code == 200


@pytest.mark.contract("O5.3")
async def test_symbols_without_a_build_id_are_taken_once_for_each_version_of_the_software(
    standin: StandIn,
) -> None:
    caller = with_token(standin)
    bare = b"\x7fELF\x01\x01\x01" + bytes(45)

    async def sent(elf: bytes, **named: object) -> int:
        body = {"software_version": named} if named else {}
        return (await upload(caller, elf, "SYMBOL_FILE", "~/symbols", body, "~/upload")).status_code

    one, two = {"software_type": "main", "version": "1"}, {"software_type": "main", "version": "2"}
    other = {"software_type": "boot", "version": "1"}
    assert [await sent(bare, **named) for named in (one, two, other, {})] == [202] * 4
    assert [await sent(bare, **named) for named in (one, two, other, {})] == [409] * 4
    assert await sent(bare + b"\0", **one) == 202
    # A build id says by itself what a file belongs to.
    whole = small_elf()
    assert [await sent(whole, **named) for named in (one, two, {})] == [202, 409, 409]
    assert len(await caller.data("~/files?kind=SYMBOL_FILE")) == 6
