"""`cellagent report`: events, chunks, core dumps and files to the observability service."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from agent.cli.framework.command import ProfileGroup, note, together
from agent.cli.framework.file_type import WHOLE_FILE
from agent.cli.framework.saved_text import whole_text
from agent.cli.framework.terminal import ended_by_ctrl_c
from agent.errors import AgentError, UsageError
from agent.json_value import JSONValue

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping

    from agent.cli.framework.session import Session
    from agent.console.dump_lines import CapturedDump
    from agent.observability.ingest.device_identity import DeviceIdentity
    from agent.outbox import NewItem

_QUEUE = click.option(
    "--queue", "only_queue", is_flag=True, help="Keep it for later; send nothing."
)
_AGAIN = click.option(
    "--again", is_flag=True, help="Upload it although this machine has done so before."
)


_identity = together(
    click.option("--device-serial", help="The serial that the service knows the device by."),
    click.option("--hardware-version", help="The board, as `nrf9161dk`."),
    click.option("--software-type", help="The component, as `main`."),
    click.option("--software-version", help="The version of its software, as 1.2.3."),
)


def _require(identity: Mapping[str, str | None], names: str, what: str) -> None:
    """Raise click.UsageError with the options of these names that were not given."""
    missing = [name for name in names.split() if not identity[name]]
    if missing:
        # click's own, for the command's example.
        raise click.UsageError(f"{what} needs {_options(missing)}", click.get_current_context())


def _options(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def integer(text: str) -> int:
    """Return a number, in hex as registers and the service's reasons are written, or not."""
    try:
        return int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no number such as 37632 or 0x9300") from error


@click.group(cls=ProfileGroup)
def command() -> None:
    """Send events, core dumps, chunks and files; what cannot be sent now is kept on disk."""


@command.command(
    epilog="Example: cellagent report event --device-serial kit-1 --hardware-version nrf9161dk "
    "--software-type main --software-version 1.0.0 --metric battery_pct=77"
)
@click.option(
    "--from", "source", type=click.File("rb"), help="Import: a JSON event, an array, or lines."
)
@_identity
@click.option("--metric", "metrics", multiple=True, metavar="NAME=VALUE", help="Of a heartbeat.")
@click.option(
    "--reason", type=integer, help="Of a trace: the service's number for a reset or fault."
)
@click.option("--pc", type=integer, default="0", help="Of a trace: the program counter.")
@click.option("--lr", type=integer, help="Of a trace: the link register.")
@click.option("--captured-date", help="When it happened: ISO 8601 with offset. Default: now.")
@_QUEUE
async def event(
    session: Session,
    source: BinaryIO | None,
    metrics: tuple[str, ...],
    reason: int | None,
    pc: int,
    lr: int | None,
    captured_date: str | None,
    only_queue: bool,
    **identity: str | None,
) -> None:
    """Send a heartbeat (--metric), a trace (--reason), or events that another program wrote."""
    if sum((source is not None, bool(metrics), reason is not None)) != 1:
        raise UsageError("give --metric (a heartbeat), --reason (a trace) or --from (an import)")
    if source is not None:
        events = _import(source)
    else:
        _require(
            identity, "device_serial hardware_version software_type software_version", "an event"
        )
        info: dict[str, JSONValue]
        if reason is None:
            kind, info = "heartbeat", {"metrics": _metrics(metrics)}
        else:
            kind, info = "trace", {"reason": reason, "pc": pc}
            if lr is not None:
                info["lr"] = lr
        single: dict[str, JSONValue] = {
            "type": kind,
            **{name: value for name, value in identity.items() if value is not None},
            "event_info": info,
        }
        if captured_date is not None:
            single["captured_date"] = captured_date
        events = [single]
    items = _event_items(events)
    from agent.cli.observability.queueing import queue_and_send

    await queue_and_send(session, items, only_queue=only_queue)


def _metrics(given: tuple[str, ...]) -> dict[str, JSONValue]:
    metrics: dict[str, JSONValue] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--metric {each!r}: write it as NAME=VALUE")
        metrics[name] = value
        # An ICCID or a code is no number: that would lose digits, of those that a double has no
        # room for or of the zeros in front. Nor is 2_0_1, though Python reads it as one.
        for kind in () if re.fullmatch("0[0-9]+|[0-9]{16,}|.*_.*", value) else (int, float):
            try:
                metrics[name] = kind(value)
                break
            except ValueError:
                continue
    return metrics


