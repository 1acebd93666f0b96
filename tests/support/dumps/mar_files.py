"""Archives as a Linux device uploads them, written by hand from the published form."""

import gzip
import io
import json
import uuid
import zipfile
import zlib
from typing import Any

from tests.support.dumps.elf_files import small_elf

DEVICE = {
    "project_key": "test-project-key",
    "hardware_version": "board",
    "software_version": "1.2.3",
    "software_type": "linux-app",
    "device_serial": "linux-1",
}
LOG = b"""{"ts":"2026-01-02T03:04:05.5Z","level":"INFO","data":{"MESSAGE":"started"}}
a line that is no JSON
"""


def elf_core() -> bytes:
    """Return an ELF file that says it is a core."""
    core = bytearray(small_elf())
    core[16:18] = (4).to_bytes(2, "little")
    return bytes(core)


def entry(kind: str, metadata: dict[str, Any], *, device: Any = DEVICE) -> dict[str, Any]:
    """Return a manifest."""
    return {
        "schema_version": 1,
        "collection_time": {
            "timestamp": "2026-01-02T03:04:05.678Z",
            "uptime_ms": 1,
            "elapsed_realtime_ms": 1,
            "linux_boot_id": str(uuid.UUID(int=1)),
            "boot_count": 0,
        },
        "device": device,
        "producer": {"id": "memfaultd", "version": "1.25.2"},
        "type": kind,
        "metadata": metadata,
    }


def archive(*entries: tuple[dict[str, Any], dict[str, bytes]]) -> bytes:
    """Return a zip of manifests, each beside its files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for number, (manifest, attachments) in enumerate(entries):
            folder = uuid.UUID(int=number)
            file.writestr(f"{folder}/manifest.json", json.dumps(manifest))
            for name, content in attachments.items():
                file.writestr(f"{folder}/{name}", content)
    return out.getvalue()


def mar() -> bytes:
    """Return an archive with an entry of each kind."""
    core = {"coredump_file_name": "/tmp/core-1.elf.gz", "compression": "gzip"}
    metrics = {"metrics": {"load": 0.5, "os": "linux"}, "duration_ms": 42_000,
               "report_type": "heartbeat"}  # fmt: skip
    logs = {"format": {"id": "v1", "serialization": "json-lines"}, "compression": "zlib",
            "log_file_name": "system.log.zlib"}  # fmt: skip
    return archive(
        (entry("elf-coredump", core), {"core-1.elf.gz": gzip.compress(elf_core())}),
        (entry("linux-reboot", {"reason": 0x8008}), {}),
        (entry("linux-reboot", {"reason": {"unexpected": True, "name": "TooHot"}}), {}),
        (entry("linux-metric-report", metrics), {}),
        (entry("linux-logs", logs), {"system.log.zlib": zlib.compress(LOG)}),
        (entry("device-attributes", {"attributes": [{"string_key": "lot", "value": 7}]}), {}),
        (entry("device-config", {"revision": 1}), {}),
    )
