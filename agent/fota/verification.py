"""What an image has proven before it may be installed: size-checked, intact or verified.

*Size-checked*: only the declared size agrees. *Intact*: the image's own hash, version and type
agree with the job. *Verified*: a digest or signature from outside the image agrees. The words are
the same in the log, the status detail and `fota status`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from agent.errors import RefusedByRule, UsageError
from agent.fota import signature
from agent.fota.image import BadImage, hash_of, is_mcuboot, read_image
from agent.fota.jobs import MCUBOOT_TYPES, MODEM_TYPES, FirmwareType, Job
from agent.fota.versions import is_older, same_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent.fota.image import McubootImage
    from agent.fota.signature import PublicKey


class Level(IntEnum):
    """How much is proven; a higher level includes what the lower ones stand for."""

    SIZE_CHECKED = 1
    INTACT = 2
    VERIFIED = 3

    @property
    def word(self) -> str:
        """The word for people and for the profile."""
        return self.name.lower().replace("_", "-")


class NotProven(RefusedByRule):
    """The image did not prove what it must; it is not installed. The message says what failed."""

    kind = "fota-verification"


@dataclass(frozen=True, slots=True)
class Trust:
    """What the operator's profile says about images."""

    require: Level | None = None
    allow_downgrade: bool = False
    digests: tuple[str, ...] = ()
    """SHA-256 of files that the operator vouches for, hex in lower case."""
    key: PublicKey | None = None

    @property
    def named(self) -> bool:
        """Tell whether the operator named something to verify against."""
        return self.key is not None or bool(self.digests)


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proven of an image, and what is not."""

    level: Level
    proven: tuple[str, ...]
    unproven: tuple[str, ...]
    sha256: str
    """Of the file, hex."""
    version: str = ""
    """Read from the image itself, "" where it holds none."""
    image_hash: str = ""
    """MCUboot's name for the image, hex, "" where it is no MCUboot image."""

    def sentence(self) -> str:
        """Return the proof as one line: "verified: ...; not proven: ..."."""
        text = f"{self.level.word}: {', '.join(self.proven)}"
        return text + (f"; not proven: {', '.join(self.unproven)}" if self.unproven else "")


def parse_level(word: str) -> Level | None:
    """Return the level that `fota.require` names, None for "". Raises UsageError."""
    if not word:
        return None
    for level in Level:
        if level.word == word:
            return level
    words = ", ".join(level.word for level in Level)
    raise UsageError(f"fota.require is {word!r}", hint=f"use one of {words}")


def required_level(kind: FirmwareType, trust: Trust) -> Level:
    """Return what an image of this type must prove; `require` may only raise the default."""
    if kind in MCUBOOT_TYPES:
        default = Level.VERIFIED if trust.named else Level.INTACT
    elif kind in MODEM_TYPES:
        # The modem itself checks its maker's signature.
        default = Level.SIZE_CHECKED
    else:
        default = Level.VERIFIED
    return max(default, trust.require or default)


def prove(path: Path, job: Job, sha256: str, trust: Trust) -> Proof:
    """Return what the file proves. Raises NotProven for what contradicts the job.

    `sha256` is the digest of the whole file, hex, taken while it arrived or read again.
    """
    proven = [f"size of {job.size_bytes} bytes"] if len(job.paths) == 1 else ["declared size"]
    unproven: list[str] = []
    level = Level.SIZE_CHECKED
    image: McubootImage | None = None
    if job.kind in MCUBOOT_TYPES or is_mcuboot(path):
        image = _own_hash(path, job, proven, unproven)
        if image is not None:
            level = Level.INTACT
    else:
        unproven.append("version and type, which the image does not state")
    outside = _outside(path, job, sha256, image, trust)
    if outside:
        proven.append(outside)
        level = Level.VERIFIED
    else:
        unproven.append("who made it: neither the job nor the profile names a digest or key")
    return Proof(
        level=level,
        proven=tuple(proven),
        unproven=tuple(unproven),
        sha256=sha256,
        version=image.version if image else "",
        image_hash=image.stated_hash.hex() if image else "",
    )


