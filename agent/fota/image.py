"""An MCUboot image as it lies in a file: header, TLVs, and the hash computed over it.

Layout: MCUboot's design document, "Image format". Read here and not by smpclient's ImageInfo: that
one brings pydantic and 190 ms to a check that every update needs, and the extra is optional. Each
is held against the other in the tests. Memory does not grow with the image.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent.errors import AgentError
from at.protocol.counts import counted

MAGIC = 0x96F3B83D
_HEADER = struct.Struct("<IIHHIIBBHI4x")
_TLV_INFO = struct.Struct("<HH")
_TLV = struct.Struct("<HH")
_INFO_MAGIC = 0x6907
_PROTECTED_MAGIC = 0x6908
_ENCRYPTED = 0x04 | 0x08
_BLOCK_BYTES = 256 * 1024

HASH_TLVS = {0x10: "sha256", 0x11: "sha384", 0x12: "sha512"}
TLV_SIG_PURE = 0x25
_DECOMPRESSED_HASH = 0x71
SIGNATURE_TLVS = {0x20: "RSA-2048", 0x22: "ECDSA P-256", 0x23: "RSA-3072", 0x24: "Ed25519"}


class BadImage(AgentError):
    """The file is not a whole MCUboot image; the message says what is wrong with it."""

    kind = "fota-image"


@dataclass(frozen=True, slots=True)
class Tlv:
    """One type-length-value record after the image's body."""

    type: int
    value: bytes
    protected: bool


@dataclass(frozen=True, slots=True)
class McubootImage:
    """The header and TLVs of an MCUboot image, as it states them."""

    version: str
    """As imgtool writes it: "1.2.3+4"."""
    header_bytes: int
    body_bytes: int
    flags: int
    tlvs: tuple[Tlv, ...]
    hashed_bytes: int
    """How many bytes from the start the hash and the signature cover."""
    algorithm: str
    """Of the hash: sha256, sha384 or sha512."""
    stated_hash: bytes
    """The hash in its TLV; MCUboot names the image by it, as long as it lies as it was sent."""

    @property
    def encrypted(self) -> bool:
        """Return whether the body is encrypted: its hash is then over what we cannot see."""
        return bool(self.flags & _ENCRYPTED)

    @property
    def running_hash(self) -> bytes:
        """Return the hash that MCUboot names it by once it runs: a compressed one is unpacked."""
        return next(iter(self.values(_DECOMPRESSED_HASH)), self.stated_hash)

    def values(self, tlv_type: int) -> list[bytes]:
        """Return the values of one type, in order."""
        return [tlv.value for tlv in self.tlvs if tlv.type == tlv_type]


def is_mcuboot(path: Path) -> bool:
    """Return whether the file starts as an MCUboot image does."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC.to_bytes(4, "little")


def read_image(path: Path) -> McubootImage:
    """Read header and TLVs; every length is checked against the file. Raises BadImage."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = _exactly(file, 0, _HEADER.size, size, "the header")
        (magic, _load, header_bytes, protected_bytes, body_bytes, flags, major, minor, revision,
         build) = _HEADER.unpack(head)  # fmt: skip
        if magic != MAGIC:
            raise BadImage("the file does not start as an MCUboot image does")
        if header_bytes < _HEADER.size:
            raise BadImage(f"the image states a header of {header_bytes} bytes")
        end_of_body = header_bytes + body_bytes
        tlvs: list[Tlv] = []
        at = end_of_body
        if protected_bytes:
            at, more_tlvs = _area(file, at, size, _PROTECTED_MAGIC)
            if at - end_of_body != protected_bytes:
                raise BadImage("the header and the protected TLVs state different lengths")
            tlvs += more_tlvs
        end, more_tlvs = _area(file, at, size, _INFO_MAGIC)
        tlvs += more_tlvs
    if end != size:
        raise BadImage(
            f"{counted(size - end, 'bytes')} too many behind the end of the image, as imgtool adds "
            "with --pad or --confirm"
        )
    hashes = [tlv for tlv in tlvs if tlv.type in HASH_TLVS and not tlv.protected]
    if len(hashes) != 1:
        raise BadImage(f"the image states {len(hashes)} hashes of itself, not one")
    algorithm = HASH_TLVS[hashes[0].type]
    if len(hashes[0].value) != hashlib.new(algorithm).digest_size:
        raise BadImage(f"the image's {algorithm} has {len(hashes[0].value)} bytes")
    return McubootImage(
        version=f"{major}.{minor}.{revision}+{build}",
        header_bytes=header_bytes,
        body_bytes=body_bytes,
        flags=flags,
        tlvs=tuple(tlvs),
        hashed_bytes=at,
        algorithm=algorithm,
        stated_hash=hashes[0].value,
    )


def hash_of(path: Path, size_bytes: int, algorithm: str = "sha256") -> bytes:
    """Return the hash over the first `size_bytes` of the file. Raises BadImage if shorter."""
    digest = hashlib.new(algorithm)
    for block in blocks(path, size_bytes):
        digest.update(block)
    return digest.digest()


def has_own_hash(path: Path, image: McubootImage) -> bool:
    """Return whether the hash that an image states is that of its content. Raises BadImage."""
    return hash_of(path, image.hashed_bytes, image.algorithm) == image.stated_hash


def blocks(path: Path, size_bytes: int) -> Iterator[bytes]:
    """Yield the first `size_bytes` of the file in blocks. Raises BadImage if it is shorter."""
    left = size_bytes
    with path.open("rb", buffering=0) as file:
        while left:
            block = file.read(min(left, _BLOCK_BYTES))
            if not block:
                raise BadImage(f"the file ends {left} bytes early")
            left -= len(block)
            yield block


def _exactly(file: BinaryIO, at: int, count: int, size: int, what: str) -> bytes:
    if at + count > size:
        raise BadImage(f"the file of {size} bytes ends within {what}")
    file.seek(at, os.SEEK_SET)
    return file.read(count)


def _area(file: BinaryIO, at: int, size: int, magic: int) -> tuple[int, list[Tlv]]:
    """Read one area of TLVs; return where it ends, and its records."""
    name = "the protected TLVs" if magic == _PROTECTED_MAGIC else "the TLVs"
    area_magic, total = _TLV_INFO.unpack(_exactly(file, at, _TLV_INFO.size, size, name))
    if area_magic != magic:
        raise BadImage(f"{name} are not where the header says")
    area = _exactly(file, at, total, size, name)
    tlvs: list[Tlv] = []
    offset = _TLV_INFO.size
    while offset < total:
        if offset + _TLV.size > total:
            raise BadImage(f"{name} end within a record")
        tlv_type, length = _TLV.unpack_from(area, offset)
        offset += _TLV.size
        if offset + length > total:
            raise BadImage(f"{name} end within a record")
        tlvs.append(Tlv(tlv_type, area[offset : offset + length], magic == _PROTECTED_MAGIC))
        offset += length
    if offset != total:
        raise BadImage(f"{name} state a length of {total} bytes")
    return at + total, tlvs
