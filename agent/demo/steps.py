"""The steps of the demonstration, in order; each returns what it saw, or raises."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import struct
import time
import zipfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.auth.modem_jwt import ask_modem
from agent.call import Scheme
from agent.cloud.devices import FetchDevice
from agent.demo.portal import CreateJob, UploadFirmware
from agent.errors import AgentError
from agent.fota.reporter import UpdateObserver
from agent.location.access_points import select
from agent.location.cell_scan import scan_cells
from agent.location.settings import WIFI_DEADLINE_S, locator_for
from agent.location.wifi.choice import wifi_source
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.observability.ingest.events import heartbeat
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.delivery import Delivery
from agent.outbox.sender import ServiceSender
from agent.provisioning.batch import run_boards
from agent.provisioning.board import BoardLocation
from agent.provisioning.board_ledger import AsyncLedger
from agent.provisioning.board_run import Station
from agent.provisioning.goal import Goal, RegistrationMethod
from agent.provisioning.ledger import open_ledger
from agent.provisioning.modem_board import open_board
from agent.provisioning.registrar import Registrar
from agent.standin.faults import install
from agent.wiring.service_client import connect
from agent.wiring.update_runner import update_runner
from at.commands.power import SetFunctionalMode
from at.discovery import probe
from at.driver.modem import open_modem
from at.ports.usb import UsbPort
from at.protocol.firmware import gate

if TYPE_CHECKING:
    from agent.demo.stage import Stage
    from agent.http import HttpClient
    from agent.provisioning.board_run import Outcome
    from at.discovery import PortReport
    from at.driver.modem import Modem


_MAGIC = 0x96F3B83D
_HEADER_BYTES = 32
_TLV_MAGIC, _TLV_SHA256 = 0x6907, 0x10


def mcuboot_image(version: tuple[int, int, int], size: int) -> bytes:
    """Return an image of `size` bytes of code with a header, and its SHA-256 as a TLV."""
    major, minor, revision = version
    header = struct.pack(
        "<IIHHIIBBHII", _MAGIC, 0, _HEADER_BYTES, 0, size, 0, major, minor, revision, 0, 0
    )
    code = (b"cellagent demo " * (size // 15 + 1))[:size]
    digest = hashlib.sha256(header + code).digest()
    tlv = struct.pack("<HH", _TLV_SHA256, len(digest)) + digest
    return header + code + struct.pack("<HH", _TLV_MAGIC, 4 + len(tlv)) + tlv


def bundle(image: bytes, version: str) -> bytes:
    """Return the image as the zip file that the service takes, with its manifest."""
    manifest = {
        "name": "demo application",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "app_update.bin", "type": "application", "size": len(image)}],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("app_update.bin", image)
    return packed.getvalue()


IMAGE_BYTES = 200_000
NEW_VERSION = (2, 0, 1)
OUTAGE_EVENTS = 20
_LISTED_WITHIN_S = 5.0

Detail = dict[str, Any]


class DemoFailed(AgentError):
    """A step did not show what it should have."""


@dataclass(slots=True)
class Show:
    """The demonstration as it goes on: the stage, and what the steps leave for later ones."""

    stage: Stage
    progress: Callable[[str, int, int], None]
    stack: AsyncExitStack
    device_id: str = ""
    kit: PortReport | None = None
    modem: Modem | None = None
    client: HttpClient | None = None
    outbox: Outbox | None = None
    events: list[str] = field(default_factory=list)

    # --- the steps

    async def find(self) -> Detail:
        """Find the port that answers AT, and what answers there."""
        port = self.stage.configuration.profile.kit.port
        self.kit = await probe(UsbPort(port))
        if not self.kit.answers:
            raise DemoFailed(self.kit.reason)
        return {
            "port": port,
            "dialect": self.kit.dialect,
            "imei": self.kit.imei,
            "firmware": self.kit.firmware,
        }

    async def gate(self) -> Detail:
        """Judge whether the modem's firmware may make device calls."""
        assert self.kit is not None
        verdict = gate(self.kit.firmware or "")
        if not verdict.allowed:
            raise DemoFailed(verdict.reason)
        return {"firmware": self.kit.firmware, "allowed": True}

    async def provision(self) -> Detail:
        """Have the modem make its key, and check what it shows of it."""
        outcome = await self._provision(RegistrationMethod.NONE, prove=False)
        self.device_id = outcome.device_id
        return {"device_id": outcome.device_id, "writes": outcome.writes, "key": "in the modem"}

    async def register(self) -> Detail:
        """Onboard the device with its public key; the bench goes on where it was."""
        outcome = await self._provision(RegistrationMethod.ONBOARD, prove=False)
        return {"device_id": outcome.device_id, "writes": outcome.writes, "registered": True}

    async def jwt(self) -> Detail:
        """Have the cloud accept a token that the modem signed, with the device as `sub`."""
        profile = self.stage.configuration.profile
        self.modem = await self.stack.enter_async_context(open_modem(profile.kit.port))
        ask = ask_modem(self.modem, profile.provisioning.security_tag)
        # A clock is needed for a token that expires: the network tells the time once attached.
        await self._attach(self.modem)
        self.client = await self.stack.enter_async_context(
            connect(self.stage.configuration, ask_modem=ask)
        )
        device = await self.client.send(FetchDevice(self.device_id), scheme=Scheme.DEVICE_JWT)
        return {"sub": self.device_id, "algorithm": "ES256", "accepted_for": device.id}

    async def scan(self) -> Detail:
        """Listen: cells by the modem, Wi-Fi by its companion."""
        assert self.modem is not None
        profile = self.stage.configuration.profile
        source = wifi_source(profile.location.wifi, profile.kit.companion_port)
        assert source is not None
        cells = await scan_cells(self.modem)
        wifi = select((await source.scan(WIFI_DEADLINE_S)).points)
        neighbors = cells.cells[0].get("nmr", [])
        assert isinstance(neighbors, list)
        return {
            "cells": len(cells.cells),
            "neighbors": len(neighbors),
            "access_points": len(wifi.usable),
            "left_out": len(wifi.left_out),
        }

    async def locate(self) -> Detail:
        """Find the kit, and compare with where it truly is."""
        assert self.client is not None
        profile = self.stage.configuration.profile
        locator = locator_for(profile, profile.kit, self.client, self.modem)
        truth = self.stage.true_position()
        fix = await locator.locate()
        place = fix.position
        if place is None or place.uncertainty_m is None:
            raise DemoFailed("the service told no position")
        off_m = place.distance_m(truth.lat, truth.lon)
        if off_m > place.uncertainty_m:
            raise DemoFailed(f"{off_m:.0f} m off, and {place.uncertainty_m:.0f} m were stated")
        return {
            "with": fix.method.value,
            "lat": place.lat,
            "lon": place.lon,
            "uncertainty_m": place.uncertainty_m,
            "true_lat": truth.lat,
            "true_lon": truth.lon,
            "off_m": round(off_m, 1),
        }

    async def fota(self) -> Detail:
        """Carry out the update that the cloud has for the kit; a success is read back."""
        assert self.client is not None
        version = ".".join(map(str, NEW_VERSION))
        packed = bundle(mcuboot_image(NEW_VERSION, IMAGE_BYTES), version)
        bundle_id = await self.client.send(UploadFirmware(packed), scheme=Scheme.API_KEY)
        await self.client.send(CreateJob(bundle_id, self.device_id))
        async with AsyncExitStack() as stack:
            runner = await update_runner(
                stack, self.stage.configuration, self.modem, _Watcher(self.progress)
            )
            result = await runner.pull()
        if result is None or result.status.value != "SUCCEEDED":
            raise DemoFailed(f"the update ended as {result.detail if result else 'no job'}")
        return {"version": version, "status": result.status.value, "detail": result.detail}

    async def crash(self) -> Detail:
        """Crash the kit, catch what it prints, and see it at the service."""
        from agent.demo.console import caught_crash

        assert self.client is not None
        outbox = self._outbox()
        dumps, chunks = await caught_crash(self.stage, outbox, self._identity())
        await self._delivered(outbox)
        traces = await self._listed("trace", lambda found: len(found) > 0)
        return {"core_dumps": dumps, "chunks": chunks, "traces_listed": len(traces)}

    async def event(self) -> Detail:
        """Push a heartbeat through the outbox, and see it listed."""
        outbox = self._outbox()
        before = len(await self._listed("event", lambda _found: True))
        await outbox.aput([self._heartbeat("demo_event", 1)])
        await self._delivered(outbox)
        found = await self._listed("event", lambda listed: len(listed) > before)
        return {"pushed": 1, "listed": len(found) - before}

    async def outage(self) -> Detail:
        """Let the service fail for a while: everything is kept, and arrives afterwards."""
        outbox = self._outbox()
        before = len(await self._listed("event", lambda _found: True))
        install(self.stage.cloud, ["server-error=503@/api/v0/events"])
        items = [self._heartbeat("outage_number", number) for number in range(OUTAGE_EVENTS)]
        await outbox.aput(items)
        await self._flush(outbox)
        kept = (await outbox.atransact(lambda store: store.totals())).waiting
        install(self.stage.cloud, [])
        await self._delivered(outbox)
        due = before + OUTAGE_EVENTS
        found = await self._listed("event", lambda listed: len(listed) >= due)
        if len(found) != due:
            raise DemoFailed(f"{due} events were due, {len(found)} are listed")
        return {"kept_meanwhile": kept, "delivered": OUTAGE_EVENTS, "lost": 0}

    # --- what they share

    async def _provision(self, method: RegistrationMethod, *, prove: bool) -> Outcome:
        settings = self.stage.configuration
        goal = Goal(settings.profile.provisioning.security_tag, registration=method, prove=prove)
        ledger = AsyncLedger(open_ledger(str(settings.state_dir / "ledger.sqlite"), "demo"))
        try:
            async with connect(settings) as client:
                station = Station(
                    goal,
                    ledger,
                    Registrar(client, method),
                    None,
                    settings.state_dir / "keys",
                    lambda: datetime.now(UTC),
                )
                location = BoardLocation("", "", "demo", settings.profile.kit.port)
                found = run_boards([location], station, open_board, lambda *_step: None)
                [outcome] = [one async for one in found]
        finally:
            ledger.close()
        if not outcome.ok:
            raise DemoFailed(outcome.reason, hint=outcome.hint)
        return outcome

    async def _attach(self, modem: Modem) -> None:
        from at.commands.registration import (
            ReadRegistration,
            RegistrationNotice,
            SetRegistrationNotices,
        )

        with modem.notices(RegistrationNotice) as notices:
            await modem.send(SetRegistrationNotices(5))
            await modem.send(SetFunctionalMode(1))
            async with asyncio.timeout(_LISTED_WITHIN_S):
                while (await modem.send(ReadRegistration())).stat not in {1, 5}:
                    await anext(notices)

    def _outbox(self) -> Outbox:
        if self.outbox is None:
            settings = self.stage.configuration
            folder = settings.state_dir / "outbox" / settings.name
            self.outbox = self.stack.enter_context(Outbox(folder, settings.profile.outbox))
        return self.outbox

    def _identity(self) -> DeviceIdentity:
        return DeviceIdentity(self.device_id, "virtual-kit", "demo-app", "2.0.1")

    def _heartbeat(self, name: str, value: int) -> NewItem:
        now = datetime.now(UTC)
        body = heartbeat(self._identity(), {name: value}, now)
        return NewItem(ItemKind.EVENT, self.device_id, body, now.timestamp())

    async def _flush(self, outbox: Outbox) -> Delivery:
        assert self.client is not None
        delivery = Delivery(outbox, ServiceSender(self.client))
        await delivery.flush()
        return delivery

    async def _delivered(self, outbox: Outbox) -> None:
        await self._flush(outbox)
        totals = await outbox.atransact(lambda store: store.totals())
        if totals.waiting or totals.parked:
            raise DemoFailed(f"{totals.waiting} items wait and {totals.parked} are parked")

    async def _listed(self, kind: str, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """Return what the service lists of a kind, once it is enough: it decodes in its time."""
        from agent.observability import KINDS, Observability

        assert self.client is not None
        account = self.stage.configuration.profile.account
        service = Observability(self.client, account.organization, account.project)
        until = time.monotonic() + _LISTED_WITHIN_S
        while True:
            found = [one async for one in service.list(KINDS[kind])]
            if enough(found) or time.monotonic() > until:
                return found
            await asyncio.sleep(0.05)


class _Watcher(UpdateObserver):
    """Passes on how far an update has come."""

    def __init__(self, progress: Callable[[str, int, int], None]) -> None:
        self._progress = progress

    def progress(self, what: str, done: int, total: int) -> None:
        """Pass it on."""
        self._progress(what, done, total)


def steps(show: Show) -> list[tuple[str, Callable[[], Awaitable[Detail]]]]:
    """Return the steps by name, in their fixed order."""
    return [
        ("find", show.find),
        ("gate", show.gate),
        ("provision", show.provision),
        ("register", show.register),
        ("jwt", show.jwt),
        ("scan", show.scan),
        ("locate", show.locate),
        ("fota", show.fota),
        ("crash", show.crash),
        ("event", show.event),
        ("outage", show.outage),
    ]
