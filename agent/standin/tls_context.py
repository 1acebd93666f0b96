"""TLS settings of a server from a PEM that exists in memory only."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path


def server_context(pem: bytes) -> ssl.SSLContext:
    """Return the settings of a server with this private key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The library reads a key from a file only; this one is gone before anybody connects.
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()
    return context
