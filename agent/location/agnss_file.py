"""The format of A-GNSS data: blocks of elements, each checked against its documented layout."""

import struct
from dataclasses import dataclass

from agent.errors import AgentError

SCHEMA = 1
_ORBIT = "toe w delta_n m0 omega_dot e idot sqrt_a i0 omega0 crs cis cus crc cic cuc"


@dataclass(frozen=True, slots=True)
class AgnssElement:
    """One type of element: number, name, layout, fields, and the largest count of a block."""

    number: int
    name: str
    layout: struct.Struct
    fields: tuple[str, ...]
    max_count: int


def _element(number: int, name: str, layout: str, fields: str, max_count: int = 1) -> AgnssElement:
    return AgnssElement(number, name, struct.Struct("<" + layout), tuple(fields.split()), max_count)


_EPHEMERIS = (
    "BBHHbhibBBHihiiIhIiihhhhhh",
    f"sv_id health iodc toc af2 af1 af0 tgd ura fit_int {_ORBIT}",
)
_ALMANAC = (
    "BBBBHhhBIiiihh",
    "sv_id wn toa ioda e delta_i omega_dot health sqrt_a omega0 w m0 af0 af1",
)

ELEMENTS = {
    element.number: element
    for element in (
        _element(1, "GPS UTC", "iiBBbBbb", "a1 a0 tot wn_t delta_tls wn_lsf dn delta_tlsf"),
        _element(2, "GPS ephemeris", *_EPHEMERIS, 32),
        _element(3, "GPS almanac", *_ALMANAC, 32),
        _element(
            4, "Klobuchar ionosphere", "8b", "alpha0 alpha1 alpha2 alpha3 beta0 beta1 beta2 beta3"
        ),
        _element(5, "NeQuick ionosphere", "hhhBB", "ai0 ai1 ai2 storm_cond storm_valid"),
        _element(6, "GPS time of week", "BHB", "sv_id tlm flags", 32),
        _element(7, "GPS system clock", "HIHI4x", "gps_day time_s time_ms sv_mask"),
        _element(
            8,
            "location",
            "iihBBBBB",
            "lat lon alt unc_semimajor unc_semiminor orientation unc_alt confidence",
        ),
        _element(9, "GPS integrity", "I", "unhealthy_mask"),
        _element(11, "QZSS almanac", *_ALMANAC, 32),
        _element(12, "QZSS ephemeris", *_EPHEMERIS, 32),
        _element(13, "QZSS integrity", "I", "unhealthy_mask"),
        _element(
            14,
            "Galileo almanac",
            "BBHBHhhB6h",
            "sv_id wn toa ioda e delta_i omega_dot health sqrt_a omega0 w m0 af0 af1",
            36,
        ),
        _element(
            15,
            "Galileo ephemeris",
            "BHbiihBHihiiIhIiihhhhhh",
            f"sv_id toc af2 af1 af0 bgd sisa {_ORBIT}",
            36,
        ),
        _element(16, "Galileo-GPS time offset", "hhHH", "a0 a1 t0g wn"),
        _element(17, "Galileo integrity", "Q", "unhealthy_mask"),
    )
}


class DamagedAssistance(AgentError):
    """Assistance data breaks its format; the message names the element and the offset in bytes."""

    kind = "damaged-assistance"


@dataclass(frozen=True, slots=True)
class AgnssBlock:
    """One block: the type of its elements, and for each the raw integers by field name."""

    element: AgnssElement
    values: tuple[dict[str, int], ...]


def parse_agnss(data: bytes) -> tuple[AgnssBlock, ...]:
    """Return the blocks of A-GNSS data. Raises DamagedAssistance; no block at all is legal."""
    if not data:
        raise DamagedAssistance("the A-GNSS data is empty: not even its schema number is there")
    if data[0] != SCHEMA:
        raise DamagedAssistance(f"A-GNSS schema {data[0]} at offset 0; {SCHEMA} is known")
    blocks: list[AgnssBlock] = []
    offset = 1
    while offset < len(data):
        block, offset = _block(data, offset)
        blocks.append(block)
    return tuple(blocks)


def _block(data: bytes, offset: int) -> tuple[AgnssBlock, int]:
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
    return AgnssBlock(element, values), end
