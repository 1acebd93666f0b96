"""Keys made on this host, on request alone; each in a file of its own, never overwritten."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.config.private import write_private
from agent.errors import AgentError, RefusedByRule
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
        key = serialization.load_pem_private_key(file.read_bytes(), None)
    except OSError as error:
        raise AgentError(
            f"the board's key was made on a host, and {file} cannot be read: {error.strerror}",
            hint="run on the station that made it, or bring the file here",
        ) from error
    except (ValueError, TypeError) as error:
        raise AgentError(f"{file} holds no private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AgentError(f"{file} holds no P-256 key")
    return key
