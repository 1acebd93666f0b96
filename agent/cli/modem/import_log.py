"""`cellagent modem import`: a transcript from a terminal's log."""

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit, note
from agent.cli.framework.file_type import FILE_OR_INPUT, OUTPUT_FILE
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import told

keep_identity_option = click.option(
    "--keep-identity", is_flag=True, help="Keep IMEI, IMSI, ICCID, UUID and device ids as they are."
)
"""Of each command that writes a transcript."""


@agent_command("cellagent modem import putty.log --output session.transcript", OfflineCommand)
@click.argument("log", metavar="LOG|-", type=FILE_OR_INPUT)
@click.option(
    "--output", type=OUTPUT_FILE, metavar="FILE", help="Write to FILE (0600, never over another)."
)
@keep_identity_option
def command(session: Session, log: str, output: Path | None, keep_identity: bool) -> None:
    """Make a transcript from a terminal's or a desktop tool's LOG (- is standard input).

    Time stamps, log prefixes and marks of direction are understood; what is no log of AT commands
    is refused. Tokens, keys and passwords are redacted, and identity (IMEI, IMSI, ICCID, UUID)
    becomes a made-up one that still decodes.
    """
    from agent.files.private_files import new_private
    from agent.observability.coredumps.recognise import refuse_compressed
    from at.transcripts.importer import import_log
    from at.transcripts.transcript import format_transcript, read_session

    with nullcontext(sys.stdin.buffer) if log == "-" else Path(log).open("rb") as source:
        data = read_session(source)
    refuse_compressed(data, source.name)
    imported = import_log(data, keep_identity=keep_identity, told=told)
    steps = len(imported.transcript.steps)
    text = format_transcript(imported.transcript)
    if output is not None:
        with new_private(output) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
    if session.json:
        emit({"steps": steps, "skipped": imported.skipped, "output": output and str(output)})
    elif output is None:
        sys.stdout.write(text)
    note(f"steps: {steps}; form of the log: {imported.shape}; lines left out: {imported.skipped}")
    if imported.missing is not None:
        note(f"warning: nothing in this log was {imported.missing.name.lower()}")
