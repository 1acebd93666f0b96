"""`cellagent modem record`: the session between a program and the modem, as a transcript."""

import contextlib
import os
from pathlib import Path

import click

from agent.cli.framework.command import agent_command, emit, note
from agent.cli.framework.file_type import OUTPUT_FILE
from agent.cli.framework.session import Session, transport_on
from agent.cli.modem.import_log import keep_identity_option
from agent.cli.modem.serve_port import ALLOW_REMOTE, CMD, require_one, serve_port
from agent.errors import RefusedByRule, UsageError
from at.protocol.errors import AtError, LinkLost


@agent_command("cellagent modem record kit.transcript --port /dev/ttyACM0 -- ./my-script")
@click.argument("file", type=OUTPUT_FILE)
@CMD
@click.option("--pty", metavar="PATH", help="Where the session takes place; PATH is a link to it.")
@click.option("--tcp", metavar="HOST:PORT", help="Likewise on TCP; port 0 takes any that is free.")
@ALLOW_REMOTE
@click.option("--update", is_flag=True, help="Record FILE anew; its rules, marks, comments stay.")
@keep_identity_option
async def command(
    session: Session,
    file: Path,
    cmd: tuple[str, ...],
    pty: str | None,
    tcp: str | None,
    allow_remote: bool,
    update: bool,
    keep_identity: bool,
) -> int:
    """Record the session between a program and the modem to FILE.

    Any program works: CELLAGENT_PORT names the port that this command opens for it. Without CMD
    it serves until SIGTERM or Ctrl-C. Tokens, keys and passwords are redacted as they are written,
    and identity (IMEI, IMSI, ICCID, UUID) becomes a made-up one that still decodes and replays.

    With --update FILE is replaced once CMD has ended with 0; of one of version 2, what a person
    wrote into it is kept where the new session still fits it.
    """
    import asyncio

    from agent.cli.framework.signals import serve_until_stopped
    from agent.files.temporary_folder import temporary_folder
    from at.transcripts.recorder import RecordingTransport
    from at.transcripts.relay import Relay

    if pty is not None or tcp is not None:
        require_one(pty, tcp)
    replaces = os.path.lexists(file)  # noqa: ASYNC240 - as the recorder's own file
    if replaces and not update:
        raise RefusedByRule(
            f"{file} exists already", hint="name another; `--update` records this one anew"
        )
    kit = session.kit
    inner, borrowed = await transport_on(kit.port, session.usb_ports, kit.baud)
    if borrowed:
        note("the running agent lends the modem: it waits, and goes on listening, until this ends")
    header = await _ask_identity(session)
    lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as stack:
        target = file
        if replaces:
            folder = stack.enter_context(temporary_folder("cellagent-record"))
            target = folder / "session.transcript"
        transport = RecordingTransport(inner, target, header=header, keep_identity=keep_identity)
        relay = Relay(transport.write, lost)
        if pty is None and tcp is None:
            pty = str(stack.enter_context(temporary_folder("cellagent-record")) / "modem")
        stack.push_async_callback(transport.close)
        served = await serve_port(stack, relay.receive, pty=pty, tcp=tcp, allow_remote=allow_remote)
        relay.send = served.send
        await transport.open(relay)
        emit({"ready": True, "port": served.port, "recording": str(file)})
        try:
            code = await serve_until_stopped(cmd, {"CELLAGENT_PORT": served.port}, lost)
        except UsageError:  # CMD cannot be run: no session, whose file would refuse the next one
            target.unlink()
            raise
        failed = bool(code) or lost.done()
        if replaces:
            transport.finish()
            if failed:
                note(f"{file} is left as it was: the session failed")
            else:
                _replace(file, target)
    if transport.error is not None:
        raise transport.error
    if not (replaces and failed):
        note(f"the session is in {file}")
    if lost.done():
        raise LinkLost(f"{kit.port}: the link was lost") from lost.result()
    return code


def _replace(file: Path, session: Path) -> None:
    """Put a session in the place of an older transcript, with what a person wrote into that one."""
    from agent.files.private_files import replacing
    from at.transcripts.refresh import refreshed_file

    text = refreshed_file(file, session)
    with replacing(file, private=True) as whole:
        whole.write(text.encode("utf-8", "surrogateescape"))


async def _ask_identity(session: Session) -> dict[str, str]:
    """Return the header of the recording: what the modem is and takes.

    The modem is asked before the session begins; what it does not answer is "unknown".
    """
    from at.transcripts.rules import escape

    asked = {"device": "AT+CGMM", "firmware": "AT+CGMR"}
    header = dict.fromkeys(asked, "unknown")
    try:
        async with session.modem() as modem:
            for name, line in asked.items():
                answer = await modem.execute(line)
                header[name] = " ".join(answer.lines)
            header["dialect"] = modem.dialect.value
            header["terminator"] = escape(modem.terminator.wire)
    except AtError as error:
        note(f"the modem does not say what it is: {error}")
    return header
