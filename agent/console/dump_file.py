"""A Zephyr core dump that is a file: as it is, or as the kit's flash partition holds it. Pure.

"CD" | u16 version | u32 size | u16 flags | u16 sum of the bytes | i32 error | padding to a write
the dump, then erased flash                                    little endian; sizes as on an nRF91
"""

import struct
from dataclasses import replace

from agent.console.dump_lines import CapturedDump
from agent.console.zephyr_coredump import MAGIC, DumpStatus, parse_dump

_PARTITION = struct.Struct("<2sHIHHi")
_PARTITION_MAGIC = b"CD\x01\x00"
_ERASED = b"\xff"


def read_dump_file(data: bytearray) -> CapturedDump:
    """Return the dump of a file, without what stood around it where a debugger read the flash."""
    if not data.startswith(_PARTITION_MAGIC) or len(data) < _PARTITION.size:
        dump = parse_dump(data)
        end = dump.blocks[-1].start + dump.blocks[-1].size if dump.blocks else len(data)
        if end < len(data) and not dump.unknown_tail and not data[end:].strip(_ERASED):
            data = data[:end]
            dump = parse_dump(data)
        return CapturedDump(data, dump)
    _, _, size, _, checksum, error = _PARTITION.unpack_from(data)
    start = max(data.find(MAGIC, _PARTITION.size), _PARTITION.size)
    data = data[start : start + size]
    dump = parse_dump(data)
    if error:
        dump = replace(dump, status=DumpStatus.ERROR, detail=f"the device could not dump: {error}")
    elif dump.usable and sum(data) & 0xFFFF != checksum:
        detail = f"the partition's checksum 0x{checksum:04x} does not agree"
        dump = replace(dump, status=DumpStatus.CRC_MISMATCH, detail=detail)
    return CapturedDump(data, dump)
