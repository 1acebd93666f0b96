"""The client of the device cloud; each method is one operation of the contract."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from agent.call import Host
from agent.cloud import device_changes, device_reads, project_devices, public_keys
from agent.cloud.account import (
    Account,
    FetchAccount,
    FetchServiceToken,
    MakeServiceKeyAndToken,
    ServiceTokenIssued,
)
from agent.cloud.conventions import Page
from agent.cloud.messages import ListMessages, Message, SendMessage
from agent.cloud.openapi import FetchOpenApi, OpenApi
from agent.config.urls import is_loopback_url
from agent.errors import (
    NOTHING_FOUND,
    AgentError,
    BadAnswer,
    DeadlineExceeded,
    NotFound,
    PreconditionFailed,
    ServiceRefusal,
)
from agent.http.download_targets import addresses_of, addresses_to_try, plain_target
from agent.json_value import JSONValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from datetime import datetime

    from agent.cloud.conventions import ListCall
    from agent.cloud.device import Device
    from agent.config.project import ProjectSlugs
    from agent.http import HttpClient, HttpTransport
    from agent.http.download_targets import Resolve


T = TypeVar("T")

MAX_EMPTY_PAGES = 20
"""So many empty pages, one after another, and the list is taken for endless."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 5.0
_MAX_ERROR_BYTES = 1024 * 1024
_MAX_ROW_ERRORS = 20
CHANGE_TRIES = 5
DISCOVERY_DEADLINE_S = 90.0
"""The contract says a few seconds, the vendor's document 30 to 60."""
BULK_DEADLINE_S = 60.0