def _import(source: BinaryIO) -> list[JSONValue]:
    text = whole_text(source, source.name)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as exc:
        lines: list[JSONValue] = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                lines += [json.loads(line)] if line.strip() else []
            except (ValueError, RecursionError) as within:
                why = f"line {number}: {getattr(within, 'msg', within)}" if lines else exc
                raise UsageError(
                    f"{source.name}: neither JSON nor lines of JSON ({why})"
                ) from within
        return lines
    return whole if isinstance(whole, list) else [whole]


def _event_items(events: list[JSONValue]) -> list[NewItem]:
    """Return the events as items; all are checked before any is stored. Raises UsageError."""
    from agent.observability.ingest.events import SDK_VERSION, check_event
    from agent.outbox import ItemKind, NewItem

    now = datetime.now(UTC)
    items = []
    for number, each in enumerate(events, 1):
        completed = {"sdk_version": SDK_VERSION, **each} if isinstance(each, dict) else each
        try:
            body = check_event(completed, now)
        except UsageError as exc:
            where = f"event {number} of {len(events)}: " if len(events) > 1 else ""
            raise UsageError(f"{where}{exc}", hint=exc.hint) from exc
        checked = json.loads(body)
        happened = datetime.fromisoformat(checked["captured_date"]).timestamp()
        items.append(NewItem(ItemKind.EVENT, checked["device_serial"], body, happened))
    if not items:
        raise UsageError("there is no event to send")
    return items


@command.command(epilog="Example: cellagent report chunks console.log --device-serial kit-1")
@click.argument("source", metavar="FILE|-", type=click.File("rb"))
@click.option("--device-serial", required=True, help="The device that printed them.")
@_QUEUE
async def chunks(session: Session, source: BinaryIO, device_serial: str, only_queue: bool) -> None:
    """Send the chunks that console text, lines of JSON or a file of stored chunks holds."""
    from agent.cli.capture.chunk_sources import read_chunks
    from agent.cli.observability.queueing import queue_and_send
    from agent.observability.api.resource_names import check_slug
    from agent.outbox import ItemKind, NewItem

    check_slug("--device-serial", device_serial)
    items = []
    with ended_by_ctrl_c():
        for chunk in read_chunks(source):
            if isinstance(chunk, str):
                note(f"a chunk is lost: {chunk}")
            else:
                items.append(NewItem(ItemKind.CHUNK, device_serial, chunk))
    if not items:
        raise AgentError(
            f"{source.name} holds no chunk",
            hint="the kit prints them as lines with MC: on `mflt export`; of one in hex digits "
            'give the line {"chunk": "DIGITS"}',
        )
    await queue_and_send(session, items, only_queue=only_queue)


@command.command(epilog="Example: cellagent report coredump crash.bin --device-serial kit-1")
@click.argument("path", metavar="FILE", type=WHOLE_FILE)
@_identity
@_QUEUE
@_AGAIN
def coredump(
    session: Session, path: Path, only_queue: bool, again: bool, **identity: str | None
) -> Coroutine[None, None, None]:
    """Send a core dump of the device SDK, of Zephyr (binary) or of Linux (ELF), of any size.

    One over 16 MiB is sent directly, and not kept for later. `console --save` writes the names of
    the device beside a dump; options take precedence.
    """
    from agent.cli.capture.dump_files import read_device_file
    from agent.cli.observability.file_upload import upload_file
    from agent.cli.observability.queueing import queue_and_send
    from agent.console.dump_file import read_dump_file
    from agent.observability.coredumps import linux_core
    from agent.observability.coredumps.device_coredump import damage_of, without_rest
    from agent.observability.coredumps.recognise import recognise
    from agent.observability.ingest.transfer import sent_name
    from agent.observability.ingest.uploads import FileKind
    from agent.outbox import ItemKind, NewItem

    with path.open("rb") as file:
        kind = recognise(file)
        file.seek(0)
        damage = linux_core.damage_of(file) if kind is FileKind.ELF_COREDUMP else ""
    owner = read_device_file(path)
    identity = {name: value or owner.get(name) for name, value in identity.items()}
    device = _complete_identity(identity, needed=kind is not FileKind.COREDUMP)
    if damage:
        note(_NOT_WHOLE.format(path, damage))
    if path.stat().st_size > _QUEUED_LIMIT:
        if only_queue:
            raise UsageError(f"{path} is too large to be kept for later: send it without --queue")
        return upload_file(session, path, kind, device, compress=False, again=again)
    name = sent_name(path)
    if name != path.name:
        note(f"the name of the file is no UTF-8: it is sent as {name}")
    meta: dict[str, JSONValue] = {"form": kind.name, "name": name}
    if device is not None:
        meta["device"] = asdict(device)
    body = path.read_bytes()
    if kind is FileKind.COREDUMP:
        body = without_rest(body)
        if damage := damage_of(body):
            note(_NOT_WHOLE.format(path, damage))
    captured = read_dump_file(bytearray(body)) if kind is FileKind.ZEPHYR_COREDUMP else None
    if captured is not None:
        body = bytes(captured.data)
    serial = identity.get("device_serial") or ""
    # Without a key of its own a dump that was taken before is a duplicate.
    key = f"again {uuid.uuid4().hex}" if again else None
    items = [NewItem(ItemKind.COREDUMP, serial, body, path.stat().st_mtime, key, meta)]
    if captured is not None and device is not None:
        items += _trace(path, captured, device, again=again)
    return queue_and_send(session, items, only_queue=only_queue)


