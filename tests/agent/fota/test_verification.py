from __future__ import annotations

import hashlib
import random
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.fota.image import read_image
from agent.fota.jobs import FirmwareType, Job
from agent.fota.signatures import load_public_key
from agent.fota.verification import (
    NotProven,
    Proof,
    ProofLevel,
    TrustPolicy,
    check_delta,
    check_downgrade,
    check_level,
    check_provable,
    prove,
    required_level,
)
from tests.support.fota.signed_images import public_pem, sign_file, signed_image, signing_key

NOBODY = TrustPolicy()


def job_for(path: Path, kind: FirmwareType = FirmwareType.APP, version: str = "v2.0.1") -> Job:
    return Job("j", kind, "h", ("p",), path.stat().st_size, version)


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def trust_in(path: Path, key: object) -> TrustPolicy:
    pem = path / "public.pem"
    pem.write_bytes(public_pem(key))
    return TrustPolicy(key=load_public_key(pem))


def proof_of(path: Path, job: Job, trust: TrustPolicy = NOBODY) -> Proof:
    proof = prove(path, job, sha(path), trust)
    check_level(proof, job.kind, trust)
    return proof


def test_an_application_with_its_own_hash_is_intact_and_no_more(tmp_path: Path) -> None:
    path = signed_image(tmp_path)
    proof = proof_of(path, job_for(path))
    assert proof.level is ProofLevel.INTACT
    assert proof.version == "2.0.1+0"
    assert "verified" not in proof.sentence()
    assert "not proven: who made it" in proof.sentence()


def test_a_digest_in_the_job_verifies(tmp_path: Path) -> None:
    path = signed_image(tmp_path)
    job = replace(job_for(path), sha256=sha(path))
    assert proof_of(path, job).level is ProofLevel.VERIFIED
    with pytest.raises(NotProven, match="not the one that the job names"):
        prove(path, replace(job, sha256="0" * 64), sha(path), NOBODY)


@pytest.mark.parametrize("kind", ["ecdsa", "ed25519", "rsa"])
def test_a_signature_in_the_image_by_the_operators_key_verifies(tmp_path: Path, kind: str) -> None:
    key = signing_key(kind)
    path = signed_image(tmp_path, key=key)
    proof = proof_of(path, job_for(path), trust_in(tmp_path, key))
    assert proof.level is ProofLevel.VERIFIED
    assert "signature in the image" in proof.sentence()


def test_a_signature_that_older_imgtool_padded_verifies(tmp_path: Path) -> None:
    key = signing_key("ecdsa")
    key.pad_sig, key.sig_len = True, lambda: 74  # two bytes longer than any: always padded
    path = signed_image(tmp_path, key=key)
    assert proof_of(path, job_for(path), trust_in(tmp_path, key)).level is ProofLevel.VERIFIED


def test_a_pure_signature_verifies(tmp_path: Path) -> None:
    key = signing_key("ed25519")
    path = signed_image(tmp_path, key=key, pure=True)
    assert proof_of(path, job_for(path), trust_in(tmp_path, key)).level is ProofLevel.VERIFIED


def test_another_key_or_none_refuses_once_a_key_is_named(tmp_path: Path) -> None:
    trust = trust_in(tmp_path, signing_key("ecdsa"))
    for key in (signing_key("ecdsa", 1), signing_key("ed25519"), None):
        path = signed_image(tmp_path, key=key)
        # Whoever writes the job writes its digest as well: it does not stand in for the key.
        job = replace(job_for(path), sha256=sha(path))
        with pytest.raises(NotProven, match="none vouches"):
            prove(path, job, sha(path), trust)


def test_a_signature_in_the_job_counts_by_the_operators_key_only(tmp_path: Path) -> None:
    key, other = signing_key("ecdsa"), signing_key("ecdsa", 1)
    path = tmp_path / "custom.bin"
    path.write_bytes(b"anything")
    job = job_for(path, FirmwareType.CUSTOM)
    good = replace(job, signature=sign_file(key, b"anything"))
    bad = replace(job, signature=sign_file(other, b"anything"))
    assert proof_of(path, good, trust_in(tmp_path, key)).level is ProofLevel.VERIFIED
    with pytest.raises(NotProven, match="not by the profile's key"):
        proof_of(path, bad, trust_in(tmp_path, key))
    with pytest.raises(NotProven, match="CUSTOM must be verified"):
        proof_of(path, good, NOBODY)


def test_a_digest_of_the_operator_vouches_for_its_file_only(tmp_path: Path) -> None:
    path = signed_image(tmp_path)
    assert (
        proof_of(path, job_for(path), TrustPolicy(digests=(sha(path),))).level
        is ProofLevel.VERIFIED
    )
    with pytest.raises(NotProven, match="none vouches"):
        proof_of(path, job_for(path), TrustPolicy(digests=("0" * 64,)))


def test_an_encrypted_image_is_known_by_its_hash_and_version_though_they_prove_nothing(
    tmp_path: Path,
) -> None:
    path = signed_image(tmp_path, key=signing_key(), encrypted_to=signing_key("ecdsa", 1))
    trust = TrustPolicy(digests=(sha(path),))
    with pytest.raises(NotProven, match="APP must be intact"):
        proof_of(path, job_for(path))
    with pytest.raises(NotProven, match=r"the image says version 2\.0\.1\+0, the job 3\.0\.0"):
        proof_of(path, job_for(path, version="3.0.0"), trust)
    proof = proof_of(path, job_for(path), trust)
    assert proof.image_hash == read_image(path).stated_hash.hex()
    assert (proof.level, proof.version) == (ProofLevel.VERIFIED, "2.0.1+0")
    assert proof.unproven == ("the image's own hash, which covers what is encrypted",)


