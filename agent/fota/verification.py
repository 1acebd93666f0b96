"""Verifies an image before it is installed. The levels: size-checked, intact, verified.

*Size-checked*: only the declared size agrees. *Intact*: the image's own hash, version and type
agree with the job. *Verified*: a digest or signature from outside the image agrees. The words are
the same in the log, the status detail and `fota status`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from agent.errors import RefusedByRule
from agent.fota.image import BadImage, has_own_hash, is_mcuboot, read_image
from agent.fota.jobs import MCUBOOT_TYPES, MODEM_TYPES, FirmwareType, Job
from agent.fota.signatures import signs_file, signs_image
from agent.fota.versions import is_older, same_version

if TYPE_CHECKING:
    from pathlib import Path

    from agent.fota.image import McubootImage
    from agent.fota.signatures import PublicKey

_NAME_PROOF = (
    "`cellagent config set fota.public_key_file FILE` names its maker's public key, "
    "`cellagent config set fota.digests SHA256` the digest that it must have"
)
CHECKED_BY_KIT = "checked by the kit"
"""The word for an image that this host never sees: below every level."""


class ProofLevel(IntEnum):
    """How much is proven; a higher level includes the lower ones."""

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
class TrustPolicy:
    """What the profile requires of images, and the keys and digests to verify them with."""

    require: ProofLevel | None = None
    allow_downgrade: bool = False
    digests: tuple[str, ...] = ()
    """SHA-256 of files that the operator trusts, hex in lower case."""
    key: PublicKey | None = None

    @property
    def names_proof(self) -> bool:
        """Whether the profile names a key or digests to verify against."""
        return self.key is not None or bool(self.digests)


@dataclass(frozen=True, slots=True)
class Proof:
    """The claims about an image that are proven, and those that are not."""

    level: ProofLevel
    proven: tuple[str, ...]
    unproven: tuple[str, ...]
    sha256: str
    """Of the file, hex."""
    version: str = ""
    """Read from the image itself, "" where it holds none."""
    image_hash: str = ""
    """MCUboot's name for the image once it runs, hex, "" where it is no MCUboot image."""

    def sentence(self) -> str:
        """Return the proof as one line: "verified: ...; not proven: ..."."""
        text = f"{self.level.word}: {', '.join(self.proven)}"
        return text + (f"; not proven: {', '.join(self.unproven)}" if self.unproven else "")


def required_level(kind: FirmwareType, trust: TrustPolicy) -> ProofLevel:
    """Return what an image of this type must prove; `require` may only raise the default."""
    if kind in MCUBOOT_TYPES:
        default = ProofLevel.VERIFIED if trust.names_proof else ProofLevel.INTACT
    elif kind in MODEM_TYPES:
        # The modem itself checks its maker's signature.
        default = ProofLevel.SIZE_CHECKED
    else:
        default = ProofLevel.VERIFIED
    return max(default, trust.require or default)


def prove(path: Path, job: Job, sha256: str, trust: TrustPolicy) -> Proof:
    """Return what the file proves. Raises NotProven for what contradicts the job.

    `sha256` is the digest of the whole file, hex, taken while it arrived or read again.
    """
    proven = _agreeing_size(job)
    unproven: list[str] = []
    level = ProofLevel.SIZE_CHECKED
    image: McubootImage | None = None
    if job.kind in MCUBOOT_TYPES or is_mcuboot(path):
        image = _own_image(path, job, proven, unproven)
        if not image.encrypted:
            level = ProofLevel.INTACT
    else:
        unproven.append("version and type, which the image does not state")
    if job.md5:
        _check_md5(path, job)
        proven.append("the release's MD5")
        level = ProofLevel.INTACT
    outside = _outside(path, job, sha256, image, trust)
    if outside:
        proven.append(outside)
        level = ProofLevel.VERIFIED
    else:
        unproven.append("who made it: neither the job nor the profile names a digest or key")
    return Proof(
        level=level,
        proven=tuple(proven),
        unproven=tuple(unproven),
        sha256=sha256,
        version=image.version if image else "",
        image_hash=image.running_hash.hex() if image else "",
    )


