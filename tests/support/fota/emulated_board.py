"""A board that QEMU emulates: a Zephyr application and the MCUboot that swaps it, as released.

Flash outlives `power_cycle`, which stops the processor wherever it is, also between the two halves
of a swap. The image carries a hash and no signature, so that other versions of it are made here.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from intelhex import IntelHex

from agent.errors import AgentError
from agent.fota.clock import LoopClock
from agent.fota.installers.base import Package, ProgressCallback
from agent.fota.installers.mcuboot import McubootInstaller
from agent.fota.jobs import FirmwareType
from at.protocol.errors import AtError
from at.virtual.server.pty import PtyServer
from tests.support.fota.download_server import file_server
from tests.support.fota.file_backed_kit import FileBackedCloud, make_runner
from tests.support.fota.signed_images import HEADER_BYTES, signed_image

_FILES = Path(__file__).resolve().parents[3] / ".peers" / "mcuboot-board"
_BOTH, _IMAGE = _FILES / "serial.merged.hex", _FILES / "serial.signed.bin"
_QEMU = "qemu-system-arm"
_SLOT = 0x8000
"""Where the first slot begins in its flash."""
_BRANCH_TO_ITSELF = bytes.fromhex("fee7")
_RECEIVED = 0x40002518
"""The register of received bytes; reading it takes the oldest out."""
_BOOTS, _RUNS = b"*** Booting MCUboot", b"*** Booting Zephyr"
_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

needs_board = pytest.mark.skipif(
    not (_BOTH.is_file() and shutil.which(_QEMU)),
    reason=f"needs {_QEMU}, which `sudo ./scripts/setup` installs, and `./scripts/peers`",
)


class Board:
    """The board while it is on. Its line hears nothing before its application runs."""

    def __init__(self, folder: Path, control: _Stream, line: _Stream) -> None:
        self._control, self._line = control, line
        self._one_at_a_time = asyncio.Lock()
        self._terminal = PtyServer(folder / "board", self._to_board)
        self.port = self._terminal.port
        self._hears = False
        self._passing = asyncio.ensure_future(self._from_board())

    async def power_cycle(self) -> None:
        """Cut the power and give it back."""
        self._hears = False
        await self.tell("system_reset")

    async def tell(self, command: str, **arguments: str) -> None:
        """Have QEMU carry out a command of its machine protocol."""
        reader, writer = self._control
        async with self._one_at_a_time:
            writer.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
            while b'"return"' not in await reader.readline():
                pass

    def _to_board(self, data: bytes) -> None:
        if self._hears:
            self._line[1].write(data)

    async def _from_board(self) -> None:
        said = b""
        while data := await self._line[0].read(4096):
            self._terminal.send(data)
            said = said[-len(_BOOTS) :] + data
            if _BOOTS in said:
                self._hears = False
            if _RUNS in said and not self._hears:
                # Bytes that came before the cut stand in the UART, whose driver waits for the next.
                await self.tell("human-monitor-command", **{"command-line": f"xp {_RECEIVED:#x}"})
                self._hears = True

    async def close(self) -> None:
        self._terminal.close()
        self._passing.cancel()
        for _, writer in (self._control, self._line):
            writer.close()


@asynccontextmanager
async def emulated_board(folder: Path) -> AsyncIterator[Board]:
    async with _listener(folder / "control") as control, _listener(folder / "line") as line:
        qemu = await asyncio.create_subprocess_exec(
            *(_QEMU, "-machine", "microbit", "-cpu", "cortex-m0", "-display", "none", "-S"),
            *("-chardev", f"socket,id=line,path={folder}/line", "-serial", "chardev:line"),
            *("-qmp", f"unix:{folder}/control", "-monitor", "none"),
            *("-gdb", f"unix:{folder}/probe,server=on,wait=off"),
        )  # fmt: skip
        try:
            board = Board(folder, await control, await line)
            await board.tell("qmp_capabilities")
            await _program(folder / "probe")
            await board.power_cycle()
            await board.tell("cont")
            yield board
            await board.close()
        finally:
            qemu.kill()
            await qemu.wait()


@asynccontextmanager
async def _listener(path: Path) -> AsyncIterator[asyncio.Future[_Stream]]:
    """Listen on a socket; give who connects to it."""
    connected: asyncio.Future[_Stream] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_unix_server(
        lambda reader, writer: connected.set_result((reader, writer)), path
    )
    try:
        yield connected
    finally:
        server.close()


async def _program(debugger: Path) -> None:
    """Write flash as a debug probe does: what QEMU loads itself, it loads again at each reset."""
    both = IntelHex(str(_BOTH))
    reader, writer = await asyncio.open_unix_connection(str(debugger))
    for start, end in both.segments():
        for at in range(start, end, 1024):
            data = both.tobinstr(start=at, end=min(at + 1024, end) - 1)
            packet = f"M{at:x},{len(data):x}:{data.hex()}".encode()
            writer.write(b"$%s#%02x" % (packet, sum(packet) % 256))
            assert await reader.readuntil(b"#9a") == b"+$OK#9a"
            writer.write(b"+")
    writer.write(b"$D#44")
    await reader.readuntil(b"#9a")
    writer.close()
    await writer.wait_closed()


def other_version(folder: Path, version: str, *, starts: bool = True) -> Path:
    """Write another version of the board's application; one that does not start stands still."""
    whole = _IMAGE.read_bytes()
    body = bytearray(whole[HEADER_BYTES : HEADER_BYTES + int.from_bytes(whole[12:16], "little")])
    if not starts:
        first = int.from_bytes(body[4:8], "little") - 1 - _SLOT - HEADER_BYTES
        body[first : first + 2] = _BRANCH_TO_ITSELF
    return signed_image(folder, version, body=bytes(body))


