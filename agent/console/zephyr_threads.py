"""The threads of a Zephyr core dump: block T, read with the layout in the firmware's ELF file.

Block T holds the kernel's own structure (`struct z_kernel`). The offsets of its fields, and of a
thread's, depend on the build: CONFIG_DEBUG_THREAD_INFO puts a table of them into the firmware
(subsys/debug/thread_info.c). The threads are a list in the memory that the dump holds. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.console.zephyr_coredump import ARM_CORTEX_M, Dump

MAX_THREADS = 1024
"""More than a microcontroller has: a longer list is damage."""
MAX_NAME = 64
"""Bytes of a thread's name; CONFIG_THREAD_MAX_NAME_LEN is 32 unless set."""
NEWEST_LAYOUT = 1

_UNIMPLEMENTED = 0xFFFF_FFFF
# Indices in the table.
_VERSION, _CURRENT, _THREADS, _ENTRY, _NEXT, _STATE, _OPTIONS, _PRIORITY, _STACK, _NAME = range(10)

# Bit 2 has said "not started yet" up to kernel 3.7, and says "sleeping" since.
_STATES = (
    "dummy",
    "pending",
    "sleeping or not started",
    "dead",
    "suspended",
    "aborting",
    "suspending",
    "ready",
)
_SAVED_PC = 6 * 4  # of r0 to r3, r12, lr, pc, xpsr, which a Cortex-M puts on the stack


@dataclass(frozen=True, slots=True)
class ThreadLayout:
    """The firmware's table: bytes from the beginning of the kernel's or a thread's structure."""

    offsets: tuple[int, ...]
    word: int
    """Bytes of a pointer."""

    def __post_init__(self) -> None:
        """Check the table, which may be damaged. Raises ValueError."""
        if self.word not in (4, 8):
            raise ValueError(f"the table of threads has words of {self.word} bytes")
        if len(self.offsets) <= _STACK or self.offsets[_VERSION] > NEWEST_LAYOUT:
            raise ValueError("the table of threads is of a version that is not known")

    def at(self, field: int) -> int | None:
        """Return the offset of a field in bytes; None if this build has none."""
        if field >= len(self.offsets) or self.offsets[field] == _UNIMPLEMENTED:
            return None
        return self.offsets[field]


@dataclass(frozen=True, slots=True)
class ZephyrThread:
    """A thread; None for what the dump does not hold or the build does not have."""

    address: int
    current: bool
    name: str | None
    states: tuple[str, ...] | None
    priority: int | None
    """If negative, the thread is never preempted."""
    entry: int | None
    stack_pointer: int | None
    """Its value when the thread was last switched out."""
    pc: int | None
    """Where the thread continues; of a Cortex-M's threads that do not run, from their stacks."""


@dataclass(frozen=True, slots=True)
class ThreadList:
    """The threads, the current one first; `detail` says why the list may not be whole."""

    threads: tuple[ZephyrThread, ...]
    detail: str = ""


def read_threads(dump: Dump, data: bytes | bytearray, layout: ThreadLayout) -> ThreadList:
    """Return the threads of a dump. Raises nothing: `detail` says what cannot be read."""
    block = dump.block("T")
    if block is None or dump.header is None:
        return ThreadList((), "the dump has no block of threads")
    if dump.header.pointer_bits != layout.word * 8:
        return ThreadList((), "the firmware has pointers of another size: it is another build")
    kernel = bytes(data[block.start : block.start + block.size])
    memory = _Memory(dump, data, layout.word)
    current = _pointer(kernel, layout.at(_CURRENT), layout.word)
    first = _pointer(kernel, layout.at(_THREADS), layout.word)
    listed, detail = _walk(first, memory, layout.at(_NEXT))
    order = dict.fromkeys([*([current] if current else []), *listed])
    switched = dump.header.target == ARM_CORTEX_M
    return ThreadList(
        tuple(
            _thread(address, address == current, memory, layout, saved_pc=switched)
            for address in order
        ),
        detail,
    )


def _walk(first: int, memory: _Memory, next_at: int | None) -> tuple[list[int], str]:
    """Follow the list of threads; return the addresses, and why the list is not complete."""
    addresses: dict[int, None] = {}
    address: int | None = first
    while address:
        if address in addresses or len(addresses) == MAX_THREADS:
            return list(addresses), "the list of threads is damaged: it does not end"
        addresses[address] = None
        address = None if next_at is None else memory.word(address + next_at)
    detail = "" if address == 0 else "the rest of the list of threads is not in the dump"
    return list(addresses), detail


def _thread(
    address: int, current: bool, memory: _Memory, layout: ThreadLayout, *, saved_pc: bool
) -> ZephyrThread:
    def word(field: int) -> int | None:
        at = layout.at(field)
        return None if at is None else memory.word(address + at)

    def byte(field: int) -> int | None:
        at = layout.at(field)
        value = b"" if at is None else memory.read(address + at, 1)
        return value[0] if value else None

    name_at, state, priority, stack = layout.at(_NAME), byte(_STATE), byte(_PRIORITY), word(_STACK)
    name = None if name_at is None else memory.text(address + name_at)
    pc = memory.word(stack + _SAVED_PC) if stack and saved_pc and not current else None
    return ZephyrThread(
        address,
        current,
        name,
        None if state is None else _state_names(state),
        None if priority is None else (priority ^ 0x80) - 0x80,
        word(_ENTRY),
        stack,
        pc,
    )


def _state_names(state: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(_STATES) if state & 1 << bit)


def _pointer(kernel: bytes, at: int | None, word: int) -> int:
    """Return a pointer of the kernel's structure; 0 if it has none or is too short."""
    if at is None or at + word > len(kernel):
        return 0
    return int.from_bytes(kernel[at : at + word], "little")


class _Memory:
    """The memory that a dump holds, by address."""

    def __init__(self, dump: Dump, data: bytes | bytearray, word: int) -> None:
        self._data = data
        self._size = word
        self._regions = [
            (block.address, block.size, block.start)
            for block in dump.blocks
            if block.address is not None
        ]

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes; fewer if the memory ends, none if it is not in the dump."""
        for start, length, at in self._regions:
            if start <= address < start + length:
                begin = at + address - start
                return bytes(self._data[begin : min(begin + size, at + length)])
        return b""

    def word(self, address: int) -> int | None:
        """Return the value of a pointer; None if it is not in the dump."""
        content = self.read(address, self._size)
        return int.from_bytes(content, "little") if len(content) == self._size else None

    def text(self, address: int) -> str | None:
        """Return a text up to its NUL; None if it is not in the dump."""
        content = self.read(address, MAX_NAME)
        return content.split(b"\0")[0].decode("utf-8", "backslashreplace") if content else None
