"""A kit behind a PTY that speaks SMP and keeps MCUboot's slots and rules. Not a mock of a client:
frames are read and written with the `smp` package's codec, images are what imgtool made.

MCUboot's rules here: an upload goes to the second slot; `test` marks it; the next restart swaps if
hash (and signature, as far as the hash covers) hold; what is not confirmed goes back at the
restart after that; `confirm` makes it stay.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cbor2
from smp import header as smp_header
from smp import packet

from agent.fota.image import BadImage, hash_of, read_image
from at.virtual.server.pty import PtyServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_OK: dict[str, Any] = {}
_NO_ENTRY, _BUSY, _NO_MEMORY = 5, 10, 2


@dataclass
class Slot:
    content: bytes
    version: str
    hash: bytes


@dataclass
class SmpKit:
    folder: Path
    running: Slot
    second: Slot | None = None
    pending: bool = False
    confirmed: bool = True
    slot_bytes: int = 1 << 20
    buffer_bytes: int = 2048
    mood: str = "good"
    """good; mute (no answer at all); dead (never back after a restart); no-swap (MCUboot refuses
    the image); crash (the new image falls over, so the next restart goes back); cut (the line
    goes dead after half an upload); lossy (packets of an upload are lost, and answers); late (an
    answer comes when nobody waits for it any more, before the next one)."""
    mode: int | None = None
    """The mode of MCUboot, if its application can tell it."""
    uploads: int = 0
    restarts: int = 0
    requests: int = 0
    _upload: bytearray = field(default_factory=bytearray)
    _upload_size: int = 0
    _upload_sha: bytes = b""
    _deaf: bool = False
    _late: bytes = b""
    _restarting: asyncio.TimerHandle | None = None
    port: str = ""
    say: Callable[[bytes], None] = lambda _data: None
    """Prints on the line, where an answer may stand as well as a line of the console."""

    # --- what the requests do

    def answer(self, group: int, command: int, write: bool, body: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        match group, command:
            case 0, 0:
                return {"r": body.get("d", "")}
            case 0, 5:
                self._deaf = True
                self._restart_in(0.02)
                return _OK
            case 0, 6:
                return {"buf_size": self.buffer_bytes, "buf_count": 4}
            case 0, 8 if self.mode is not None:
                return {"mode": self.mode, "no-downgrade": True}
            case 1, 0:
                return self._set_state(body) if write else self._states()
            case 1, 1:
                return self._take(body)
        return {"rc": 8}

    def _states(self) -> dict[str, Any]:
        images = [
            {
                "slot": 0,
                "version": self.running.version,
                "hash": self.running.hash,
                "bootable": True,
                "confirmed": self.confirmed,
                "active": True,
            }
        ]
        if self.second is not None:
            images.append(
                {
                    "slot": 1,
                    "version": self.second.version,
                    "hash": self.second.hash,
                    "bootable": True,
                    "pending": self.pending,
                    "confirmed": not self.confirmed,
                }
            )
        return {"images": images, "splitStatus": 0}

    def _set_state(self, body: dict[str, Any]) -> dict[str, Any]:
        wanted = body.get("hash") or self.running.hash
        if body.get("confirm"):
            if wanted == self.running.hash:
                self.confirmed = True
            elif self.second is not None and wanted == self.second.hash:
                self.pending = True  # and for good, as the real one does, without a trial
            else:
                return {"rc": _NO_ENTRY}
        elif self.second is None or wanted != self.second.hash:
            return {"rc": _NO_ENTRY}
        elif not self.confirmed:
            return {"rc": _BUSY}
        else:
            self.pending = True
        return self._states()

    def _take(self, body: dict[str, Any]) -> dict[str, Any]:
        offset, data = body["off"], body["data"]
        if offset == 0:
            if self.pending or not self.confirmed:
                return {"rc": _BUSY}
            if body["len"] > self.slot_bytes:
                return {"rc": _NO_MEMORY, "rsn": "image too large"}
            sha = body.get("sha", b"")
            if sha and sha == self._upload_sha and body["len"] == self._upload_size:
                return {"off": len(self._upload)}
            self.uploads += 1
            self._upload, self._upload_size, self._upload_sha = bytearray(), body["len"], sha
            self.second = None
        if offset != len(self._upload):
            return {"off": len(self._upload)}
        self._upload += data
        if self.mood == "cut" and len(self._upload) > self._upload_size // 2:
            self._deaf = True
        if len(self._upload) < self._upload_size:
            return {"off": len(self._upload)}
        content, sha = bytes(self._upload), self._upload_sha
        self._upload_sha = b""
        self.second = self._slot(content)
        good = not sha or hashlib.sha256(content).digest() == sha
        return {"off": len(content), "match": good}

    def _slot(self, content: bytes) -> Slot | None:
        path = self.folder / "slot1.bin"
        path.write_bytes(content)
        try:
            image = read_image(path)
        except BadImage:
            return None
        version = image.version.replace("+0", "").replace("+", ".")
        return Slot(content, version, image.stated_hash)

    def _restart_in(self, seconds: float) -> None:
        self._restarting = asyncio.get_running_loop().call_later(seconds, self.restart)

    def stop(self) -> None:
        """Switch the kit off: a restart that was to come would miss its folder."""
        if self._restarting is not None:
            self._restarting.cancel()

    def restart(self) -> None:
        """What MCUboot does at boot."""
        self.restarts += 1
        if self.mood == "dead":
            return
        self._deaf = False
        if self.pending and self.second is not None:
            self.pending = False
            if self.mood != "no-swap" and self._holds(self.second):
                self.running, self.second = self.second, self.running
                self.confirmed = False
                if self.mood == "crash":
                    self._deaf = True
                    self._restart_in(0.05)
        elif not self.confirmed and self.second is not None:
            self.running, self.second = self.second, self.running
            self.confirmed = True

    def _holds(self, slot: Slot) -> bool:
        path = self.folder / "boot.bin"
        path.write_bytes(slot.content)
        image = read_image(path)
        return hash_of(path, image.hashed_bytes, image.algorithm) == image.stated_hash

    # --- the line

    def frame(self, data: bytes) -> bytes | None:
        """Answer one SMP frame."""
        if self._deaf or self.mood == "mute":
            return None
        head = smp_header.Header.loads(data[:8])
        body = cbor2.loads(bytes(data[8:])) if len(data) > 8 else {}
        write = head.op is smp_header.OP.WRITE
        loses = self.mood == "lossy" and "off" in body
        if loses and self.requests % 9 == 0:
            self.requests += 1
            return None
        reply = cbor2.dumps(self.answer(int(head.group_id), int(head.command_id), write, body))
        if loses and self.requests % 9 == 5:
            return None
        answered = smp_header.Header(
            op=smp_header.OP.WRITE_RSP if write else smp_header.OP.READ_RSP,
            version=head.version,
            flags=smp_header.Flag(0),
            length=len(reply),
            group_id=head.group_id,
            sequence=head.sequence,
            command_id=head.command_id,
        )
        late, self._late = self._late, b""
        if late:
            self.say(encoded(late))
        elif self.mood == "late" and "off" in body and self.requests % 9 == 5:
            self._late = answered.BYTES + reply
            return None
        return answered.BYTES + reply


def encoded(frame: bytes) -> bytes:
    """Return a frame as it stands on a line of text."""
    return b"".join(packet.encode(frame, line_length=128))


class SmpLine:
    """Reads requests from the bytes of a line; the kit says its answers."""

    def __init__(self, kit: SmpKit) -> None:
        self._kit = kit
        self._pending = bytearray()
        self._decoder: Any = None

    def receive(self, data: bytes) -> None:
        self._pending.extend(data)
        while b"\n" in self._pending:
            line, _, rest = bytes(self._pending).partition(b"\n")
            self._pending[:] = rest
            if line.startswith(packet.START_DELIMITER):
                self._decoder = packet.decode()
                next(self._decoder)
            if self._decoder is None:
                continue
            try:
                self._decoder.send(line + b"\n")
            except StopIteration as whole:
                self._decoder = None
                if (answer := self._kit.frame(bytes(whole.value))) is not None:
                    self._kit.say(encoded(answer))


def booted(folder: Path, running: Path, **options: Any) -> SmpKit:
    """A kit that runs the image in a file."""
    kit = SmpKit(folder=folder, running=Slot(b"", "", b""), **options)
    started = kit._slot(running.read_bytes())
    assert started is not None
    kit.running = started
    return kit


@asynccontextmanager
async def smp_kit(folder: Path, running: Path, **options: Any) -> AsyncIterator[SmpKit]:
    """Serve a kit that runs the image in the file `running`, on a PTY of its own."""
    kit = booted(folder, running, **options)
    port = PtyServer(folder / "smp", SmpLine(kit).receive)
    kit.port, kit.say = port.port, port.send
    try:
        yield kit
    finally:
        kit.stop()
        port.close()
