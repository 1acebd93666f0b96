"""After an install: waiting until the kit says what it runs. Success is only what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import AgentError
from agent.fota.installers.base import runs

if TYPE_CHECKING:
    from agent.fota.download import Clock
    from agent.fota.installers.base import Installer, Package

DEADLINE_S = 300.0
"""A swap of two 1 MB slots takes a minute, a whole modem image a few."""
PAUSE_S = 2.0
SAME_ANSWERS = 3
"""So often in a row the kit must name something else before it is believed."""


class NotSeen(AgentError):
    """The new version did not run within the time; the message says what did."""

    kind = "fota-readback"


async def read_back(
    installer: Installer,
    package: Package,
    *,
    before: str,
    clock: Clock,
    deadline_s: float = DEADLINE_S,
) -> str:
    """Return the version that runs, once it is the package's. Raises NotSeen."""
    end = clock.monotonic() + deadline_s
    others = 0
    last = ""
    while True:
        now = await installer.running(package.job.kind)
        if now is not None:
            if runs(package, now, before):
                return now.version
            last = now.version
            others = 0 if now.pending else others + 1
            if others >= SAME_ANSWERS:
                break
        if clock.monotonic() + PAUSE_S > end:
            break
        await clock.sleep(PAUSE_S)
    wanted = package.version or "the new version"
    if not last:
        raise NotSeen(f"the kit did not answer within {deadline_s:.0f} s after the restart")
    if last == before:
        raise NotSeen(f"the kit runs {last} as before, not {wanted}: it went back, or never left")
    raise NotSeen(f"the kit runs {last or 'nothing that it names'}, not {wanted}")
