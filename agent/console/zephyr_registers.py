"""The registers of a Zephyr core dump (block A), by processor family and version. Pure.

The order of registers depends on the family and on the version of the block. A block that is
shorter than its order gives the registers that it holds; an unknown version gives none.
"""

import struct

from agent.console import zephyr_coredump

_X86_64_SAVED = (
    "vector code rax rcx rdx rsi rdi rsp r8 r9 r10 r11 rip eflags cs ss rbp "
    "rbx r12 r13 r14 r15"  # only with CONFIG_EXCEPTION_DEBUG
)
_ARM = "r0 r1 r2 r3 r12 lr pc xpsr sp"
_ARM_CALLEE_SAVED = " r4 r5 r6 r7 r8 r9 r10 r11"
_RISC_V_SAVED = "ra tp t0 t1 t2 a0 a1 a2 a3 a4 a5 a6 a7 t3 t4 t5 t6 pc sp"
_RISC_V_EMBEDDED = "ra tp t0 t1 t2 a0 a1 a2 a3 a4 a5 pc sp"  # RV32E has no a6, a7, t3 to t6
_RISC_V_ALL = (
    "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 "
    "t3 t4 t5 t6 pc"
)
_ARM64_SAVED = " ".join(f"x{number}" for number in range(19)) + " lr spsr pc"

# Family and version -> word ("I" of 4 bytes, "Q" of 8) and the order.
_ORDERS = {
    (zephyr_coredump.X86, 1): ("I", "vector code eax ecx edx ebx esp ebp esi edi eip eflags cs"),
    (zephyr_coredump.X86_64, 1): ("Q", _X86_64_SAVED),
    (zephyr_coredump.ARM_CORTEX_M, 1): ("I", _ARM),
    (zephyr_coredump.ARM_CORTEX_M, 2): ("I", _ARM + _ARM_CALLEE_SAVED),
    # Behind these, two words that are no registers.
    (zephyr_coredump.ARM_CORTEX_M, 3): ("I", _ARM + _ARM_CALLEE_SAVED),
    (zephyr_coredump.RISC_V, 1): ("I", _RISC_V_SAVED),
    (zephyr_coredump.RISC_V, 2): ("Q", _RISC_V_SAVED),
    (zephyr_coredump.RISC_V, 3): ("I", _RISC_V_ALL),
    (zephyr_coredump.RISC_V, 4): ("Q", _RISC_V_ALL),
    (zephyr_coredump.ARM64, 1): ("Q", _ARM64_SAVED),
    (zephyr_coredump.ARM64, 2): ("Q", _ARM64_SAVED + " fp sp"),
}

PROGRAM_COUNTERS = ("pc", "eip", "rip")
_LINKS = ("lr", "ra")
_STACK_POINTERS = ("sp", "esp", "rsp")


def registers(dump: zephyr_coredump.Dump, data: bytes | bytearray) -> dict[str, int]:
    """Return the registers by name, in the order of the dump; {} if none can be read."""
    block = dump.block("A")
    if block is None or dump.header is None:
        return {}
    body = memoryview(data)[block.start : block.start + block.size]
    if dump.header.target == zephyr_coredump.XTENSA:
        return _xtensa(bytes(body))
    word, names = _order(dump.header.target, block)
    if not names:
        return {}
    count = min(len(names), len(body) // struct.calcsize(word))
    return dict(zip(names, struct.unpack_from(f"<{count}{word}", body), strict=False))


def frame_registers(values: dict[str, int]) -> dict[str, int]:
    """Return `pc`, `lr` and `sp` of what `registers` returned, whatever their names there."""
    if "exccause" in values:  # Xtensa
        # The upper two bits of a return address are the size of its register window.
        link = values["a0"] & 0x3FFF_FFFF | values["pc"] & 0xC000_0000
        return {"pc": values["pc"], "lr": link, "sp": values["a1"]}
    roles = {"pc": PROGRAM_COUNTERS, "lr": _LINKS, "sp": _STACK_POINTERS}
    return {role: values[name] for role, names in roles.items() for name in names if name in values}


def _order(target: int, block: zephyr_coredump.DumpBlock) -> tuple[str, list[str]]:
    if (target, block.version) == (zephyr_coredump.RISC_V, 1) and block.size == 4 * 13:
        return "I", _RISC_V_EMBEDDED.split()
    word, names = _ORDERS.get((target, block.version), ("", ""))
    return word, names.split()


def _xtensa(body: bytes) -> dict[str, int]:
    """Read u8 chip, u16 version, from version 2 on u8 toolchain, and 21 to 25 registers.

    The number of registers shows which ones a chip has beside the common 21.
    """
    start = 4 if int.from_bytes(body[1:3], "little") >= 2 else 3
    count, rest = divmod(len(body) - start, 4)
    if rest or not 21 <= count <= 25 or count == 23:
        return {}
    names = ["pc", "exccause", "excvaddr", "sar", "ps"]
    names += ["scompare1"] if count in (22, 25) else []
    names += [f"a{number}" for number in range(16)]
    names += ["lbeg", "lend", "lcount"] if count in (24, 25) else []
    return dict(zip(names, struct.unpack_from(f"<{count}I", body, start), strict=True))
