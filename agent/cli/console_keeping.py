"""What `cellagent console` keeps of what the kit prints: in the outbox, and in files."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent.config.profile import Kit
    from agent.console.reader import ConsoleItem
    from agent.observability.device_names import DeviceNames


def names_of(kit: Kit, given: dict[str, str | None]) -> DeviceNames:
    """Return who the kit is: by option, by the profile, by its own events, by its USB identity."""
    from agent.observability.device_names import DeviceNames, Names, names_in_profile
    from at.usb import model_at

    said = Names(**{name: value or "" for name, value in given.items()}) | names_in_profile(kit)
    said.identity()  # a name that breaks its rule is told before anything is opened
    model = model_at(kit.port)
    usb = Names(hardware_version=model.board if model else "")
    return DeviceNames(lambda: said, lambda: usb)


@contextlib.asynccontextmanager
async def forwarding(
    names: DeviceNames, note: Callable[[str], None]
) -> AsyncIterator[Callable[[list[ConsoleItem]], Awaitable[None]]]:
    """Keep chunks and dumps in the outbox, and deliver them meanwhile; `note` hears of trouble."""
    from agent.cli.configured import configured
    from agent.cli.queueing import open_outbox
    from agent.connect import connect
    from agent.errors import UsageError
    from agent.forwarding import Forwarder, utc_now
    from agent.observability.outbox import OutboxFull
    from agent.observability.outbox.delivery import Delivery
    from agent.observability.sender import ServiceSender

    if not names.sender:
        raise UsageError(
            "the service needs a name for the device",
            hint="--device-serial, or kit.device_id in the profile",
        )
    configuration = configured()
    with open_outbox(configuration) as outbox:
        async with connect(configuration, unattended=True) as client:
            delivery = Delivery(outbox, ServiceSender(client))
            forwarder = Forwarder(outbox, names, wake=delivery.wake)
            task = asyncio.create_task(delivery.run())

            async def keep(items: list[ConsoleItem]) -> None:
                try:
                    await forwarder.take(items, utc_now())
                except OutboxFull as error:
                    note(f"not kept: {error}")

            try:
                yield keep
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await delivery.flush()
                totals = await outbox.ado(lambda store: store.totals())
                note(f"{delivery.done.items} delivered, {totals.waiting} wait in the outbox")


def saving(
    folder: Path, names: DeviceNames, note: Callable[[str], None]
) -> Callable[[list[ConsoleItem]], Awaitable[None]]:
    """Append chunks to FOLDER/chunks.jsonl, write each dump to a file of its own; 0600.

    Beside a dump stands whose it is: it does not say so itself. `note` hears where each dump is.
    """
    from agent.cli.dump_files import DumpFiles
    from agent.cli.dump_owners import write_owner
    from agent.config.private import make_private_folder
    from agent.console.chunk_lines import ChunkLine
    from agent.console.dump_lines import CapturedDump

    make_private_folder(folder)
    files = DumpFiles.unused(folder / "coredump.bin")
    chunks = folder / "chunks.jsonl"

    async def keep(items: list[ConsoleItem]) -> None:
        found = [item.chunk for item in items if isinstance(item, ChunkLine)]
        for chunk in found:
            names.hear(chunk)
        if found:
            text = "".join(f'{{"chunk": "{chunk.hex()}"}}\n' for chunk in found)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(chunks, flags, 0o600), "w") as file:
                file.write(text)
        for item in items:
            if isinstance(item, CapturedDump):
                path = files.write(item)
                if path is not None:
                    write_owner(path, names.identity())
                note(f"core dump, {item.dump.status.value}: {path or 'no bytes'}")

    return keep
