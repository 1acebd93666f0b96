"""A-GNSS data as a file: read, checked against the documented elements, summed up."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import AgentError
from agent.location.agnss_elements import ELEMENTS, Element

SCHEMA = 1


class DamagedAssistance(AgentError):
    """Assistance data that does not keep to its format, with the element and the offset."""

    kind = "damaged-assistance"


@dataclass(frozen=True, slots=True)
class Block:
    """One block: an element's type and its values, a mapping of field name to raw integer each."""

    element: Element
    values: tuple[dict[str, int], ...]


def parse_agnss(data: bytes) -> tuple[Block, ...]:
    """Return the blocks of A-GNSS data. Raises DamagedAssistance; no block at all is legal."""
    if not data:
        raise DamagedAssistance("the A-GNSS data is empty: not even its schema number is there")
    if data[0] != SCHEMA:
        raise DamagedAssistance(f"A-GNSS schema {data[0]} at offset 0; {SCHEMA} is known")
    blocks: list[Block] = []
    offset = 1
    while offset < len(data):
        block, offset = _block(data, offset)
        blocks.append(block)
    return tuple(blocks)


def _block(data: bytes, offset: int) -> tuple[Block, int]:
    if offset + 3 > len(data):
        raise DamagedAssistance(f"the A-GNSS data ends inside a block's header at offset {offset}")
    number, count = data[offset], int.from_bytes(data[offset + 1 : offset + 3], "little")
    element = ELEMENTS.get(number)
    if element is None:
        # Its size is not known, so nothing after it can be found.
        raise DamagedAssistance(f"unknown A-GNSS element {number} at offset {offset}")
    if count > element.max_count:
        raise DamagedAssistance(
            f"{count} elements of type {number} ({element.name}) at offset {offset}; "
            f"at most {element.max_count} are legal"
        )
    start, end = offset + 3, offset + 3 + count * element.layout.size
    if end > len(data):
        raise DamagedAssistance(
            f"element {number} ({element.name}) at offset {offset} needs {end - start} bytes; "
            f"{len(data) - start} are left"
        )
    values = tuple(
        dict(zip(element.fields, raw, strict=True))
        for raw in element.layout.iter_unpack(data[start:end])
    )
    return Block(element, values), end
