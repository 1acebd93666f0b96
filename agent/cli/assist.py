"""`cellagent assist`: fetch, check and save assistance data for satellite positioning."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import AgentGroup, OfflineCommand, emit, note
from agent.cli.framework.file_type import FILE, OUTPUT_FILE
from agent.cli.framework.terminal import TableWriter, show_progress
from agent.errors import AgentError, UsageError
from agent.location import pgps_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.cli.framework.session import Session
    from agent.location.agnss import ServingCell
    from agent.location.agnss_file import AgnssBlock
    from agent.location.pgps_file import PredictionFile
    from at.driver.modem import Modem

_COUNT_HELP = (
    f"Predictions: 1 to {pgps_file.MAX_PREDICTIONS}, "
    f"{pgps_file.MAX_REACH_MIN // 240} at 240 minutes."
)
_INTERVAL_HELP = (
    f"Minutes from one to the next: {pgps_file.MIN_INTERVAL_MIN} to "
    f"{pgps_file.MAX_INTERVAL_MIN} by {pgps_file.INTERVAL_STEP_MIN}."
)


_progress = partial(show_progress, "assistance data")


@click.group(cls=AgentGroup, epilog="Example: cellagent assist agnss --types 2,3 --out agnss.bin")
def command() -> None:
    """A-GNSS for now, P-GPS for the days to come, and the files of both."""


@command.command(epilog="Example: cellagent assist agnss --filtered --out agnss.bin")
@click.option("--types", help="Element types, 1 to 17, as 1,2,3; default 1,2,3,4,6,7,9.")
@click.option("--filtered", is_flag=True, help="Only what can be seen from the serving cell.")
@click.option("--mask", type=click.IntRange(0, 90), help="Elevation in degrees.")
@click.option("--get", is_flag=True, help="By the deprecated GET; only with location.legacy.")
@click.option("--out", type=OUTPUT_FILE, help="Keep the data in this file.")
async def agnss(
    session: Session,
    types: str | None,
    *,
    filtered: bool,
    mask: int | None,
    get: bool,
    out: Path | None,
) -> None:
    """Fetch A-GNSS data for the serving cell and show what it holds."""
    from agent.location.agnss import (
        DEFAULT_TYPES,
        TYPES_THAT_NEED_A_CELL,
        AgnssRequest,
        FetchAgnss,
        FetchAgnssByGet,
        fetch_agnss,
    )
    from agent.location.calls import project_of
    from at.firmware_gate import require_firmware

    numbers = _numbers(types) if types else DEFAULT_TYPES
    must = filtered or bool(TYPES_THAT_NEED_A_CELL & set(numbers))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(session.client())
        modem, cell = await _kit_to_ask(session, stack, must=must), None
        if modem is not None:
            client = client.acting_as(kit_gate=partial(require_firmware, modem))
            await client.kit_gate()  # before the kit is made to scan
            cell = await _serving_cell(modem, must=must)
        request = AgnssRequest(numbers, cell, filtered, mask)
        by = FetchAgnssByGet if get else FetchAgnss
        data = await fetch_agnss(client, project_of(session.profile), request, _progress, by=by)
    _save(out, data.content)
    _show_blocks(session, data.blocks, len(data.content))


async def _kit_to_ask(session: Session, stack: AsyncExitStack, *, must: bool) -> Modem | None:
    """Open the kit whose serving cell is sent; None where there is none and data need no cell."""
    from at.protocol.errors import PortNotFound

    try:
        return await stack.enter_async_context(session.modem())
    except (PortNotFound, UsageError) as absent:
        if must or session.profile.kit.port:
            raise
        note(f"{absent}: the data are for the whole world; --port PORT names the kit")
        return None


async def _serving_cell(modem: Modem, *, must: bool) -> ServingCell | None:
    """Return the kit's cell; None, with a note, where it is on none and the data need none."""
    from agent.location.cell_scan import NoCells, scan_cells, serving_cell

    try:
        cell = serving_cell((await scan_cells(modem)).cells)
    except NoCells:
        if must:
            raise
        cell = None
    if cell is None and not must:
        note("the kit has no serving cell: the data are for the whole world")
    return cell


@command.command(cls=OfflineCommand, epilog="Example: cellagent assist decode pgps.bin")
@click.argument("file", type=FILE)
def decode(session: Session, file: Path) -> None:
    """Check a file of A-GNSS or P-GPS data and show what it holds."""
    from agent.location.agnss_file import DamagedAssistance, parse_agnss

    with file.open("rb") as source:
        data = source.read(pgps_file.LARGEST_BYTES + 1)
    if len(data) > pgps_file.LARGEST_BYTES:
        raise DamagedAssistance(f"{file} is larger than any file of assistance data")
    try:
        if pgps_file.is_pgps(data):
            _show_predictions(session, pgps_file.parse_pgps(data), len(data))
        else:
            _show_blocks(session, parse_agnss(data), len(data))
    except AgentError as damaged:
        raise DamagedAssistance(
            f"{file}: {damaged}", hint="a file that assist agnss or assist pgps kept with --out"
        ) from damaged


@command.command(epilog="Example: cellagent assist pgps --count 42 --interval 240 --out pgps.bin")
@click.option("--count", type=int, help=_COUNT_HELP)
@click.option("--interval", type=int, help=_INTERVAL_HELP)
@click.option("--start", metavar="TIME", help="As 2026-02-03T04:00:00Z; default now.")
@click.option("--out", type=OUTPUT_FILE, help="Keep the file.")
async def pgps(
    session: Session, count: int | None, interval: int | None, start: str | None, out: Path | None
) -> None:
    """Fetch P-GPS predictions and list their times."""
    from agent.location.calls import project_of
    from agent.location.pgps import PredictionRequest, fetch_pgps

    request = PredictionRequest(count, interval, _moment(start) if start else None)
    async with session.client() as client:
        project, now = project_of(session.profile), datetime.now(UTC)
        data = await fetch_pgps(client, project, request, _progress, now=now)
    _save(out, data.content)
    _show_predictions(session, data.file, len(data.content))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as 1,2,3", param_hint="'--types'"
        ) from error


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise click.BadParameter(
            f"{text!r} is no time with its offset, such as 2026-02-03T04:00:00Z",
            param_hint="'--start'",
        )
    return moment


def _save(out: Path | None, content: bytes) -> None:
    from agent.files.private_files import output_file

    if out is None:
        return
    with output_file(out, private=False) as file:
        file.write(content)
    note(f"{len(content)} bytes in {out}")


def _show_blocks(session: Session, blocks: tuple[AgnssBlock, ...], size: int) -> None:
    rows = [
        {"type": one.element.number, "name": one.element.name, "elements": len(one.values)}
        for one in blocks
    ]
    _show(session, {"bytes": size, "blocks": rows}, rows, "type", "content", "elements")


def _show_predictions(session: Session, file: PredictionFile, size: int) -> None:
    rows = [
        {"valid_from": one.valid_from.isoformat(), "satellites": one.satellites}
        for one in file.predictions
    ]
    whole = {"bytes": size, "until": file.end.isoformat(), "predictions": rows}
    _show(session, whole, rows, "valid from", "satellites")


def _show(
    session: Session, whole: dict[str, object], rows: Sequence[Mapping[str, object]], *columns: str
) -> None:
    if session.json:
        emit(whole)
        return
    table = TableWriter(*columns)
    for row in rows:
        table.add(*row.values())
    table.flush()
