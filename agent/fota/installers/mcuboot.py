"""MCUboot over serial: the image goes into the second slot by SMP, is tried once, then confirmed.

smpclient (the extra `mcuboot`) opens the port for each exchange and closes it again: after a
restart the port may have another name, and the kit's console may share it. What the kit prints
during an exchange is passed on (`overheard`). MCUboot swaps an image back at the next restart that
was not confirmed after its trial; that is seen, and reported.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from cbor2 import CBORError, dumps, loads
from serial import Serial
from smp.error import MGMT_ERR
from smp.exceptions import SMPException
from smp.image_management import IMG_MGMT_ERR, ImageState, ImageStatesReadResponse
from smp.os_management import OS_MGMT_RET_RC, BootloaderInformationReadResponse
from smpclient import SMPClient
from smpclient.exceptions import SMPClientException, SMPUploadError
from smpclient.generics import error
from smpclient.requests.image_management import ImageStatesRead, ImageStatesWrite
from smpclient.requests.os_management import BootloaderInformationRead, ResetWrite
from smpclient.transport import SMPTransportDisconnected
from smpclient.transport.serial import SMPSerialTransport

from agent.fota.image import read_image
from agent.fota.installers.base import InstallFailed, Package, ProgressCallback, RunningVersion
from agent.fota.jobs import FirmwareType, Job
from at.ports.holders import opening_error
from at.protocol.errors import LinkLost, NoAnswer, PortBusy, PortError, PortForbidden

_ANSWER_S = 5.0
_ERASE_S = 60.0
"""The first packet erases the slot: seconds per 100 kB on some flash."""
_SEQUENCE = 6
"""Where the header of a request and of its answer has the number that both share."""
_BODY = 8
_ERRORS = {
    group: frozenset(map(int, known))
    for group, known in ((None, MGMT_ERR), (0, OS_MGMT_RET_RC), (1, IMG_MGMT_ERR))
}
"""The errors that smp has names for, by their group; those of no group are None's."""
_SILENCES = 20
"""Packets of an upload without an answer after which it ends; two, where it got nowhere between."""
_REPEATS = 100
"""Answers in a row that ask for nothing new, after which an upload is given up."""
_ECHO = "; it echoes what it gets, as a shell without SMP does (CONFIG_MCUMGR_TRANSPORT_SHELL)"
_WITHOUT_TRIAL = {
    0: "has one slot",
    4: "runs images where they lie, without a way back",
    6: "loads images into RAM",
    7: "loads firmware from the one slot",
    8: "loads its one image into RAM",
}
"""Modes of MCUboot, as Zephyr numbers them, in which no image is tried and then confirmed."""


class _Silent(Exception):
    """Nothing behind the port speaks SMP at the moment."""


class _Client(SMPClient):
    """Raises SMPClientException also for what its parsers let through: no CBOR, no map."""

    async def request(self, request: Any, timeout_s: float | None = None) -> Any:
        try:
            return await super().request(request, timeout_s)
        except TimeoutError:  # what it says holds the whole packet
            raise TimeoutError(f"no answer in {timeout_s or _ANSWER_S:g} s") from None
        except (CBORError, SMPException, ValueError, TypeError, AssertionError) as odd:
            raise SMPClientException(str(odd) or type(odd).__name__) from odd


class _Transport(SMPSerialTransport):
    """Leaves out an echo, and an answer that comes after its request was given up."""

    asked = b""
    echoes = False

    async def send(self, data: bytes) -> None:
        self.asked = data
        await super().send(data)

    async def receive(self) -> bytes:
        while True:
            frame = await super().receive()
            if frame == self.asked:
                self.echoes = True
            elif frame[_SEQUENCE : _SEQUENCE + 1] == self.asked[_SEQUENCE : _SEQUENCE + 1]:
                return _with_named_error(frame)


def _with_named_error(frame: bytes) -> bytes:
    """Return an answer that smp can parse: another error as EUNKNOWN, its number as the reason.

    An application has errors of its own, from 256 on or in its own groups.
    """
    try:
        told = loads(frame[_BODY:])
        error = told.get("err", told)
        number, group = error.get("rc", 0), error.get("group")
        if number in _ERRORS.get(group, ()):
            return frame
        own = f"error {number}" + ("" if group is None else f" of group {group}")
        reason = ": ".join(filter(None, (own, told.get("rsn"))))
    except (CBORError, ValueError, TypeError, AttributeError):
        return frame  # that it is no SMP is told where it is parsed
    body = dumps({"rc": int(MGMT_ERR.EUNKNOWN), "rsn": reason})
    return frame[:2] + len(body).to_bytes(2, "big") + frame[4:_BODY] + body


