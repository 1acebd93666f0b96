"""`cellagent modem replay`: a transcript as a modem, on a PTY or a TCP port."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit, note
from agent.cli.framework.file_type import FILE
from agent.cli.framework.session import Session
from agent.cli.modem.serve_port import ALLOW_REMOTE, CMD, PTY, TCP, require_one, serve_port
from at.protocol.counts import counted
from at.protocol.errors import TranscriptError
from at.transcripts.player import Player
from at.transcripts.step_matching import Playback, shown
from at.transcripts.transcript import load_transcript


@agent_command(
    "cellagent modem replay session.transcript --pty /tmp/kit -- ./my-script", OfflineCommand
)
@click.argument("transcript", type=FILE)
@CMD
@PTY
@TCP
@ALLOW_REMOTE
@click.option("--lenient", is_flag=True, help="Answer by command, in whatever order they come.")
@click.option("--paced", is_flag=True, help="Keep the recorded times between the answers.")
async def command(
    _session: Session,
    transcript: Path,
    cmd: tuple[str, ...],
    pty: str | None,
    tcp: str | None,
    allow_remote: bool,
    lenient: bool,
    paced: bool,
) -> int:
    """Play TRANSCRIPT as the modem whose session it is.

    Strict unless --lenient: it stops at the first byte that is not in the session, shows the
    expected and the nearest step, and exits with 1; likewise if CMD ends before the session does.
    `AT` and the queries of AT+CMEE, with which drivers begin, are always answered.

    Where the recorded line was closed, the port hangs up, and comes back if the session goes on.
    """
    from agent.cli.framework.signals import serve_until_stopped

    require_one(pty, tcp)
    playback = Playback(load_transcript(transcript), strict=not lenient, answers_setup=True)
    player = Player(playback, paced=paced)
    async with AsyncExitStack() as stack:
        served = await serve_port(
            stack, player.receive, pty=pty, tcp=tcp, allow_remote=allow_remote
        )
        emit({"ready": True, "port": served.port})
        playing = asyncio.create_task(player.play_on(served, stays=lenient))
        stack.callback(playing.cancel)
        if not cmd:  # CMD may go on without the port; without CMD nothing is left to serve
            playing.add_done_callback(lambda _: player.end(None))
        code = await serve_until_stopped(cmd, {"CELLAGENT_PORT": served.port}, player.over)
    if player.over.done() and (mismatch := player.over.result()) is not None:
        raise mismatch
    if cmd and not lenient and not code and playback.remaining:
        step = playback.remaining[0]
        raise TranscriptError(
            f"{transcript}: {counted(len(playback.remaining), 'steps')} never sent; "
            f"the first is line {step.line}, {shown(step.data)}"
        )
    if playback.remaining and not lenient:
        note(f"{transcript}: {counted(len(playback.remaining), 'steps')} not sent")
    return code
