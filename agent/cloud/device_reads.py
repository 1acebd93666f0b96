"""Reading devices: list and fetch, as they are or transformed; values of BLE (clauses D4, D5)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.call import Call, Request, Response, Scheme
from agent.cloud.ble import characteristic_path, decode_value
from agent.cloud.conventions import USER_OR_DEVICE, ListCall, Page, device_path, missing, read_page
from agent.cloud.device import Device
from agent.json_value import JSONValue


@dataclass(frozen=True, slots=True)
class Filter:
    """Chooses the devices of a list; of several values any one matches."""

    device_types: Sequence[str] = ()
    device_ids: Sequence[str] = ()
    tags: Sequence[str] = ()
    sub_types: Sequence[str] = ()
    firmware_support: Sequence[str] = ()
    gateway_id: str = ""
    name_like: str = ""

    def query(self) -> list[tuple[str, str]]:
        """Return the parameters; a name is repeated for each value."""
        lists = {
            "deviceTypes": self.device_types,
            "deviceIds": self.device_ids,
            "tags": self.tags,
            "subTypes": self.sub_types,
            "firmwareSupport": self.firmware_support,
            "gatewayId": (self.gateway_id,) if self.gateway_id else (),
            "deviceNameFuzzy": (self.name_like,) if self.name_like else (),
        }
        return [(name, value) for name, values in lists.items() for value in values]


@dataclass(frozen=True, slots=True)
class ListDevices(ListCall[Device]):
    """One page of devices: GET /v1/devices (clause D4.1)."""

    in_project = True

    filter: Filter = field(default_factory=Filter)
    include_state: bool = False

    def request(self) -> Request:
        """Return what to send."""
        query = [*self.filter.query(), *self.page_query()]
        if self.include_state:
            query.append(("includeState", "true"))
        return Request("GET", "/v1/devices", query)

    def parse(self, response: Response) -> Page[Device]:
        """Return the page. Raises BadAnswer."""
        return read_page(response, Device.of)


@dataclass(frozen=True, slots=True)
class TransformDevices(ListCall[JSONValue]):
    """One page of the values of `transform`, one a device, as plain JSON with nulls (D4.2).

    The expression is sent as it is; the service answers a bad one with InvalidRequest.
    """

    transform: str
    filter: Filter = field(default_factory=Filter)

    def request(self) -> Request:
        """Return what to send, with the state, which the expression may read."""
        query = [*self.filter.query(), *self.page_query()]
        query += [("includeState", "true"), ("transform", self.transform)]
        return Request("GET", "/v1/devices", query)

    def parse(self, response: Response) -> Page[JSONValue]:
        """Return the page. Raises BadAnswer."""
        return read_page(response, lambda value: value)


@dataclass(frozen=True, slots=True)
class FetchDevice(Call[Device]):
    """One device: GET /v1/devices/<device_id> (clause D5.1)."""

    in_project = True
    schemes = USER_OR_DEVICE

    device_id: str

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", device_path(self.device_id))

    def parse(self, response: Response) -> Device:
        """Return the device, its version from the ETag. Raises BadAnswer."""
        return Device.of(response.json(), response.headers.get("etag"))

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return where devices are listed."""
        return missing(status)


@dataclass(frozen=True, slots=True)
class Transformed:
    """What a transform made of one device, and the version that it was made of."""

    value: JSONValue
    version: str | None


@dataclass(frozen=True, slots=True)
class TransformDevice(Call[Transformed]):
    """What `transform` makes of one device; the version comes from the ETag (clause D5.1)."""

    schemes = USER_OR_DEVICE

    device_id: str
    transform: str

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", device_path(self.device_id), [("transform", self.transform)])

    def parse(self, response: Response) -> Transformed:
        """Return the value, None where the expression does not match. Raises BadAnswer."""
        value = response.json() if response.content else None
        return Transformed(value, response.headers.get("etag"))


@dataclass(frozen=True, slots=True)
class FetchCharacteristicValue(Call[bytes]):
    """The value of a characteristic as last seen by the cloud."""

    schemes = (Scheme.API_KEY,)

    device_id: str
    characteristic_id: str

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", characteristic_path(self.device_id, self.characteristic_id))

    def parse(self, response: Response) -> bytes:
        """Return the value. Raises BadAnswer."""
        return decode_value(response.json(), self.characteristic_id)
