"""The files that core dumps are written to: OUT, OUT.1 ... and OUT.incomplete; all 0600."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import BinaryIO

from agent.console.dump_lines import CapturedDump
from agent.errors import UsageError
from agent.files.private_files import output_file, replacing
from agent.observability.ingest.device_identity import UNKNOWN, DeviceIdentity


def write_device_file(dump: Path, device: DeviceIdentity) -> None:
    """Write what is known of the dump's device beside the dump, as JSON."""
    known = {name: value for name, value in asdict(device).items() if value != UNKNOWN}
    with replacing(_device_file(dump), private=True, follow=False) as file:
        file.write(json.dumps(known).encode("ascii"))


def read_device_file(dump: Path) -> dict[str, str]:
    """Return what the file beside a dump says of its device, {} without one. Raises UsageError."""
    path = _device_file(dump)
    try:
        owner = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{path} cannot be read: {exc}", hint="remove it, and say it by option"
        ) from exc
    if not isinstance(owner, dict):
        raise UsageError(f"{path} holds no JSON object", hint="remove it, and say it by option")
    return {name: value for name, value in owner.items() if isinstance(value, str)}


def _device_file(dump: Path) -> Path:
    return dump.with_name(f"{dump.name}.device.json")


class DumpFiles:
    """Names and writes the files of the dumps: OUT, OUT.1 ... and OUT.incomplete, 0600."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.usable = 0
        self.others = 0

    @classmethod
    def unused(cls, out: Path) -> DumpFiles:
        """Return names after those of existing files, so that no earlier dump is overwritten."""
        files = cls(out)
        while files._usable_path().exists():
            files.usable += 1
        while files._other_path().exists():
            files.others += 1
        return files

    @property
    def advice(self) -> str:
        """The hint for a run that found no usable dump."""
        if self.others:
            return f"{self.others} cannot be used; what was heard is in {self.out}.incomplete"
        return (
            "the kit prints one with CONFIG_DEBUG_COREDUMP, or on `coredump print`; that of the "
            "device SDK comes in chunks, on `mflt export`"
        )

    def copy(self, source: BinaryIO, *, usable: bool) -> Path:
        """Copy a file that is one dump, of any size; return the copy's path. Raises OSError."""
        source.seek(0)
        return self._write(partial(shutil.copyfileobj, source), usable=usable)

    def write(self, captured: CapturedDump) -> Path | None:
        """Write one dump; return its path, None if it has no bytes. Raises OSError."""
        if not captured.data:
            return None
        return self._write(lambda file: file.write(captured.data), usable=captured.dump.usable)

    def _write(self, write: Callable[[BinaryIO], object], *, usable: bool) -> Path:
        path = self._usable_path() if usable else self._other_path()
        # The memory of a device holds its secrets: it goes where the name is, no link leads it on.
        with output_file(path, private=True, follow=False) as file:
            write(file)
        self.usable, self.others = self.usable + usable, self.others + (not usable)
        return path

    def _usable_path(self) -> Path:
        return Path(f"{self.out}.{self.usable}" if self.usable else self.out)

    def _other_path(self) -> Path:
        return Path(f"{self.out}.incomplete" + (f".{self.others}" if self.others else ""))