class DeviceCloud:
    """Calls of the device cloud over one client.

    `sleep` and `monotonic` are for the waiting methods. Errors are those of HttpClient.send.
    """

    def __init__(
        self,
        client: HttpClient,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self._sleep = sleep
        self._monotonic = monotonic

    async def device(self, device_id: str) -> Device:
        """Return one device with its state."""
        return await self.client.send(device_reads.FetchDevice(device_id))

    async def transformed(self, device_id: str, transform: str) -> device_reads.Transformed:
        """Return the value of a JSONata expression for one device."""
        return await self.client.send(device_reads.TransformDevice(device_id, transform))

    def devices(
        self, chosen: device_reads.Filter | None = None, *, include_state: bool = False
    ) -> AsyncIterator[Device]:
        """Yield every device that the filter chooses, a page at a time."""
        picked = chosen or device_reads.Filter()
        return self.walk(device_reads.ListDevices(picked, include_state))

    def transformed_devices(
        self, transform: str, chosen: device_reads.Filter | None = None
    ) -> AsyncIterator[JSONValue]:
        """Yield the value of a JSONata expression for each device; None where it has none."""
        picked = chosen or device_reads.Filter()
        return self.walk(device_reads.TransformDevices(transform, picked))

    async def page(self, call: ListCall[T]) -> Page[T]:
        """Return one page: an empty one, too, for a 404 whose number says that there is none."""
        try:
            return await self.client.send(call)
        except NotFound as refusal:
            if refusal.code != NOTHING_FOUND:
                raise
            return Page((), 0, None)

    async def walk(self, call: ListCall[T]) -> AsyncIterator[T]:
        """Yield the items of a list from the page of `call` on.

        Raises BadAnswer for a list without end: a page that was there before, or only empty ones.
        """
        empty, tokens = 0, {call.page_token}
        while True:
            page = await self.page(call)
            for item in page.items:
                yield item
            if page.next_token is None:
                return
            empty = 0 if page.items else empty + 1
            if page.next_token in tokens or empty >= MAX_EMPTY_PAGES:
                raise BadAnswer("the list does not end: its pages lead nowhere")
            tokens.add(page.next_token)
            call = replace(call, page_token=page.next_token)

    async def rename(self, device_id: str, name: str, *, version: str | None = None) -> None:
        """Change a device's name."""
        await self.client.send(device_changes.UpdateDeviceName(device_id, name, version))

    async def set_tags(
        self, device_id: str, tags: Iterable[str], *, version: str | None = None
    ) -> None:
        """Replace a device's tags."""
        await self.client.send(device_changes.UpdateDeviceTags(device_id, tuple(tags), version))

    async def update_state(
        self,
        device_id: str,
        *,
        reported: Mapping[str, object] | None = None,
        desired: Mapping[str, object] | None = None,
        version: str | None = None,
    ) -> None:
        """Merge into a device's state; None deletes a key."""
        await self.client.send(
            device_changes.UpdateDeviceState(device_id, reported, desired, version)
        )

    async def delete(self, device_id: str, *, version: str | None = None) -> None:
        """Remove a device from its team."""
        await self.client.send(device_changes.DeleteDevice(device_id, version))

    async def change(
        self,
        device_id: str,
        decide: Callable[[Device], device_changes.Change | None],
        *,
        tries: int = CHANGE_TRIES,
    ) -> Device:
        """Read a device, decide, change it; begin again if it was changed meanwhile (D5.2).

        `decide` returns a change that carries `device.version`, or None for no change; it is
        called again with the device as it then is. Returns the device as last read. Raises
        PreconditionFailed after `tries`.
        """
        for left in reversed(range(tries)):
            device = await self.device(device_id)
            change = decide(device)
            if change is None:
                return device
            try:
                await self.client.send(change)
                return device
            except PreconditionFailed:
                if not left:
                    raise
        raise ValueError("`tries` is at least 1")

    async def characteristic_value(self, device_id: str, characteristic: str) -> bytes:
        """Return a characteristic's value as the cloud last saw it."""
        return await self.client.send(
            device_reads.FetchCharacteristicValue(device_id, characteristic)
        )

    async def write(
        self, device_id: str, characteristic: str, value: bytes, *, version: str | None = None
    ) -> None:
        """Write a characteristic of a BLE device."""
        await self.client.send(
            device_changes.UpdateCharacteristicValue(device_id, characteristic, value, version)
        )

    async def write_descriptor(
        self,
        device_id: str,
        characteristic: str,
        descriptor: str,
        value: bytes,
        *,
        version: str | None = None,
    ) -> None:
        """Write a descriptor of a BLE device's characteristic."""
        await self.client.send(
            device_changes.UpdateDescriptorValue(
                device_id, characteristic, descriptor, value, version
            )
        )

    async def discover(
        self, gateway_id: str, device_id: str, *, version: str | None = None
    ) -> None:
        """Request that a gateway reads a BLE device's services again; does not wait for it."""
        await self.client.send(device_changes.DiscoverServices(device_id, gateway_id, version))

    async def discover_and_wait(
        self,
        gateway_id: str,
        device_id: str,
        *,
        deadline_s: float = DISCOVERY_DEADLINE_S,
        version: str | None = None,
    ) -> Device:
        """Rediscover, then return the device once its state is new. Raises DeadlineExceeded."""
        before = await self.device(device_id)
        await self.discover(gateway_id, device_id, version=version)
        return await self.wait_until(
            device_id,
            lambda device: (
                (device.version, device.updated_at, device.state)
                != (before.version, before.updated_at, before.state)
            ),
            deadline_s=deadline_s,
        )

    async def wait_until(
        self, device_id: str, holds: Callable[[Device], bool], *, deadline_s: float
    ) -> Device:
        """Return the device once `holds` is true of it; it is checked at once.

        Raises DeadlineExceeded.
        """

        async def check() -> tuple[bool, Device]:
            device = await self.device(device_id)
            return holds(device), device

        longer = _longer(deadline_s)
        return await self._until(check, f"{device_id} did not change", deadline_s, longer)

    async def wait_for_transform(
        self, device_id: str, transform: str, *, deadline_s: float
    ) -> Device:
        """Return the device once a JSONata expression is true of it.

        Raises DeadlineExceeded.
        """

        async def check() -> tuple[bool, None]:
            return bool((await self.transformed(device_id, transform)).value), None

        longer = _longer(deadline_s)
        await self._until(check, f"{device_id} did not become so", deadline_s, longer)
        return await self.device(device_id)

    async def register_public_keys(self, keys: Iterable[public_keys.PublicKey]) -> str:
        """Upload public keys; return the id of the bulk request that registers them."""
        return await self.client.send(public_keys.RegisterPublicKeys(tuple(keys)))

    async def onboard(self, devices: Iterable[public_keys.NewDevice]) -> str:
        """Bring devices into the team; return the id of the bulk request."""
        return await self.client.send(public_keys.OnboardDevices(tuple(devices)))

    async def onboard_by_token(
        self, device_id: str, token: str, *, sub_type: str, tags: Iterable[str]
    ) -> None:
        """Bring one device into the team by its registration token."""
        call = public_keys.OnboardByToken(device_id, token, sub_type, tuple(tags))
        await self.client.send(call)

    async def onboard_in_project(
        self,
        project: ProjectSlugs,
        proven_by: project_devices.ProvenBy,
        rows: Iterable[tuple[str, str]],
    ) -> str:
        """Bring devices into a project; return where the result will be."""
        call = project_devices.OnboardInProject(project, proven_by, tuple(rows))
        return await self.client.send(call)

    async def wait_for_onboarding(
        self, place: str, *, deadline_s: float = project_devices.RESULT_DEADLINE_S
    ) -> project_devices.OnboardingResult:
        """Return the result of an onboarding in a project once it has succeeded.

        Raises ServiceRefusal where it failed, or any of its rows was refused; DeadlineExceeded.
        """

        async def check() -> tuple[bool, project_devices.OnboardingResult]:
            result = await self.client.send(project_devices.FetchOnboardingResult(place))
            return result.status != project_devices.IN_PROGRESS, result

        later = "the same `cellagent provision run` again goes on from here"
        result = await self._until(check, "the onboarding did not end", deadline_s, later)
        if result.status != project_devices.SUCCEEDED or result.errors:
            raise ServiceRefusal(
                f"the onboarding ended as {result.status}",
                hint="; ".join(map(str, result.errors[:_MAX_ROW_ERRORS])),
            )
        return result

    async def bulk_operation(self, request_id: str) -> public_keys.BulkOperation:
        """Return the state of a bulk request."""
        return await self.client.send(public_keys.FetchBulkOperation(request_id))

    async def wait_for_bulk(
        self, request_id: str, *, deadline_s: float = BULK_DEADLINE_S
    ) -> public_keys.BulkOperation:
        """Return a bulk request once it has succeeded; it is checked at once.

        Raises ServiceRefusal where it failed, DeadlineExceeded.
        """

        async def check() -> tuple[bool, public_keys.BulkOperation]:
            operation = await self.bulk_operation(request_id)
            return operation.done, operation

        what = f"the bulk request {request_id} did not end"
        later = f"`cellagent device bulk-request {request_id}` shows what becomes of it"
        operation = await self._until(check, what, deadline_s, later)
        if operation.status != "SUCCEEDED":
            raise ServiceRefusal(
                f"the bulk request {request_id} ended as {operation.status}",
                hint=await _row_errors(
                    self.client.transport,
                    operation.error_summary_url,
                    stand_in=is_loopback_url(self.client.base_url(Host.DEVICE_CLOUD)),
                ),
            )
        return operation

    async def send_message(self, device_id: str, message: object, *, topic: str = "") -> None:
        """Send a message in a device's name."""
        await self.client.send(SendMessage(device_id, message, topic))

    def messages(
        self,
        device_id: str = "",
        *,
        app_id: str = "",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> AsyncIterator[Message]:
        """Yield the stored messages, the newest first."""
        return self.walk(ListMessages(device_id, app_id, start, end))

    async def account(self) -> Account:
        """Return the team and the role of the API key."""
        return await self.client.send(FetchAccount())

    async def service_token(self) -> ServiceTokenIssued:
        """Return the team's service token: deprecated, its use is logged with the date."""
        return await self.client.send(FetchServiceToken())

    async def make_service_key_and_token(self) -> ServiceTokenIssued:
        """Make a new service key, which ends the old one: deprecated as the service token is."""
        return await self.client.send(MakeServiceKeyAndToken())

    async def openapi(self) -> OpenApi:
        """Return the cloud's own description of itself."""
        return await self.client.send(FetchOpenApi())

    async def _until(
        self,
        check: Callable[[], Awaitable[tuple[bool, T]]],
        what: str,
        deadline_s: float,
        hint: str = "",
    ) -> T:
        """Return the value of `check` once it says that the condition holds; it is checked at once.

        The pauses grow. Raises DeadlineExceeded with `what` as its message, and with `hint`.
        """
        started = self._monotonic()
        pause = _FIRST_PAUSE_S
        while True:
            done, value = await check()
            if done:
                return value
            left = started + deadline_s - self._monotonic()
            if left <= 0:
                raise DeadlineExceeded(f"{what} within {deadline_s:g} s", hint=hint)
            await self._sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def _longer(deadline_s: float) -> str:
    return f"`--deadline {max(3 * deadline_s, DISCOVERY_DEADLINE_S):g}` waits longer"


class _RowErrors(msgspec.Struct):
    errors: list[JSONValue]


async def _row_errors(
    transport: HttpTransport, url: str | None, *, stand_in: bool, resolve: Resolve = addresses_of
) -> str:
    """Return the errors of a bulk request by row, from the file at `url`; "" without one."""
    if url is None:
        return ""
    try:
        # A signed URL of another host, which the answer chose: no credential is sent to it.
        target = plain_target(url, stand_in=stand_in)
        addresses = await addresses_to_try(
            target, resolve, stand_in=stand_in, by_proxy=transport.by_proxy
        )
        answer = await transport.exchange(
            "GET", target.url, headers={}, max_bytes=_MAX_ERROR_BYTES, addresses=addresses
        )
        errors = answer.decode(_RowErrors).errors if answer.status == 200 else []
    except AgentError:
        errors = []
    # The query of a signed URL is as good as a credential: it comes into no message.
    return "; ".join(map(str, errors[:_MAX_ROW_ERRORS])) or f"see {url.partition('?')[0]}"
