"""`cellagent modem record`: the session between a program and the modem, as a transcript."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import agent_command, emit, note
from agent.cli.framework.file_type import OUTPUT_FILE
from agent.cli.framework.session import Session, transport_on
from agent.cli.modem.import_log import keep_identity_option
from agent.cli.modem.serve_port import ALLOW_REMOTE, CMD, require_one, serve_port
from agent.errors import RefusedByRule, UsageError
from at.protocol.errors import AtError, LinkLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from at.transcripts.recorder import RecordingTransport
    from at.virtual.server.pty import PtyServer
    from at.virtual.server.tcp import TcpServer


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
    from agent.files.temporary_folder import temporary_folder
    from at.transcripts.recorder import RecordingTransport

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
    with contextlib.ExitStack() as folders:

        def temporary(name: str) -> Path:
            return folders.enter_context(temporary_folder("cellagent-record")) / name

        target = temporary("session.transcript") if replaces else file
        if pty is None and tcp is None:
            pty = str(temporary("modem"))
        transport = RecordingTransport(inner, target, header=header, keep_identity=keep_identity)
        serve = partial(serve_port, pty=pty, tcp=tcp, allow_remote=allow_remote)
        try:
            code, loss = await _record(transport, serve, cmd, file)
        except UsageError:  # CMD cannot be run: no session, whose file would refuse the next one
            target.unlink(missing_ok=True)
            raise
        is_kept_as_it_was = replaces and (code != 0 or loss is not None)
        if is_kept_as_it_was:
            note(f"{file} is left as it was: the session failed")
        elif replaces:
            _replace(file, target)
    if not is_kept_as_it_was:
        note(f"the session is in {file}")
    if loss is not None:
        raise LinkLost(f"{kit.port}: the link was lost") from loss
    return code


async def _record(
    transport: RecordingTransport,
    serve: Callable[..., Awaitable[PtyServer | TcpServer]],
    cmd: tuple[str, ...],
    file: Path,
) -> tuple[int, Exception | None]:
    """Let `cmd` speak to the modem by the port that is served; `file` is for the ready line.

    Returns its exit code, and how the link was lost, if it was. Raises TranscriptError where the
    recording is not whole.
    """
    import asyncio

    from agent.cli.framework.signals import serve_until_stopped
    from at.transcripts.relay import Relay

    lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    relay = Relay(transport.write, lost)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        served = await serve(stack, relay.receive)
        relay.send = served.send
        await transport.open(relay)
        emit({"ready": True, "port": served.port, "recording": str(file)})
        code = await serve_until_stopped(cmd, {"CELLAGENT_PORT": served.port}, lost)
    if transport.error is not None:
        raise transport.error
    return code, lost.result() if lost.done() else None


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
