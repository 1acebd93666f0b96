"""`cellagent modem import`: a transcript out of a terminal's log."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from agent.cli.shell.command import AgentCommand, emit, note, options
from agent.errors import RefusedByRule


def write_new(path: Path, text: str) -> None:
    """Write `text` to a file that does not exist yet, 0600. Raises RefusedByRule, OSError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise RefusedByRule(
            f"{path} exists already", hint="nothing is overwritten: name another file"
        ) from error
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


@click.command(
    cls=AgentCommand,
    name="import",
    epilog="Example: cellagent modem import putty.log --output session.transcript",
)
@click.argument("log", metavar="LOG|-")
@click.option("--output", metavar="FILE", help="Write to FILE (0600, never over another).")
@click.option("--redact", type=click.Choice(["identity"]), help="Take out IMEI, ICCID, UUIDs too.")
def command(log: str, output: str | None, redact: str | None) -> None:
    """Make a transcript from a terminal's or a desktop tool's LOG (- is standard input).

    Time stamps, log prefixes and marks of direction are understood. Tokens, keys and passwords
    are taken out.
    """
    from at.transcripts.importer import import_log
    from at.transcripts.transcript import format_transcript

    data = sys.stdin.buffer.read() if log == "-" else Path(log).read_bytes()
    made = import_log(data.decode("utf-8", "surrogateescape"), redact_identity=redact == "identity")
    text = format_transcript(made.transcript)
    if output is not None:
        write_new(Path(output), text)
    if options().json:
        emit({"steps": len(made.transcript.steps), "skipped": made.skipped, "output": output})
    elif output is None:
        sys.stdout.write(text)
    note(f"{len(made.transcript.steps)} steps; {made.skipped} lines of neither side left out")
