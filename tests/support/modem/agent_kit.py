"""A kit of the agent whose modem answers by lines, in virtual time; later another one is there."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.auth.credential import Keyring
from agent.config.profile import KitSettings, Profile
from agent.daemon.kit import link
from agent.daemon.kit.kit import KitAgent
from agent.daemon.kit.store import KitStore
from agent.daemon.status import StatusRegistry
from agent.http import HttpClient
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

NO_OUTBOX = SimpleNamespace(submit=lambda _work: None)


def kit_of(
    modem: LineModem,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: StatusRegistry,
    outbox: Any = NO_OUTBOX,
    wake_delivery: Callable[[], None] = lambda: None,
    console_port: str = "",
) -> KitAgent:
    monkeypatch.setattr(link, "transport_of", lambda *_, **__: modem.transport)
    nowhere: Any = None
    return KitAgent(
        "kit",
        Profile(kit=KitSettings(port="/dev/ttyACM0", console_port=console_port)),
        HttpClient(nowhere, {}, Keyring([])),
        registry=registry,
        outbox=outbox,
        store=KitStore(folder, "lab", "kit"),
        wake_delivery=wake_delivery,
    )


def serve(kit: KitAgent, seconds: float) -> None:
    async def limited() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(kit.link.run(), seconds)

    virtual_time.run(limited())


def is_other() -> bool:
    """Whether another kit is here by now, in the place of the first."""
    return asyncio.get_running_loop().time() > 30.0


def imei_by_the_time(command: str) -> str | None:
    imei = "490154203237518" if is_other() else "352656100367872"
    return f'+CGSN: "{imei}"' if command == "AT+CGSN=1" else ""


def imei_and_firmware_by_the_time(command: str) -> str | None:
    return "mfw_nrf91x1_2.0.1" if command == "AT+CGMR" else imei_by_the_time(command)