def _trace(
    path: Path, captured: CapturedDump, device: DeviceIdentity, *, again: bool
) -> list[NewItem]:
    """Return the trace of a Zephyr dump, if its header is there: the service reads no such dump."""
    from agent.wiring.forwarding import trace_item

    if not captured.dump.usable:
        note(f"{path}: it is sent, but it is not whole: {captured.dump.detail}")
    if captured.dump.header is None:
        return []
    happened = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    item = trace_item(captured, captured.dump.header, device, device.device_serial, happened)
    return [replace(item, key=None) if again else item]


_NOT_WHOLE = "{}: {}: it is sent, but the service may not read it"
_QUEUED_LIMIT = 16 * 1024 * 1024  # bytes of a core dump that goes through the outbox


def _complete_identity(identity: dict[str, str | None], *, needed: bool) -> DeviceIdentity | None:
    """Return the identity if it is complete, else None.

    Raises UsageError for a name that breaks its rule, and if it is `needed` and not complete.
    """
    from agent.observability.ingest.device_identity import PartialIdentity

    given = PartialIdentity(**{name: value or "" for name, value in identity.items()}).identity()
    missing = [name for name, value in identity.items() if not value]
    if not missing:
        return given
    if needed:
        raise UsageError(f"a file of this kind does not name its device: add {_options(missing)}")
    return None


@command.command(
    epilog="Example: cellagent report file zephyr.elf --kind symbols --software-type main "
    "--software-version 1.0.0"
)
@click.argument("path", metavar="FILE", type=WHOLE_FILE)
@click.option(
    "--kind",
    type=click.Choice(["symbols", "ota", "bugreport"]),
    required=True,
    help="What it is: symbols of a build, an update image, a bug report.",
)
@_identity
@click.option("--gzip", "compress", is_flag=True, help="Send it compressed.")
@_AGAIN
async def file(
    session: Session, path: Path, kind: str, compress: bool, again: bool, **identity: str | None
) -> None:
    """Send a large file from a build: symbols, an update, a bug report. Never queued.

    The same command run again resumes an interrupted upload, and sends nothing twice.
    """
    from agent.cli.observability.file_upload import upload_file
    from agent.observability.coredumps.recognise import refuse_without_symbols
    from agent.observability.ingest.device_identity import DeviceIdentity
    from agent.observability.ingest.uploads import FileKind

    chosen, needed = {
        "symbols": (FileKind.SYMBOLS, "software_type software_version"),
        "ota": (FileKind.OTA, "hardware_version software_type software_version"),
        "bugreport": (FileKind.BUG_REPORT, ""),
    }[kind]
    _require(identity, needed, f"--kind {kind}")
    if chosen is FileKind.SYMBOLS:
        with path.open("rb") as opened:
            refuse_without_symbols(opened)
    # What the kind does not say of a device is not sent either.
    device = None
    if needed:
        device = DeviceIdentity(
            identity["device_serial"] or "none",
            identity["hardware_version"] or "none",
            identity["software_type"] or "",
            identity["software_version"] or "",
        )
    await upload_file(session, path, chosen, device, compress=compress, again=again)
