"""The image that the demonstration installs."""

import hashlib
import struct

IMAGE_BYTES = 200_000
NEW_VERSION = (2, 0, 1)
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
