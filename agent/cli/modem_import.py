"""`cellagent modem import`: a transcript out of a terminal's log."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agent.cli.frame import AgentCommand, emit, note, options


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
    from agent.cli.private_file import write_new
    from at.transcript import format_transcript
    from at.transcript_import import import_log

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
