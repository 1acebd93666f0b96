"""The client of the observability service: the same methods serve every kind of resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.call import Call, Host, Request, Response, Scheme
from agent.errors import BadAnswer
from agent.json_value import JSONValue
from agent.observability.api import keys, paging, resources
from agent.observability.api.kinds import ORGANIZATION, ResourceKind, Scope
from agent.observability.api.resource_names import check_slug, check_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from agent.config.secrets import Secret
    from agent.http import HttpClient


@dataclass(frozen=True, slots=True)
class FetchMe(Call[resources.Resource]):
    """GET /auth/me: email with password, or with user API key. Not below /api/v0."""

    host = Host.API
    schemes = (Scheme.BASIC,)

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/auth/me")

    def parse(self, response: Response) -> resources.Resource:
        """Return the user. Raises BadAnswer, also for what names none: it checks a credential."""
        body = response.decode(dict[str, JSONValue])
        if not isinstance(body.get("email"), str):
            raise BadAnswer("the answer names no user")
        return resources.Resource(body)


@dataclass(frozen=True, slots=True)
class FetchLatestRelease(Call[resources.Resource | None]):
    """The newest release for a device, with the project key; None if nothing is newer."""

    host = Host.API
    schemes = (Scheme.PROJECT_KEY,)

    device_serial: str
    hardware_version: str
    software_type: str
    current_version: str = ""

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        query = [
            ("device_serial", check_slug("device serial", self.device_serial)),
            ("hardware_version", check_version("hardware version", self.hardware_version)),
            ("software_type", self.software_type),
        ]
        if self.current_version:
            query.append(("current_version", self.current_version))
        return Request("GET", "/api/v0/releases/latest", query)

    def parse(self, response: Response) -> resources.Resource | None:
        """Return the release. Raises BadAnswer."""
        if response.status == 204:
            return None
        return resources.Resource(response.decode(dict[str, JSONValue]))


@dataclass(frozen=True, slots=True)
class FetchLatestModemRelease(FetchLatestRelease):
    """The newest release of the modem's own firmware, which lies in a project of its own."""

    schemes = (Scheme.MODEM_PROJECT_KEY,)


@dataclass(frozen=True, slots=True)
class FetchSchema(Call[dict[str, JSONValue]]):
    """The service's OpenAPI document, where the stand-in publishes it; open to everyone."""

    host = Host.API
    schemes = (Scheme.NONE,)
    max_bytes = 32 * 1024 * 1024

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/api/v0/openapi.json")

    def parse(self, response: Response) -> dict[str, JSONValue]:
        """Return the document. Raises BadAnswer."""
        return response.decode(dict[str, JSONValue])

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Explain that a service may publish its description elsewhere."""
        return "this service does not publish its description here" if status == 404 else ""


class Observability:
    """Client of the observability service, for one organization and project.

    Errors are those of HttpClient.send; names and times are checked before anything is sent.
    """

    def __init__(self, client: HttpClient, organization: str = "", project: str = "") -> None:
        self.client = client
        self.scope = Scope(organization, project)

    async def whoami(self) -> resources.Resource | list[resources.Resource]:
        """Return the user; with an organization token alone, the organizations it opens."""
        if Scheme.BASIC in self.client.keyring:
            return await self.client.send(FetchMe())
        return [each async for each in self.list(ORGANIZATION)]

    async def list(
        self,
        kind: ResourceKind,
        filters: Mapping[str, object] | None = None,
        *,
        sort: str = "",
        per_page: int = paging.LARGEST_PAGE,
        progress: Callable[[int, int], None] | None = None,
    ) -> AsyncIterator[resources.Resource]:
        """Yield every resource of a kind, page by page; `sort` is a field, descending with a `-`.

        `progress` is called with how many were yielded and how many there are.
        """

        async def fetch(page: int) -> paging.Envelope:
            call = resources.ListResources(kind, self.scope, filters or {}, sort, page, per_page)
            return await self.client.send(call)

        async for raw in paging.walk(fetch, progress):
            yield resources.Resource.of(raw)

    async def page(
        self,
        kind: ResourceKind,
        filters: Mapping[str, object] | None = None,
        *,
        sort: str = "",
        page: int = 1,
        per_page: int = 20,
    ) -> tuple[Sequence[resources.Resource], paging.Paging]:
        """Return one page of a kind, and its position."""
        call = resources.ListResources(kind, self.scope, filters or {}, sort, page, per_page)
        found = await self.client.send(call)
        return [resources.Resource.of(raw) for raw in found.data], found.paging

    async def get(self, kind: ResourceKind, key: str) -> resources.Resource:
        """Return one resource."""
        return await self.client.send(resources.FetchResource(kind, self.scope, key))

    async def create(
        self, kind: ResourceKind, fields: Mapping[str, object]
    ) -> resources.Resource | None:
        """Create a resource; return it, or None if the service does not."""
        return await self.client.send(resources.CreateResource(kind, self.scope, fields))

    async def update(
        self, kind: ResourceKind, key: str, fields: Mapping[str, object]
    ) -> resources.Resource | None:
        """Change some fields of a resource; return it, or None if the service does not."""
        return await self.client.send(resources.UpdateResource(kind, self.scope, key, fields))

    async def relate(
        self,
        kind: ResourceKind,
        key: str,
        other: ResourceKind,
        other_key: str,
        fields: Mapping[str, object] | None = None,
    ) -> resources.Resource | None:
        """Create or update the relationship of one resource to another (a device's cohort)."""
        call = resources.PutRelation(kind, self.scope, key, other, other_key, fields or {})
        return await self.client.send(call)

    async def delete(self, kind: ResourceKind, key: str) -> None:
        """Delete one resource."""
        await self.client.send(resources.DeleteResource(kind, self.scope, key))

    async def delete_many(self, kind: ResourceKind, ids: Sequence[str | int]) -> None:
        """Delete several resources by their ids."""
        await self.client.send(resources.DeleteResources(kind, self.scope, ids))

    async def project_key(self) -> str:
        """Return the project's key."""
        return await self.client.send(keys.FetchProjectKey(self.scope))

    async def cycle_project_key(self) -> str:
        """Replace the project's key; the old one stops working at once."""
        return await self.client.send(keys.CycleProjectKey(self.scope))

    async def user_key(self) -> Secret | None:
        """Return the user's own API key."""
        return await self.client.send(keys.FetchUserKey())

    async def cycle_user_key(self) -> Secret:
        """Replace the user's own API key, in all projects."""
        return await self.client.send(keys.CycleUserKey())

    async def delete_user_key(self) -> None:
        """Delete the user's own API key: it stops working."""
        await self.client.send(keys.DeleteUserKey())

    async def openapi(self) -> dict[str, JSONValue]:
        """Return the service's own description of itself."""
        return await self.client.send(FetchSchema())

    async def latest_release(
        self,
        device_serial: str,
        hardware_version: str,
        software_type: str,
        current_version: str = "",
    ) -> resources.Resource | None:
        """Return the newest release for a device; None if the device runs it."""
        return await self.client.send(
            FetchLatestRelease(device_serial, hardware_version, software_type, current_version)
        )