class _Mode(BootloaderInformationReadResponse, extra="ignore"):
    bootloader: str = ""
    mode: int = -1


class _ReadMode(BootloaderInformationRead):
    _Response = _Mode


class _Image(ImageState, extra="ignore"):
    """A slot, to which an application may add what it likes (CONFIG_MCUMGR_GRP_IMG_..._HOOK)."""


class _States(ImageStatesReadResponse, extra="ignore"):
    images: list[_Image]  # type: ignore[assignment] # nobody adds to it


class _ReadStates(ImageStatesRead):
    _Response = _States  # type: ignore[assignment] # its slots say more


class _WriteStates(ImageStatesWrite):
    _Response = _States  # type: ignore[assignment] # as to the request to read


async def _ignore(_printed: bytes) -> None:
    pass


@dataclass(slots=True)
class McubootInstaller:
    """Installs over a kit's SMP server. No BOOT images: SMP does not name the one that runs."""

    port: str
    baud: int = 115200
    overheard: Callable[[bytes], Awaitable[None]] = _ignore
    name: str = "mcuboot"
    types: frozenset[FirmwareType] = frozenset({FirmwareType.APP, FirmwareType.SMP})

    async def check(self, job: Job) -> str:  # noqa: ARG002 - the seam's
        """Return why the slots are not free for an update, "" where they are.

        Raises NoAnswer where nothing speaks SMP: a kit that is off is no reason to reject a job.
        """
        active = _active(await self._images_or_lost())
        if active is None:
            return f"the SMP server on {self.port} names no running image"
        if active.confirmed is False:
            return (
                f"the kit runs {active.version} on trial: it must be confirmed or restarted first"
            )
        if active.hash is None:
            return "the kit's SMP server tells no image hashes: a success could not be seen"
        if (mode := await self._mode()) in _WITHOUT_TRIAL:
            return f"the kit's MCUboot {_WITHOUT_TRIAL[mode]}: no image can be tried and confirmed"
        return ""

    async def _mode(self) -> int:
        """Return the number of its MCUboot's mode, -1 where the SMP server does not tell it."""
        with suppress(_Silent):
            async with self._client() as client:
                answer = await client.request(_ReadMode(query="mode"))
            if not error(answer):
                return answer.mode
        return -1

    async def running(self, kind: FirmwareType) -> RunningVersion | None:  # noqa: ARG002 - the seam's
        """Return the active image, None while no SMP server answers."""
        with suppress(_Silent):
            images = await self._images()
            active = _active(images)
            if active is not None:
                return RunningVersion(
                    version=active.version,
                    image_hash=(active.hash or b"").hex(),
                    pending=any(image.pending for image in images),
                )
        return None

    async def install(self, package: Package, progress: ProgressCallback) -> str:
        """Upload into the second slot, mark it for a trial, restart the kit.

        What an install that was cut off has done is not done again: a slot that is marked takes no
        upload.
        """
        path = package.paths[0]
        digest = read_image(path).stated_hash
        try:
            there = next((one for one in await self._images() if one.hash == digest), None)
            async with self._client() as client:
                if there is None:
                    await _upload(client, path.read_bytes(), progress)
                if there is None or not there.pending:
                    answer = await client.request(_WriteStates(hash=digest))
                    if error(answer):
                        raise InstallFailed(f"the kit does not try the image: {_reason(answer)}")
            if not await self._restart():
                now = await self.running(package.job.kind)
                if now is not None and now.pending:  # it has lost the request
                    await self._restart()
        except _Silent as silent:
            raise LinkLost(
                f"{self.port}: the kit went silent during the upload: {silent}"
            ) from None
        return ""

    async def _restart(self) -> bool:
        """Return whether the kit says that it restarts; it may do so before its answer is out."""
        async with self._client() as client:
            with suppress(TimeoutError):
                await client.request(ResetWrite())
                return True
        return False

    async def confirm(self, package: Package) -> None:
        """Make the image permanent: else MCUboot swaps it back at the next restart.

        What runs is confirmed, by no hash: that of an image that went back meanwhile would have it
        swapped in for good at the next restart, after it was reported as FAILED.
        """
        try:
            async with self._client() as client:
                answer = await client.request(_WriteStates(confirm=True))
                if error(answer):
                    raise InstallFailed(f"the kit does not confirm it: {_reason(answer)}")
        except _Silent as silent:
            raise NoAnswer(f"{self.port}: no answer to the confirmation: {silent}") from None
        active = _active(await self._images_or_lost())
        digest = bytes.fromhex(package.image_hash)
        if active is not None and active.hash != digest:
            raise InstallFailed(f"it went back: the kit runs {active.version} again")
        if active is None or not active.confirmed:
            raise InstallFailed("the kit does not show it as confirmed")

    async def _images_or_lost(self) -> list[ImageState]:
        try:
            return await self._images()
        except _Silent as silent:
            raise NoAnswer(
                f"no SMP server answers on {self.port}: {silent}",
                hint="is the kit on? `cellagent config set kit.mcuboot_port PORT` names another "
                "port of it",
            ) from None

    async def _images(self) -> list[ImageState]:
        async with self._client() as client:
            answer = await client.request(_ReadStates())
        if error(answer):
            raise _Silent(_reason(answer))
        return list(answer.images)

    async def _connect(self, client: SMPClient) -> None:
        """Open the port. Raises PortError if it is in use or not permitted: waiting does not help.

        smpclient tries for a while, and then only says that it did not succeed.
        """
        try:
            await client.connect()
        except TimeoutError:
            refused = await asyncio.to_thread(_refused_opening, self.port)
            if isinstance(refused, PortBusy | PortForbidden):
                raise refused from None
            raise
        except ValueError as odd:  # the buffer that the kit declares holds no message
            raise SMPClientException(str(odd)) from odd

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[SMPClient]:
        """Open the port, then close it. Raises _Silent for everything that means "not there"."""
        # What it would warn of is raised as well, and then told in our words.
        logging.getLogger("smpclient").setLevel(logging.CRITICAL)
        transport = _Transport(baudrate=self.baud, exclusive=True)
        client = _Client(transport, self.port, timeout_s=_ANSWER_S)
        try:
            await self._connect(client)
            try:
                yield client
            finally:
                with suppress(SMPTransportDisconnected):
                    if printed := await transport.read_serial():
                        await self.overheard(printed)
        except (SMPTransportDisconnected, OSError) as away:
            said = str(away) or type(away).__name__
            raise _Silent(f"{said}{_ECHO if transport.echoes else ''}") from away
        except SMPClientException as odd:
            said = " ".join(str(odd).split())
            raise _Silent(f"its answer is not SMP: {said}") from odd
        finally:
            with suppress(OSError):
                await client.disconnect()


