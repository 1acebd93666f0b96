"""Claimed devices of the provisioning service, and the commands that they are given (D10.8)."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.call import Call, Host, Request, Response, Scheme, StatusCall
from agent.cloud.conventions import path_segment
from agent.errors import BadAnswer
from agent.json_value import JSONValue, object_in, text_in

PENDING = frozenset({"PENDING", "IN_PROGRESS"})
SUCCEEDED = "SUCCEEDED"
"""Any other status is a command that was not carried out."""


class _OfTeam:
    """A call of the provisioning service, which takes the API key of a team."""

    host = Host.PROVISIONING
    schemes = (Scheme.API_KEY,)


@dataclass(frozen=True, slots=True)
class ClaimDevice(_OfTeam, StatusCall):
    """Claim a device for the team with its attestation token; claiming it again is no error."""

    token: str
    tags: tuple[str, ...] = ()

    def request(self) -> Request:
        """Return the POST."""
        body: dict[str, object] = {"claimToken": self.token}
        if self.tags:
            body["tags"] = list(self.tags)
        return Request("POST", "/v1/claimed-devices", json=body)


@dataclass(frozen=True, slots=True)
class ProvisioningCommand:
    """A command for a claimed device. `request` and `response` are by the kind of command."""

    id: str
    status: str
    request: Mapping[str, JSONValue]
    response: Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True)
class CreateProvisioningCommand(_OfTeam, Call[ProvisioningCommand]):
    """Give a claimed device a command: {"certificateSigningRequest": {...}} and the like."""

    repeatable = False

    uuid: str
    command: Mapping[str, JSONValue]
    description: str = ""

    def request(self) -> Request:
        """Return the POST."""
        body = {"description": self.description, "request": dict(self.command)}
        return Request("POST", _path(self.uuid), json=body)

    def parse(self, response: Response) -> ProvisioningCommand:
        """Return the command as it was stored. Raises BadAnswer."""
        return _command(response.decode(dict[str, JSONValue]))


@dataclass(frozen=True, slots=True)
class FetchProvisioningCommand(_OfTeam, Call[ProvisioningCommand]):
    """A command of a claimed device, with its answer."""

    uuid: str
    command_id: str

    def request(self) -> Request:
        """Return the GET."""
        command = path_segment(self.command_id, "the id of a provisioning command")
        return Request("GET", f"{_path(self.uuid)}/{command}")

    def parse(self, response: Response) -> ProvisioningCommand:
        """Return the command. Raises BadAnswer."""
        return _command(response.decode(dict[str, JSONValue]))


@dataclass(frozen=True, slots=True)
class ListProvisioningCommands(_OfTeam, Call[tuple[ProvisioningCommand, ...]]):
    """The commands of a claimed device: the first page, which holds what waits for its kit."""

    uuid: str

    def request(self) -> Request:
        """Return the GET."""
        return Request("GET", _path(self.uuid))

    def parse(self, response: Response) -> tuple[ProvisioningCommand, ...]:
        """Return the commands. Raises BadAnswer."""
        listed = response.json()
        items = listed.get("items") if isinstance(listed, dict) else listed
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise BadAnswer("the answer lists no provisioning commands")
        return tuple(_command(one) for one in items if isinstance(one, dict))


def _path(uuid: str) -> str:
    return f"/v1/claimed-devices/{path_segment(uuid, 'the UUID of a device')}/provisioning"


def _command(body: Mapping[str, JSONValue]) -> ProvisioningCommand:
    name = text_in(body, "id")
    if not name:
        raise BadAnswer("the answer names no provisioning command")
    status = body.get("status")
    return ProvisioningCommand(
        name,
        status if isinstance(status, str) else "PENDING",
        object_in(body, "request"),
        object_in(body, "response"),
    )
