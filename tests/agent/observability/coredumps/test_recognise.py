"""Core dumps recognised by what they are, and names for their addresses."""

from __future__ import annotations

import io
import zipfile

import pytest

from agent.errors import UsageError
from agent.observability.coredumps.recognise import recognise, refuse_without_symbols
from agent.observability.ingest.uploads import FileKind
from tests.support.dumps.elf_files import firmware, linux_core
from tests.support.dumps.zephyr_dumps import partition


def named(data: bytes) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = "my file"
    return file


def packed(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"CORE")  # with a time that is always the same
    return data.getvalue()


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"CORE\x02\0\0\0", FileKind.COREDUMP),
        (b"ZE\x02\0\x03\0", FileKind.ZEPHYR_COREDUMP),
        (partition(b"ZE\x02\0\x03\0"), FileKind.ZEPHYR_COREDUMP),
        (linux_core(), FileKind.ELF_COREDUMP),
        (packed("7a/manifest.json", "7a/core.elf.gz"), FileKind.MAR),
    ],
)
def test_a_core_dump_is_known_by_its_first_bytes(data, kind):
    assert recognise(named(data)) is kind


@pytest.mark.parametrize(
    ("data", "words", "command"),
    [
        (b"", "no core dump", "cellagent capture coredump 'my file' --out core.bin"),
        (b"ZEBRA", "no core dump", "cellagent capture coredump 'my file' --out core.bin"),
        (firmware({}), "no core dump", "cellagent report file 'my file' --kind symbols"),
        (b"\x1f\x8b\x08", "compressed", "gunzip 'my file'"),
        (packed("core.bin"), "compressed", "unzip 'my file'"),
        (packed("manifest.json", "app_update.bin"), "compressed", "unzip 'my file'"),
        (packed("7a/manifest.json")[:40], "compressed", "unzip 'my file'"),
        (packed("ä.bin").replace("ä".encode(), b"\xff\xff"), "compressed", "unzip 'my file'"),
        (b"#CD:BEGIN#", "no core dump", "cellagent capture coredump 'my file' --out core.bin"),
    ],
)
def test_what_is_no_core_dump_is_refused_with_the_way_on(data, words, command):
    with pytest.raises(UsageError, match=words) as refused:
        recognise(named(data))
    assert command in refused.value.hint


@pytest.mark.parametrize(
    "data",
    [
        b":020000040000FA\n",
        b"\x3d\xb8\xf3\x96" + bytes(28),
        b"CORE\x02\0",
        b"ZE\x02\0",
        linux_core(),
        firmware({}, stripped=True),
        firmware({})[:-1],
        firmware({})[:40],
    ],
)
def test_what_holds_no_symbols_is_not_sent_as_them(data):
    with pytest.raises(UsageError, match="holds no symbols"):
        refuse_without_symbols(named(data))
    refuse_without_symbols(named(firmware({})))