Moment = Callable[[str, float], bool]
"""Whether the power is to be cut now: at "upload" with the share that is done, "swap", "confirm"
or "confirmed"."""


class CutInstaller(McubootInstaller):
    """Cuts the power of its board once, at a moment of the install."""

    def __init__(self, board: Board, moment: Moment, later_s: float = 0) -> None:
        super().__init__(board.port)
        self.board = board
        self.moment = moment
        self.later_s = later_s
        self.cuts = 0
        self._cut: asyncio.Task[None] | None = None

    def _reached(self, stage: str, share: float = 0) -> None:
        if not self.cuts and self.moment(stage, share):
            self.cuts += 1
            self._cut = asyncio.ensure_future(self._later())

    async def _later(self) -> None:
        await asyncio.sleep(self.later_s)
        await self.board.power_cycle()

    async def install(self, package: Package, progress: ProgressCallback) -> str:
        def cutting(stage: str, done: int, total: int) -> None:
            self._reached("upload", done / total)
            progress(stage, done, total)

        seen = await super().install(package, cutting)
        self._reached("swap")
        return seen

    async def confirm(self, package: Package) -> None:
        self._reached("confirm")
        if self._cut is not None:
            await self._cut
        await super().confirm(package)
        self._reached("confirmed")
        if self._cut is not None:
            await self._cut


@dataclass(frozen=True, slots=True)
class Ending:
    """How an update ended, and what the board runs after its power was cut once more."""

    status: str
    detail: str
    runs: str
    confirmed: bool
    cuts: int
    pulls: int

    @property
    def true(self) -> bool:
        """Whether what was reported is what is on the board, and will stay there."""
        new = self.runs == "2.0.0"
        return self.confirmed and new == (self.status == "SUCCEEDED")


async def updated(
    folder: Path, board: Board, moment: Moment, *, later_s: float = 0, starts: bool = True
) -> Ending:
    """Carry out a job with the image of version 2.0.0, pulled again until it has ended."""
    path = other_version(folder, "2.0.0", starts=starts)
    installer = CutInstaller(board, moment, later_s)
    async with file_server(path.read_bytes()) as host:
        cloud = FileBackedCloud(folder)
        cloud.offer(
            firmwareType="APP", host=host.url, path="a.bin",
            fileSize=path.stat().st_size, version="2.0.0",
        )  # fmt: skip
        result, pulls = None, 0
        while pulls < 4:
            pulls += 1
            runner = make_runner(folder, clock=LoopClock(), installer=installer)
            try:
                result = await runner.pull()
            except (AgentError, AtError):
                # The kit is away: a person pulls again once it is back.
                while await installer.running(FirmwareType.APP) is None:
                    pass
            finally:
                await runner.close()
            if result is not None and result.status.final:
                break
    assert result is not None, "never came to an end"
    await board.power_cycle()
    now = None
    while now is None:
        now = await installer.running(FirmwareType.APP)
    states = await installer._images()
    confirmed = all(state.confirmed for state in states if state.active)
    return Ending(result.status.value, result.detail, now.version, confirmed, installer.cuts, pulls)