def check_provable(job: Job, trust: Trust) -> None:
    """Raise NotProven where no image could ever prove enough: before a byte is downloaded."""
    needed = required_level(job.kind, trust)
    if needed is Level.VERIFIED and not (trust.named or job.sha256):
        raise NotProven(
            f"{job.kind.value} must be verified, and neither the job nor the profile names a "
            "digest or key",
            hint="name one in the profile (fota.digests, fota.public_key_file)",
        )
    if needed is Level.INTACT and job.kind in MODEM_TYPES and not (trust.named or job.sha256):
        raise NotProven(
            f"{job.kind.value} holds no hash of its own that could be checked",
            hint="name its digest in the profile (fota.digests), or lower fota.require",
        )


def check_level(proof: Proof, kind: FirmwareType, trust: Trust) -> None:
    """Raise NotProven unless the proof reaches what the type and the profile ask for."""
    needed = required_level(kind, trust)
    if proof.level < needed:
        missing = "; ".join(proof.unproven)
        raise NotProven(
            f"the image is {proof.level.word}, {kind.value} must be {needed.word}: {missing}",
            hint="name the image's digest or its maker's public key in the profile "
            "(fota.digests, fota.public_key_file)",
        )


def check_downgrade(job: Job, version: str, running: str, trust: Trust) -> None:
    """Raise NotProven for an image older than the running one, unless the profile allows it.

    `version` is the image's own where it states one, "" else: then the job's word counts.
    """
    if not running or trust.allow_downgrade:
        return
    for candidate in (version, job.version):
        if candidate and is_older(candidate, running):
            raise NotProven(
                f"version {candidate} is older than the running {running}",
                hint="fota.allow_downgrade lets it pass",
            )


def _own_hash(path: Path, job: Job, proven: list[str], unproven: list[str]) -> McubootImage | None:
    """Check what the image says of itself; None where that cannot be seen (encrypted)."""
    if job.kind in MODEM_TYPES:
        raise NotProven(f"the file is an MCUboot image, not one for {job.kind.value}")
    try:
        image = read_image(path)
        if image.encrypted:
            unproven.append("the image's own hash, which covers what is encrypted")
            return None
        own = hash_of(path, image.hashed_bytes, image.algorithm)
        if not hmac.compare_digest(own, image.stated_hash):
            raise NotProven("the image's own hash does not agree with its content")
    except BadImage as bad:
        raise NotProven(f"no whole image: {bad}") from bad
    proven.append("the image's own hash")
    if not job.version:
        unproven.append("the version, which the job does not name")
    elif not same_version(job.version, image.version):
        raise NotProven(f"the image says version {image.version}, the job {job.version}")
    else:
        proven.append(f"version {image.version}")
    return image


def _outside(path: Path, job: Job, sha256: str, image: McubootImage | None, trust: Trust) -> str:
    """Return what from outside the image agrees, "" where there is nothing to compare with.

    Where the operator named a key or digests, only these count: whoever can write a job can also
    write a digest into it. What the job names must agree in any case.
    """
    if job.sha256 and not hmac.compare_digest(job.sha256, sha256):
        raise NotProven("the file's SHA-256 is not the one that the job names")
    found: Sequence[str] = ()
    if sha256 in trust.digests:
        found = ("digest in the profile",)
    elif (
        trust.key is not None
        and image is not None
        and signature.signs_image(trust.key, path, image)
    ):
        found = ("signature in the image by the profile's key",)
    if job.signature and trust.key is not None:
        if not signature.signs_file(trust.key, path, job.signature):
            raise NotProven("the job's signature is not by the profile's key over this file")
        found = found or ("signature in the job by the profile's key",)
    if not found and trust.named:
        raise NotProven("the profile names a key or digests, and none vouches for this file")
    if not found and job.sha256:
        found = ("digest in the job",)
    return ", ".join(found)