def test_a_modem_image_may_be_size_checked_and_the_sentence_says_so(tmp_path: Path) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(b"\x12" * 100)
    proof = proof_of(path, job_for(path, FirmwareType.MODEM, "mfw_nrf9160_1.3.6"))
    assert proof.level is ProofLevel.SIZE_CHECKED
    assert proof.sentence().startswith("size-checked: size of 100 bytes; not proven: ")


@pytest.mark.parametrize(
    ("kind", "version", "reason"),
    [
        (FirmwareType.MODEM, "v2.0.1", "not one for MODEM"),
        (FirmwareType.APP, "v2.0.2", "says version 2.0.1"),
        (FirmwareType.BOOT, "nightly", "says version 2.0.1"),
    ],
)
def test_type_and_version_are_read_from_the_image(
    tmp_path: Path, kind: FirmwareType, version: str, reason: str
) -> None:
    path = signed_image(tmp_path)
    with pytest.raises(NotProven, match=reason):
        prove(path, job_for(path, kind, version), sha(path), NOBODY)


def test_a_file_that_is_no_image_is_no_application(tmp_path: Path) -> None:
    path = tmp_path / "html.bin"
    path.write_bytes(b"<html>not found</html>" * 50)
    with pytest.raises(NotProven, match="no whole image"):
        prove(path, job_for(path), sha(path), NOBODY)


@pytest.mark.parametrize("kind", list(FirmwareType))
@pytest.mark.parametrize("require", [None, *ProofLevel])
def test_require_only_raises(kind: FirmwareType, require: ProofLevel | None) -> None:
    default = required_level(kind, NOBODY)
    assert required_level(kind, TrustPolicy(require=require)) == max(default, require or default)


def test_a_downgrade_needs_leave(tmp_path: Path) -> None:
    path = signed_image(tmp_path)
    job = job_for(path)
    check_downgrade(job, "2.0.1+0", "2.0.1", NOBODY)
    check_downgrade(job, "2.0.1+0", "", NOBODY)
    with pytest.raises(NotProven, match=r"older than the running 2\.1\.0") as refused:
        check_downgrade(job, "2.0.1+0", "2.1.0", NOBODY)
    assert "`cellagent config set fota.allow_downgrade true`" in refused.value.hint
    check_downgrade(job, "2.0.1+0", "2.1.0", TrustPolicy(allow_downgrade=True))


@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN PUBLIC KEY-----\nAA==\n-----END"])
def test_a_key_file_that_holds_no_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"key\.pem"):
        load_public_key(path)
    with pytest.raises(UsageError, match=r"missing\.pem"):
        load_public_key(tmp_path / "missing.pem")


def test_a_flipped_bit_in_what_digest_signature_or_hash_covers_is_never_accepted(
    tmp_path: Path,
) -> None:
    key = signing_key("ecdsa")
    path = signed_image(tmp_path, key=key, protected=True, body=bytes(range(256)) * 2)
    whole, image = path.read_bytes(), read_image(path)
    job = job_for(path)
    by_digest = TrustPolicy(digests=(sha(path),))
    by_key = trust_in(tmp_path, key)
    draw = random.Random(7)
    accepted = []
    for _ in range(300):
        for covered, trust in ((len(whole), by_digest), (image.hashed_bytes, by_key),
                               (image.hashed_bytes, NOBODY)):  # fmt: skip
            broken = bytearray(whole)
            at = draw.randrange(covered)
            broken[at] ^= 1 << draw.randrange(8)
            path.write_bytes(broken)
            try:
                proof_of(path, job, trust)
            except NotProven:
                continue
            accepted.append((at, trust))
    assert not accepted


def test_the_md5_of_a_release_shows_a_modem_image_intact_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "delta.bin"
    path.write_bytes(b"abc")
    md5 = "900150983cd24fb0d6963f7d28e17f72"  # RFC 1321, A.5
    trust = TrustPolicy(require=ProofLevel.INTACT)
    job = replace(job_for(path, FirmwareType.MODEM), size_bytes=0, md5=md5)
    check_provable(job, trust)
    proof = proof_of(path, job, trust)
    assert proof.level is ProofLevel.INTACT
    assert "the size that the download host states, the release's MD5" in proof.sentence()
    with pytest.raises(NotProven, match=f"MD5 is {md5}, the release says 0000"):
        proof_of(path, replace(job, md5="0" * 32))
    with pytest.raises(NotProven, match="the release says größer"):
        proof_of(path, replace(job, md5="größer"))
    with pytest.raises(NotProven, match="no hash of its own"):
        check_provable(replace(job, md5=""), trust)


@pytest.mark.parametrize(
    ("delta_from", "running", "fits"),
    [
        ("2.0.2", "mfw_nrf91x1_2.0.2", True),
        ("2.0.1", "mfw_nrf91x1_2.0.2", False),
        ("", "mfw_nrf91x1_2.0.2", True),
        ("2.0.1", "mfw_nrf91x1_2.0.4", True),  # nothing is left to do
        ("2.0.1", "", True),  # the modem itself refuses a delta from another
    ],
)
def test_a_delta_leads_from_the_version_that_runs(
    tmp_path: Path, delta_from: str, running: str, fits: bool
) -> None:
    job = job_for(signed_image(tmp_path), FirmwareType.MODEM)
    job = replace(job, version="mfw_nrf91x1_2.0.4", delta_from=delta_from)
    with nullcontext() if fits else pytest.raises(NotProven, match=r"leads from 2\.0\.1, and"):
        check_delta(job, running)
