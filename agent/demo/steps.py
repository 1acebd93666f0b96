"""The steps of the demonstration, in order; each returns its result as details, or raises."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from agent.auth.modem_jwt import ask_modem
from agent.call import Scheme
from agent.cloud.device_reads import FetchDevice
from agent.cloud.firmware import CreateJob, UploadFirmware, bundle
from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.line_classifier import ConsoleItem, ConsoleReader
from agent.console.port import ByteQueue
from agent.demo import firmware
from agent.errors import AgentError
from agent.fota.reporter import UpdateObserver
from agent.location.access_points import select_usable
from agent.location.cell_scan import scan_cells
from agent.location.locator import locator_for
from agent.location.wifi.choice import WIFI_DEADLINE_S, wifi_source
from agent.observability import KINDS, Observability
from agent.observability.ingest.device_identity import DeviceIdentity, IdentityTracker
from agent.observability.ingest.events import heartbeat
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.delivery_loop import Delivery
from agent.outbox.delivery_requests import ServiceSender
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import open_board
from agent.provisioning.ledger import open_ledger
from agent.provisioning.planning.goal import Goal, RegistrationMethod
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.batch import run_boards
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.steps.registrar import Registrar
from agent.standin.faults import set_faults
from agent.wiring.forwarding import Forwarder
from agent.wiring.service_client import connect
from agent.wiring.update_runner import runner_with_own_client
from at.commands import registration
from at.commands.functional_mode import FunctionalMode, SetFunctionalMode
from at.discovery import PortReport, probe
from at.driver.modem import Modem, open_modem
from at.driver.opening import transport_of
from at.firmware_gate import firmware_verdict, read_verdict, require_firmware
from at.ports.usb import UsbPort

if TYPE_CHECKING:
    from agent.demo.environment import DemoEnvironment
    from agent.http import HttpClient
    from agent.observability import Resource
    from agent.provisioning.running.outcome import Outcome


OUTAGE_EVENTS = 20
_ATTACHED_WITHIN_S = 5.0
_LISTED_WITHIN_S = 5.0
_CAPTURED_WITHIN_S = 10.0

Detail = dict[str, object]


class DemoFailed(AgentError):
    """A step had another result than it should have."""


@dataclass(slots=True)
class Demonstration:
    """The steps as methods; the fields after `stack` are what they leave for later ones."""

    environment: DemoEnvironment
    progress: Callable[[str, int, int], None]
    stack: AsyncExitStack
    device_id: str = field(init=False)
    kit: PortReport = field(init=False)
    modem: Modem = field(init=False)
    client: HttpClient = field(init=False)
    outbox: Outbox | None = field(init=False, default=None)

    # --- the steps

    async def find(self) -> Detail:
        """Probe the kit's port for AT answers."""
        port = self.environment.configuration.profile.kit.port
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
        """Check whether the modem's firmware may make device calls."""
        verdict = firmware_verdict(self.kit.firmware or "")
        if not verdict.allowed:
            raise DemoFailed(verdict.reason)
        return {"firmware": self.kit.firmware, "allowed": True}

    async def provision(self) -> Detail:
        """Provision: the modem makes its key."""
        outcome = await self._provision(RegistrationMethod.NONE)
        self.device_id = outcome.device_id
        return {"device_id": outcome.device_id, "writes": outcome.writes, "key": "in the modem"}

    async def register(self) -> Detail:
        """Onboard the device with its public key; the bench continues from the ledger."""
        outcome = await self._provision(RegistrationMethod.ONBOARD)
        return {"device_id": outcome.device_id, "writes": outcome.writes, "registered": True}

    async def jwt(self) -> Detail:
        """Make a device call with a token that the modem signed, with the device as `sub`."""
        profile = self.environment.configuration.profile
        self.modem = await self.stack.enter_async_context(open_modem(profile.kit.port))
        ask = ask_modem(self.modem, profile.provisioning.security_tag)
        # A clock is needed for a token that expires: the network tells the time once attached.
        await self._attach(self.modem)
        self.client = await self.stack.enter_async_context(
            connect(
                self.environment.configuration,
                ask_modem=ask,
                kit_gate=partial(require_firmware, self.modem),
            )
        )
        device = await self.client.send(FetchDevice(self.device_id), scheme=Scheme.DEVICE_JWT)
        return {"sub": self.device_id, "algorithm": "ES256", "accepted_for": device.id}

    async def scan(self) -> Detail:
        """Scan cells with the modem, and Wi-Fi with its companion."""
        profile = self.environment.configuration.profile
        source = wifi_source(profile.location.wifi, profile.kit)
        assert source is not None
        cells = await scan_cells(self.modem)
        wifi = select_usable((await source.scan(WIFI_DEADLINE_S)).points)
        neighbors = cells.cells[0].get("nmr", [])
        assert isinstance(neighbors, list)
        return {
            "cells": len(cells.cells),
            "neighbors": len(neighbors),
            "access_points": len(wifi.usable),
            "left_out": len(wifi.left_out),
        }

    async def locate(self) -> Detail:
        """Locate the kit, and compare the fix with its true position."""
        profile = self.environment.configuration.profile
        locator = locator_for(profile, profile.kit, self.client, self.modem)
        truth = self.environment.true_position()
        fix = await locator.locate()
        position = fix.position
        if position is None or position.uncertainty_m is None:
            raise DemoFailed("the service returned no position")
        off_m = position.distance_m(truth.lat, truth.lon)
        if off_m > position.uncertainty_m:
            raise DemoFailed(f"{off_m:.0f} m off, and {position.uncertainty_m:.0f} m were stated")
        return {
            "with": fix.method.value,
            "lat": position.lat,
            "lon": position.lon,
            "uncertainty_m": position.uncertainty_m,
            "true_lat": truth.lat,
            "true_lon": truth.lon,
            "off_m": round(off_m, 1),
        }

    async def fota(self) -> Detail:
        """Create an update job and carry it out; its success is read back from the kit."""
        version = ".".join(map(str, firmware.NEW_VERSION))
        image = firmware.mcuboot_image(firmware.NEW_VERSION, firmware.IMAGE_BYTES)
        packed = bundle(image, version, name="demo application")
        bundle_id = await self.client.send(UploadFirmware(packed), scheme=Scheme.API_KEY)
        await self.client.send(CreateJob(bundle_id, (self.device_id,)))
        async with runner_with_own_client(
            self.environment.configuration,
            self.modem,
            partial(read_verdict, self.modem),
            _ProgressObserver(self.progress),
        ) as runner:
            result = await runner.pull()
        if result is None or result.status.value != "SUCCEEDED":
            raise DemoFailed(f"the update ended as {result.detail if result else 'no job'}")
        return {"version": version, "status": result.status.value, "detail": result.detail}

    async def crash(self) -> Detail:
        """Crash the kit, capture its console, deliver the dump, and find the trace listed."""
        outbox = self._outbox()
        dumps, chunks = await _capture_crash(self.environment, outbox, self._identity())
        await self._deliver_all(outbox)
        traces = await self._wait_listed("trace", lambda listed: len(listed) > 0)
        return {"core_dumps": dumps, "chunks": chunks, "traces_listed": len(traces)}

    async def event(self) -> Detail:
        """Push a heartbeat through the outbox, and find it listed."""
        outbox = self._outbox()
        before = len(await self._wait_listed("event", lambda _listed: True))
        await outbox.aput([self._heartbeat("demo_event", 1)])
        await self._deliver_all(outbox)
        events = await self._wait_listed("event", lambda listed: len(listed) > before)
        return {"pushed": 1, "listed": len(events) - before}

    async def outage(self) -> Detail:
        """Make the service fail for a while: items stay in the outbox and are delivered later."""
        outbox = self._outbox()
        before = len(await self._wait_listed("event", lambda _listed: True))
        set_faults(self.environment.cloud, ["server-error=503@/api/v0/events"])
        items = [self._heartbeat("outage_number", number) for number in range(OUTAGE_EVENTS)]
        await outbox.aput(items)
        await self._flush(outbox)
        waiting = (await outbox.atransact(lambda store: store.totals())).waiting
        set_faults(self.environment.cloud, [])
        await self._deliver_all(outbox)
        due = before + OUTAGE_EVENTS
        events = await self._wait_listed("event", lambda listed: len(listed) >= due)
        if len(events) != due:
            raise DemoFailed(f"{due} events were due, {len(events)} are listed")
        return {"kept_meanwhile": waiting, "delivered": OUTAGE_EVENTS, "lost": 0}

    # --- shared by steps

    async def _provision(self, method: RegistrationMethod) -> Outcome:
        settings = self.environment.configuration
        goal = Goal(settings.profile.provisioning.security_tag, registration=method, prove=False)
        ledger = AsyncLedger(lambda: open_ledger(str(settings.state_dir / "ledger.sqlite"), "demo"))
        try:
            async with connect(settings) as client:
                registrar = Registrar(client, method)
                station = Station(goal, ledger, registrar, None, settings.state_dir / "keys")
                location = BoardLocation("", "", "demo", settings.profile.kit.port)
                outcomes = run_boards([location], station, open_board, lambda *_step: None)
                [outcome] = [one async for one in outcomes]
        finally:
            ledger.close()
        if not outcome.ok:
            raise DemoFailed(outcome.reason, hint=outcome.hint)
        return outcome

    async def _attach(self, modem: Modem) -> None:
        with modem.notices(registration.RegistrationNotice) as notices:
            await modem.send(registration.SetRegistrationNotices(5))
            await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
            async with asyncio.timeout(_ATTACHED_WITHIN_S):
                while not (await modem.send(registration.ReadRegistration())).registered:
                    await anext(notices)

    def _outbox(self) -> Outbox:
        if self.outbox is None:
            settings = self.environment.configuration
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
        delivery = Delivery(outbox, ServiceSender(self.client))
        await delivery.flush()
        return delivery

    async def _deliver_all(self, outbox: Outbox) -> None:
        await self._flush(outbox)
        totals = await outbox.atransact(lambda store: store.totals())
        if totals.waiting or totals.parked:
            raise DemoFailed(f"in the outbox: {totals.waiting} waiting, {totals.parked} parked")

    async def _wait_listed(
        self, kind: str, enough: Callable[[list[Resource]], bool]
    ) -> list[Resource]:
        """Return what the service lists of a kind, once `enough` accepts it or the time is over."""
        account = self.environment.configuration.profile.account
        service = Observability(self.client, account.organization, account.project)
        until = time.monotonic() + _LISTED_WITHIN_S
        while True:
            listed = [each async for each in service.list(KINDS[kind])]
            if enough(listed) or time.monotonic() > until:
                return listed
            await asyncio.sleep(0.05)


