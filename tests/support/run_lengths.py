"""The run-length coder of a device, for tests: the agent only ever expands."""

from agent.observability.ingest.chunk_codec import encode_varint


def compress(plain: bytes) -> bytes:
    """Code `plain` as the device SDK does: a run of two at the start of a sequence, else three."""
    coded = bytearray()
    literal = 0  # where the literal bytes that are not written yet begin
    at = 0
    while at < len(plain):
        end = at + 1
        while end < len(plain) and plain[end] == plain[at]:
            end += 1
        if end - at >= (2 if at == literal else 3):
            coded += _literals(plain[literal:at])
            coded += encode_varint((end - at) << 1) + plain[at : at + 1]
            literal = end
        at = end
    return bytes(coded + _literals(plain[literal:]))


def _literals(run: bytes) -> bytes:
    return encode_varint((len(run) << 1) - 1) + run if run else b""
