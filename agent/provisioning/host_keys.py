"""Keys made on this host, on request alone; each in a file of its own, never overwritten."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.config.private import read_plain, write_private
from agent.errors import AgentError, ConfigError, RefusedByRule
from agent.provisioning.certificates import private_pem


def kept_host_key(folder: Path, name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of a run that was cut off, from the file that it noted; else a new one."""
    if name and (folder / Path(name).name).exists():
        return load_host_key(folder / Path(name).name)
    return ec.generate_private_key(ec.SECP256R1())


def keep_host_key(key: ec.EllipticCurvePrivateKey, file: Path) -> None:
    """Keep `key` in `file`, readable by its owner alone from the start, on disk on return.

    Raises RefusedByRule where the file holds another key.
    """
    pem = private_pem(key).encode("ascii")
    try:
        if file.exists() and file.read_bytes() != pem:
            raise RefusedByRule(f"{file} holds another key: a key is never overwritten")
        write_private(file, pem)
    except OSError as error:
        raise AgentError(f"the key file {file}: {error.strerror}") from error


def load_host_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in a file. Raises AgentError."""
    try:
        pem = read_plain(file, "the board's key, made on a host", private=True)
    except ConfigError as error:
        raise AgentError(
            str(error), hint=error.hint or "run on the station that made it, or bring the file here"
        ) from error
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise AgentError(f"{file} holds no private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise AgentError(f"{file} holds no P-256 key")
    return key