async def _upload(client: SMPClient, content: bytes, progress: ProgressCallback) -> None:
    """Upload an image into the second slot. Raises InstallFailed where the kit refuses it.

    The line may lose a byte of a packet or of its answer, and the kit may restart: begun anew, an
    upload goes on where the kit says.
    """
    barren = 0
    for left in reversed(range(_SILENCES)):
        start = -1
        try:
            async for offset in _uploading(client, content):
                start = offset if start < 0 else start
                barren = 0 if offset > start else barren
                progress("upload", offset, len(content))
        except TimeoutError:
            barren += 1
            if barren == 2 or not left:
                raise
        else:
            return


async def _uploading(client: SMPClient, content: bytes) -> AsyncIterator[int]:
    """Upload an image, yielding the byte that the kit asks for next."""
    furthest, since = -1, 0
    try:
        async for offset in client.upload(
            content, first_timeout_s=_ERASE_S, subsequent_timeout_s=_ANSWER_S
        ):
            # A packet that was lost is asked for again. smpclient would go on with it for ever.
            furthest, since = (offset, 0) if offset > furthest else (furthest, since + 1)
            if since > _REPEATS or not 0 <= offset <= len(content):
                raise InstallFailed(
                    f"the kit does not take the image: it asks for byte {offset} of {len(content)}"
                    + f" after it had {furthest}" * (0 <= offset <= len(content))
                )
            yield offset
    except SMPUploadError as refused:
        raise InstallFailed(f"the kit refused the upload: {_reason(refused)}") from refused


def _refused_opening(port: str) -> PortError | None:
    """Return what keeps `port` from being opened, None where nothing does (any more)."""
    device = os.path.realpath(port)
    try:
        Serial(device, exclusive=True).close()
    except OSError as error:  # pyserial's own is one
        return opening_error(port, device, error)
    return None


def _active(images: list[ImageState]) -> ImageState | None:
    return next((image for image in images if image.active and not image.image), None)


def _reason(refusal: object) -> str:
    """Return an SMP error in words; `refusal` is a response or the exception that holds one."""
    response = refusal.args[0] if isinstance(refusal, Exception) and refusal.args else refusal
    for name in ("rc", "err"):
        code = getattr(response, name, None)
        if code is not None:
            inner = getattr(code, "rc", code)
            text = getattr(inner, "name", None) or str(inner)
            reason = getattr(response, "rsn", None)
            return f"{text}: {reason}" if reason else text
    # smpclient puts the whole answer behind what it says.
    return str(response).partition(": header=")[0][:120]
