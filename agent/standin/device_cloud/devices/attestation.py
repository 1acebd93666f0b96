"""Attestation tokens (%ATTESTTOKEN): their form, and the device that one is of.

The body is a CBOR array of five with fixed lengths: identity, the device's UUID, its type, its
firmware's UUID, a nonce. So is its signature: ES256, not attached, and not verified, since the
stand-in has no identity keys of the chip maker.
"""

import base64
import re
import uuid

# The bytes of the UUID in the body.
_BEFORE_UUID, _AFTER_UUID = 6, 22
_SIX_BITS = "[A-Za-z0-9_-]"
_IDENTITY = f"2dn3hQFQ{_SIX_BITS}{{21}}[AQgw][BFJNRVZdhlptx159]Q"
_IDENTITY += f"{_SIX_BITS}{{21}}[FVl1][A-D]{_SIX_BITS}{{21}}"
TOKEN_PATTERN = rf"^{_IDENTITY}(\.{_SIX_BITS}*)?$"


def attested_device(token: str) -> str | None:
    """Return the UUID of the device in a token, None for what has not the form of one."""
    if re.fullmatch(TOKEN_PATTERN, token) is None:
        return None
    body = base64.urlsafe_b64decode(token.partition(".")[0])
    return str(uuid.UUID(bytes=body[_BEFORE_UUID:_AFTER_UUID]))