def check_provable(job: Job, trust: TrustPolicy) -> None:
    """Raise NotProven where no image could ever prove enough: before a byte is downloaded."""
    needed = required_level(job.kind, trust)
    if job.by_kit:
        if trust.require is not None or (job.kind in MCUBOOT_TYPES and trust.names_proof):
            key = "modem_source" if job.kind in MODEM_TYPES else "source"
            raise NotProven(
                f"{job.kind.value} must be {needed.word}, and what the kit downloads is only "
                f"{CHECKED_BY_KIT}",
                hint=f"`cellagent config set fota.{key} jobs`: then this host sees the image, and "
                "proves it",
            )
        return
    if trust.names_proof or job.sha256:
        return
    if needed is ProofLevel.VERIFIED:
        raise NotProven(
            f"{job.kind.value} must be verified, and neither the job nor the profile names a "
            "digest or key",
            hint=_NAME_PROOF,
        )
    if needed is ProofLevel.INTACT and job.kind in MODEM_TYPES and not job.md5:
        raise NotProven(
            f"{job.kind.value} holds no hash of its own that could be checked",
            hint="`cellagent config set fota.digests SHA256` names the digest that it must have, "
            "`cellagent config unset fota.require` goes back to the default",
        )


def check_level(proof: Proof, kind: FirmwareType, trust: TrustPolicy) -> None:
    """Raise NotProven unless the proof reaches what type and profile ask for."""
    needed = required_level(kind, trust)
    if proof.level < needed:
        missing = "; ".join(proof.unproven)
        raise NotProven(
            f"the image is {proof.level.word}, {kind.value} must be {needed.word}: {missing}",
            hint=_NAME_PROOF,
        )


def check_downgrade(job: Job, version: str, running: str, trust: TrustPolicy) -> None:
    """Raise NotProven for an image older than the running one, unless the profile allows it.

    `version` is the image's own, "" where it states none; the job's is compared as well.
    """
    if not running or trust.allow_downgrade:
        return
    for candidate in (version, job.version):
        if candidate and is_older(candidate, running):
            raise NotProven(
                f"version {candidate} is older than the running {running}",
                hint="`cellagent config set fota.allow_downgrade true` lets it pass",
            )


def check_delta(job: Job, running: str) -> None:
    """Raise NotProven for a delta from another version than runs, unless that is the job's."""
    fits = job.delta_from, job.version
    if job.delta_from and running and not any(same_version(one, running) for one in fits):
        raise NotProven(f"the delta leads from {job.delta_from}, and {running} runs")


def _agreeing_size(job: Job) -> list[str]:
    if not job.size_bytes:
        return ["the size that the download host states"]
    return [f"size of {job.size_bytes} bytes"] if len(job.paths) == 1 else ["declared size"]


def _check_md5(path: Path, job: Job) -> None:
    """Raise NotProven for a file that is not the release's: damaged, not forged, shows here."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != job.md5:  # neither is a secret, and a service may write what is not ASCII
        raise NotProven(f"the file's MD5 is {found}, the release says {job.md5[:40]}")


def _own_image(path: Path, job: Job, proven: list[str], unproven: list[str]) -> McubootImage:
    """Check the image's own version, and its hash unless it is encrypted: its header never is."""
    if job.kind in MODEM_TYPES:
        raise NotProven(f"the file is an MCUboot image, not one for {job.kind.value}")
    try:
        image = read_image(path)
        agrees = has_own_hash(path, image)
    except BadImage as bad:
        raise NotProven(f"no whole image: {bad}") from bad
    if image.encrypted:
        unproven.append("the image's own hash, which covers what is encrypted")
    elif agrees:
        proven.append("the image's own hash")
    else:
        raise NotProven("the image's own hash does not agree with its content")
    if not job.version:
        unproven.append("the version, which the job does not name")
    elif not same_version(job.version, image.version):
        raise NotProven(f"the image says version {image.version}, the job {job.version}")
    else:
        proven.append(f"version {image.version}")
    return image


def _outside(
    path: Path, job: Job, sha256: str, image: McubootImage | None, trust: TrustPolicy
) -> str:
    """Return the evidence from outside the image that agrees, "" where there is none.

    Where the operator named a key or digests, only these count: whoever can write a job can also
    write a digest into it. What the job names must agree in any case.
    """
    if job.sha256 and job.sha256 != sha256:
        raise NotProven("the file's SHA-256 is not the one that the job names")
    evidence = ""
    if sha256 in trust.digests:
        evidence = "digest in the profile"
    elif trust.key is not None and image is not None and signs_image(trust.key, path, image):
        evidence = "signature in the image by the profile's key"
    if job.signature and trust.key is not None:
        if not signs_file(trust.key, path, job.signature):
            raise NotProven("the job's signature is not by the profile's key over this file")
        evidence = evidence or "signature in the job by the profile's key"
    if not evidence and trust.names_proof:
        raise NotProven("the profile names a key or digests, and none vouches for this file")
    if not evidence and job.sha256:
        evidence = "digest in the job"
    return evidence
