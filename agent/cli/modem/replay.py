"""`cellagent modem replay`: a transcript as a modem, on a PTY or a TCP port."""

import asyncio
from contextlib import AsyncExitStack

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit, note
from agent.cli.framework.session import Session
from agent.cli.modem.serve_port import require_one, serve_port
from at.protocol.counts import counted
from at.protocol.errors import AtError, TranscriptError
from at.transcripts.step_matching import Playback, shown
from at.transcripts.transcript import Direction, TranscriptStep, load_transcript
from at.virtual.server.pty import PtyServer
from at.virtual.server.tcp import TcpServer


@agent_command(
    "cellagent modem replay session.transcript --pty /tmp/kit -- ./my-script", OfflineCommand
)
@click.argument("transcript")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
@click.option("--pty", metavar="PATH", help="Serve on a terminal; PATH becomes a link to it.")
@click.option("--tcp", metavar="HOST:PORT", help="Serve on TCP; port 0 takes any that is free.")
@click.option("--allow-remote", is_flag=True, help="Let other machines connect.")
@click.option("--lenient", is_flag=True, help="Answer by command, in whatever order they come.")
@click.option("--paced", is_flag=True, help="Keep the recorded times between the answers.")
async def command(
    _session: Session,
    transcript: str,
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
    player = _Player(playback, paced=paced)
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


class _Player:
    """Answers the client of a port as the transcript does, with the recorded times if `paced`."""

    def __init__(self, playback: Playback, *, paced: bool) -> None:
        self._playback = playback
        self._paced = paced
        self._steps: asyncio.Queue[list[TranscriptStep]] = asyncio.Queue()
        self._client_came = asyncio.Event()
        self.over: asyncio.Future[AtError | None] = asyncio.get_running_loop().create_future()
        """The mismatch that ended the replay; None if the recorded link had ended for good."""

    def receive(self, data: bytes) -> None:
        """Match bytes of the client with the transcript; a mismatch ends the replay."""
        if self.over.done():
            return
        try:
            self._steps.put_nowait(self._playback.sent(data))
        except TranscriptError as error:
            self.end(error)

    def end(self, reason: AtError | None) -> None:
        """End the replay, for `reason` or because the recorded session is over."""
        if not self.over.done():
            self.over.set_result(reason)

    async def play_on(self, port: PtyServer | TcpServer, *, stays: bool) -> None:
        """Print on a port, and hang up where the recorded line was closed.

        Returns once it is closed for good, when nothing follows in the session. With `stays` the
        port always comes back.
        """
        port.opened = self._client_came.set
        steps = self._playback.first_steps()
        while True:
            try:
                if await self._play(steps, port, stays=stays):
                    return
            except AtError as error:
                self.end(error)
                return
            steps = await self._steps.get()

    async def _play(
        self, steps: list[TranscriptStep], port: PtyServer | TcpServer, *, stays: bool
    ) -> bool:
        """Print steps, at once or at their times; return True if the port was closed for good."""
        before = next((step.at_s for step in steps if step.at_s is not None), 0.0)
        for number, step in enumerate(steps, 1):
            if self._paced and step.at_s is not None:
                await asyncio.sleep(step.at_s - before)
                before = step.at_s
            # What is printed before a client has opened the port is lost.
            await self._client_came.wait()
            if step.direction is not Direction.CLOSED:
                port.send(step.data)
                continue
            goes_on = stays or number < len(steps) or bool(self._playback.remaining)
            self._client_came.clear()
            await port.hang_up(for_good=not goes_on)
            if not goes_on:
                return True
        return False