async def _capture_crash(
    environment: DemoEnvironment, outbox: Outbox, identity: DeviceIdentity
) -> tuple[int, int]:
    """Crash the kit, then export its chunks; return how many dumps and chunks were stored."""
    received = ByteQueue()
    port = transport_of(environment.console_port, rtscts=False)
    await port.open(received)
    try:
        environment.kit.crash()
        async with asyncio.timeout(_CAPTURED_WITHIN_S):
            forwarder, reader = Forwarder(outbox, IdentityTracker.of(identity)), ConsoleReader()
            dumps = await _forward_until(CapturedDump, received, reader, forwarder)
            port.write(b"mflt export\r")
            chunks = await _forward_until(ChunkLine, received, reader, forwarder)
    finally:
        await port.close()
    return dumps, chunks


async def _forward_until(
    kind: type[ConsoleItem], received: ByteQueue, reader: ConsoleReader, forwarder: Forwarder
) -> int:
    """Read until items of a kind have arrived and the console is quiet; return their number."""
    count = 0
    while not count or not received.queue.empty():
        data = await received.next()
        if data is None:
            raise DemoFailed("the console was closed")
        items = reader.receive(data)
        await forwarder.forward(items, datetime.now(UTC))
        count += sum(isinstance(item, kind) for item in items)
    return count


class _ProgressObserver(UpdateObserver):
    """Reports the progress of an update to a callback."""

    def __init__(self, progress: Callable[[str, int, int], None]) -> None:
        self._progress = progress

    def progress(self, what: str, done: int, total: int) -> None:
        """Report it."""
        self._progress(what, done, total)


def steps(demonstration: Demonstration) -> list[tuple[str, Callable[[], Awaitable[Detail]]]]:
    """Return the steps by name, in order."""
    return [
        ("find", demonstration.find),
        ("gate", demonstration.gate),
        ("provision", demonstration.provision),
        ("register", demonstration.register),
        ("jwt", demonstration.jwt),
        ("scan", demonstration.scan),
        ("locate", demonstration.locate),
        ("fota", demonstration.fota),
        ("crash", demonstration.crash),
        ("event", demonstration.event),
        ("outage", demonstration.outage),
    ]
