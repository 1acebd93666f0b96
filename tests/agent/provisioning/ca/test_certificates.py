"""Keys made on this host: readable by their owner alone, never overwritten, told when they fail."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.errors import AgentError, RefusedByRule
from agent.provisioning.ca.certificates import (
    load_host_key,
    load_or_make_host_key,
    private_pem,
    self_signed,
    store_host_key,
)

NOW = datetime.now(UTC).replace(microsecond=0)


def test_a_host_key_is_private_from_the_first_moment_and_never_overwritten(tmp_path: Path) -> None:
    folder, key = tmp_path / "keys", load_or_make_host_key(tmp_path / "keys", "")
    file = folder / "board.pem"
    before = os.umask(0)
    try:
        store_host_key(key, file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert file.read_text() == private_pem(key)
    assert [path.name for path in folder.iterdir()] == ["board.pem"]
    store_host_key(key, file)  # the same once more: a run that was cut off goes on
    with pytest.raises(RefusedByRule, match="never overwritten"):
        store_host_key(load_or_make_host_key(folder, ""), file)
    assert file.read_text() == private_pem(key)
    certificate = self_signed(key, "device-1", NOW, timedelta(days=9))
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert (begin, end) == (NOW - timedelta(days=1), NOW + timedelta(days=9))
    certificate.verify_directly_issued_by(certificate)


def test_a_run_that_was_cut_off_goes_on_with_the_key_that_it_noted(tmp_path: Path) -> None:
    key = load_or_make_host_key(tmp_path, "board.pem")
    store_host_key(key, tmp_path / "board.pem")
    again = load_or_make_host_key(tmp_path, "../elsewhere/board.pem")  # a name, never a path
    assert private_pem(again) == private_pem(key)


KILLED_WHILE_IT_STORES = """
import os, signal, sys
from pathlib import Path
from agent.provisioning.ca.certificates import load_host_key, store_host_key
file = Path(sys.argv[1])
key = load_host_key(file)
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
store_host_key(key, file)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_a_kill_leaves_no_second_copy_of_a_key_behind_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "board.pem"
    key = load_or_make_host_key(file.parent, "")
    store_host_key(key, file)
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_STORES, file], check=False)
    assert ended.returncode == -signal.SIGKILL
    store_host_key(key, file)
    assert [path.name for path in file.parent.iterdir()] == ["board.pem"]


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (None, 0o600, "cannot read"),
        (b"no key", 0o600, "holds no private key"),
        (private_pem(ec.generate_private_key(ec.SECP256R1())).encode(), 0o640, "others can read"),
        (private_pem(ec.generate_private_key(ec.SECP384R1())).encode(), 0o600, "no P-256 key"),
        (
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"test only"),
            ),
            0o600,
            "holds no private key",
        ),
    ],
    ids=["missing", "no key", "open to others", "P-384", "encrypted"],
)
def test_a_host_key_that_cannot_be_used_is_told(
    tmp_path: Path, content: bytes | None, mode: int, reason: str
) -> None:
    file = tmp_path / "board.pem"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(AgentError, match=reason) as refused:
        load_host_key(file)
    assert str(file) in str(refused.value)
