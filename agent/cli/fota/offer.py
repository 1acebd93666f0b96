"""`cellagent fota offer`: an image to devices, by a bundle and a job at the device cloud."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import click

from agent.cli.framework.command import agent_command, emit_or_say, note
from agent.cli.framework.file_type import WHOLE_FILE
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.errors import AgentError, NotFound, ServiceRefusal, UsageError

_OF_A_BUILD = {
    rb"PK\x03\x04": "an archive",
    rb"\x7fELF": "an ELF file",
    rb":[0-9A-Fa-f]{10}": "in Intel HEX",
}
"""How the files begin that a build leaves beside the image."""


@agent_command("cellagent fota offer build/zephyr/app_update.bin --tag bench")
@click.argument("image", type=WHOLE_FILE)
@click.option("--version", metavar="V", help="Its version; else that of an MCUboot image's header.")
@click.option(
    "--device", "devices", multiple=True, metavar="ID", help="For this device; repeatable."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="For all devices with this tag.")
@click.option(
    "--type", "file_type", type=click.Choice(["application", "mcuboot"]), default="application",
    show_default=True, help="What it is: the application, or its boot loader.",
)  # fmt: skip
@click.option("--name", metavar="TEXT", help="What people read; else the name of the file.")
async def offer(
    session: Session,
    image: Path,
    version: str | None,
    devices: tuple[str, ...],
    tags: tuple[str, ...],
    file_type: str,
    name: str | None,
) -> None:
    """Upload a firmware image, and make a job that installs it.

    Without --device and --tag the job is for the kit in use: `kit.device_id` of the profile, or
    what its modem says it is. `fota pull` or a running agent then carries it out.
    """
    from agent.cloud.client import DeviceCloud
    from agent.cloud.conventions import missing
    from agent.cloud.device_reads import Filter, ListDevices
    from agent.cloud.firmware import CreateJob, DeleteFirmware, UploadFirmware, bundle

    if devices and tags:
        raise UsageError("a job is for devices or for tags, not for both")
    content, told = _read(image, version)
    where = ", where such a kit is" if devices or tags else ""
    devices = devices if devices or tags else (await _kit_in_use(session),)
    async with session.client() as client:
        cloud = DeviceCloud(client)
        for tag in tags:  # a job for a tag that nobody has is taken, and does nothing
            if not (await cloud.page(ListDevices(Filter(tags=(tag,)), page_limit=1))).items:
                raise NotFound(f"no device has the tag {tag}", hint=missing(404))
        packed = bundle(content, told, name=name or image.name, file_type=file_type)
        bundle_id = await client.send(UploadFirmware(packed))
        note(f"uploaded {len(content):,} bytes as {bundle_id}")
        try:
            job_id = await client.send(CreateJob(bundle_id, devices, tags))
        except ServiceRefusal:
            with suppress(AgentError):  # the refusal is what is told
                await client.send(DeleteFirmware(bundle_id))
                note(f"{bundle_id} was deleted again")
            raise
        except (AgentError, asyncio.CancelledError):
            check = pasteable_hint("`cellagent fota check`", "", session)
            note(f"there may be a job of {bundle_id} now: {check} shows what waits for a kit")
            raise
    whom = ", ".join(devices) or "tag " + ", ".join(tags)
    emit_or_say(
        session,
        {"job": job_id, "bundle": bundle_id, "version": told, "devices": devices, "tags": tags},
        f"{job_id}: version {told} for {whom}\nto carry it out{where}: "
        + pasteable_hint("`cellagent fota pull`", "", session),
    )


def _read(image: Path, version: str | None) -> tuple[bytes, str]:
    """Return the bytes of an image and its version. Raises UsageError."""
    from agent.fota.versions import same_version

    with image.open("rb") as file:
        head = file.read(12)
    for start, what in _OF_A_BUILD.items():
        if re.match(start, head):
            raise UsageError(
                f"{image} is {what}, which no boot loader takes",
                hint="offer the .bin that imgtool signed: an archive of the build, "
                "dfu_application.zip, holds it, and beside it is zephyr.signed.bin",
            )
    found = _version_of(image, version)
    if version and not same_version(version, found):
        note(
            f"{image} says version {found}: `fota pull` and `run` will refuse it as {version}, "
            f"which --version {found} mends"
        )
    return image.read_bytes(), version or found


def _version_of(image: Path, told: str | None) -> str:
    """Return the version that an image states, what was told of one that states none."""
    from agent.fota.image import BadImage, has_own_hash, is_mcuboot, read_image

    if not is_mcuboot(image):
        if told:
            note(
                f"{image} is no MCUboot image: `fota pull` and `run` will refuse it, and take the "
                ".bin that imgtool signed: of a build, zephyr.signed.bin"
            )
            return told
        raise UsageError(
            f"{image} is no MCUboot image, so its version is not known", hint="`--version 1.2.3`"
        )
    try:
        read = read_image(image)
        if not read.encrypted and not has_own_hash(image, read):
            raise BadImage("its own hash does not agree with its content")
    except BadImage as bad:
        raise UsageError(
            f"{image}: {bad}",
            hint="offer the file as imgtool signed it, without --pad and --confirm: of a build, "
            "zephyr.signed.bin",
        ) from bad
    return read.version.removesuffix("+0").replace("+", "-")


async def _kit_in_use(session: Session) -> str:
    from agent.wiring.update_runner import device_id_of

    if session.profile.kit.device_id:
        return session.profile.kit.device_id
    async with session.modem() as modem:
        return await device_id_of(modem)
