"""`cellagent demo`: all that the agent does, once, for a person to watch."""

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit, emit_or_say, say
from agent.cli.framework.file_type import OUTPUT_FILE
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import show_progress, width_of_text, wrapped
from agent.errors import AgentError, UsageError
from agent.extras import STANDIN, require

_WORDS = {
    "find": "found the port that answers AT",
    "gate": "the modem's firmware may make device calls",
    "provision": "the modem made its own key",
    "register": "the cloud knows the device by its public key",
    "jwt": "a token that the modem signed was accepted",
    "scan": "cells and Wi-Fi were heard",
    "locate": "the kit was found",
    "fota": "an update was pulled, proven, installed and read back",
    "crash": "a crash was caught on the console and delivered",
    "event": "an event was pushed",
    "outage": "a service that answered 503 lost nothing",
}
_NEXT = """
What next:
  cellagent ports                 a kit on USB: which of its ports answers AT
  cellagent modem check           is it alive, may it be used, is it attached
  cellagent run --port PORT       the agent, for as long as you like
  cellagent cloud serve --write-profile standin -- bash
                                  a shell whose commands talk to the stand-in"""


@agent_command("cellagent demo --json", OfflineCommand)
@click.option(
    "--write-image", type=OUTPUT_FILE,
    metavar="FILE", help="Write the image that it installs, to try `fota offer` with.",
)  # fmt: skip
@click.option("--image-version", metavar="X.Y.Z", help="With --write-image: in place of its own.")
async def command(session: Session, write_image: Path | None, image_version: str | None) -> int:
    """Run the whole round on a virtual kit and a stand-in cloud: no kit, no account, no network.

    Everything is real but the kit and the service: ports, sockets, the outbox on disk.
    """
    if write_image is not None:
        return _write_image(session, write_image, image_version)
    if image_version is not None:
        raise UsageError("--image-version is that of the image which --write-image FILE writes")
    require("the demonstration's stand-in cloud", *STANDIN)
    from agent.demo.environment import demo_environment
    from agent.demo.steps import Demonstration, steps

    if not session.verbosity:  # its last step is a failure on purpose
        logging.getLogger("agent.outbox.delivery_loop").setLevel(logging.ERROR)
    began = time.monotonic()
    ok = True
    if not session.json:
        say("A virtual nRF9161 kit and a stand-in for both services, on this machine alone.\n")
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(demo_environment())
        demonstration = Demonstration(environment, show_progress, stack)
        for name, step in steps(demonstration):
            if not await _run_step(session, name, step):
                ok = False
                break
    seconds = round(time.monotonic() - began, 2)
    if session.json:
        emit({"summary": {"ok": ok, "seconds": seconds}})
    elif ok:
        say(f"\nAll of it in {seconds:.1f} s.")
        say(_NEXT)
    return 0 if ok else AgentError.exit_code


def _write_image(session: Session, file: Path, asked: str | None) -> int:
    from agent.demo import firmware
    from agent.files.private_files import output_file
    from agent.fota.versions import parse_version

    parsed = None if asked is None else parse_version(asked)
    if asked is not None and (parsed is None or max(parsed.core) > 255):
        raise UsageError(
            f"{asked!r} is no version of an image", hint="write it as 2.0.2, no number above 255"
        )
    numbers = parsed.core if parsed else firmware.NEW_VERSION
    image = firmware.mcuboot_image(numbers, firmware.IMAGE_BYTES)
    with output_file(file, private=False) as opened:
        opened.write(image)
    version = ".".join(map(str, numbers))
    told = {"file": str(file), "version": version, "bytes": len(image)}
    emit_or_say(session, told, f"{file}: version {version}, {len(image):,} bytes")
    return 0


async def _run_step(
    session: Session, name: str, step: Callable[[], Awaitable[dict[str, object]]]
) -> bool:
    """Run one step and show it, or the error that stops it; return True if it succeeded."""
    from at.protocol.errors import AtError

    began = time.monotonic()
    try:
        detail, failure = await step(), None
    except (AgentError, AtError) as error:
        detail, failure = {"reason": str(error), "try": error.hint}, error
    seconds = time.monotonic() - began
    if session.json:
        emit({"step": name, "ok": failure is None, "seconds": round(seconds, 3), "detail": detail})
    elif failure is None:
        say(f"  ok  {name:9} {_WORDS[name]} ({seconds:.1f} s)")
        shown = ", ".join(_fact(key, value) for key, value in detail.items())
        say(_indented(shown))
    else:
        say(f"FAIL  {name:9} {failure}")
        if failure.hint:
            say(_indented(f"try: {failure.hint}"))
    return failure is None


def _fact(key: str, value: object) -> str:
    name = key.removesuffix("_m").replace("_", " ")
    return f"{name} {value} m" if key.endswith("_m") else f"{name} {value}"


def _indented(text: str) -> str:
    return "\n".join(wrapped(text, " " * 16, width=width_of_text() - 1))
