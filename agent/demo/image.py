"""A small MCUboot image for the demonstration, unsigned: it proves itself by its own hash."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile

_MAGIC = 0x96F3B83D
_HEADER_BYTES = 32
_TLV_MAGIC, _TLV_SHA256 = 0x6907, 0x10


def mcuboot_image(version: tuple[int, int, int], size: int) -> bytes:
    """Return an image of `size` bytes of code with a header, and its SHA-256 as a TLV."""
    major, minor, revision = version
    header = struct.pack(
        "<IIHHIIBBHII", _MAGIC, 0, _HEADER_BYTES, 0, size, 0, major, minor, revision, 0, 0
    )
    code = (b"cellagent demo " * (size // 15 + 1))[:size]
    digest = hashlib.sha256(header + code).digest()
    tlv = struct.pack("<HH", _TLV_SHA256, len(digest)) + digest
    return header + code + struct.pack("<HH", _TLV_MAGIC, 4 + len(tlv)) + tlv


def bundle(image: bytes, version: str) -> bytes:
    """Return the image as the zip file that the service takes, with its manifest."""
    manifest = {
        "name": "demo application",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "app_update.bin", "type": "application", "size": len(image)}],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("app_update.bin", image)
    return packed.getvalue()
