"""From what a kit prints to what is delivered: chunks and core dumps into the outbox.

What the kit printed once is gone from the kit: it is on disk before anything else happens to it.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.zephyr_coredump import reason_name
from agent.console.zephyr_registers import frame, registers
from agent.observability.events import trace
from agent.observability.outbox import Kind, NewItem
from agent.observability.uploads import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent.config import Configuration
    from agent.console.reader import ConsoleItem
    from agent.observability.device_identity import DeviceIdentity
    from agent.observability.device_names import DeviceNames
    from agent.observability.outbox import Outbox, Receipt

STACK_OVERFLOW, MEMORY_FAULT, BUS_FAULT, USAGE_FAULT = 0x800B, 0x9200, 0x9100, 0x9300
KERNEL_PANIC, HARD_FAULT, SECURITY_VIOLATION = 0x8008, 0x9400, 0x9402


class Forwarder:
    """Puts the chunks and dumps of one kit into the outbox, in the order they were printed."""

    def __init__(
        self, outbox: Outbox, names: DeviceNames, *, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._outbox = outbox
        self._names = names
        self._wake = wake

    async def take(self, items: Sequence[ConsoleItem], now: datetime) -> Receipt | None:
        """Keep what is to be delivered; return once it is on disk. None if there is nothing.

        `now` (aware) is when it was heard. Raises OutboxFull, AgentError.
        """
        kept: list[NewItem] = []
        for item in items:
            if isinstance(item, ChunkLine):
                self._names.hear(item.chunk)
                kept.append(NewItem(Kind.CHUNK, self._names.sender, item.chunk, now.timestamp()))
            elif isinstance(item, CapturedDump) and item.dump.usable:
                kept += dump_items(item, self._names.identity(), now)
        if not kept:
            return None
        receipt = await self._outbox.aput(kept)
        self._wake()
        return receipt


def dump_items(captured: CapturedDump, device: DeviceIdentity, now: datetime) -> list[NewItem]:
    """Return a Zephyr dump as what the service takes: the file, and a trace with its registers."""
    header = captured.dump.header
    assert header is not None
    found = frame(registers(captured.dump, captured.data))
    body = bytes(captured.data)
    file = NewItem(
        Kind.COREDUMP,
        device.device_serial,
        body,
        now.timestamp(),
        meta={
            "form": FileKind.ZEPHYR_COREDUMP.name,
            "name": "zephyr-coredump.bin",
            "device": asdict(device),
            "reason": reason_name(header),
        },
    )
    event = trace(
        device,
        trace_reason(header.reason),
        now,
        pc=found.get("pc", 0),
        lr=found.get("lr"),
        sp=found.get("sp"),
        user_info={"zephyr_reason": header.reason},
    )
    # The dump is the same by its content; its trace is, by the dump's.
    key = f"trace-of-{_digest(body)}-{device.device_serial}"
    return [file, NewItem(Kind.EVENT, device.device_serial, event, now.timestamp(), key)]


def outbox_folder(configuration: Configuration) -> Path:
    """Return where the profile's outbox is; each profile has its own project, and its own."""
    return configuration.state_dir / "outbox" / configuration.name


def trace_reason(reason: int) -> int:
    """Return the service's number for a reason of the kernel."""
    if reason in {2, 17, 32}:
        return STACK_OVERFLOW
    if reason in {3, 4}:
        return KERNEL_PANIC
    for numbers, number in (
        (range(16, 22), MEMORY_FAULT),
        (range(22, 29), BUS_FAULT),
        (range(29, 37), USAGE_FAULT),
    ):
        if reason in numbers:
            return number
    return SECURITY_VIOLATION if reason >= 37 else HARD_FAULT


def utc_now() -> datetime:
    """Return the time of this machine, aware."""
    return datetime.now(UTC)


def _digest(body: bytes) -> str:
    import hashlib

    return hashlib.sha256(body).hexdigest()
