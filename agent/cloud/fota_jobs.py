"""FOTA job executions of one device: the pending one, and what became of it (clause D9.2)."""

from dataclasses import dataclass
from typing import ClassVar

from agent.call import Call, Request, Response, Scheme, StatusCall
from agent.cloud.conventions import NOT_IN_SERVICE, path_segment
from agent.errors import NotFound, RateLimited
from agent.json_value import JSONValue

_DEVICE_UNKNOWN = 40410
_PLAN_USED_UP = 40005


class _OfAKit:
    """Base of the calls about a kit's job; with `to_refuse` a user makes them for the kit.

    Either scheme of the two that the operation declares; a proxy has a service key for FOTA. Where
    the modem's firmware is too old, a user fetches the job and refuses it in place of the kit, with
    the API key: the one call about such a kit's job (clauses D1.3, D1.4).
    """

    service: ClassVar[str] = "fota"

    device_id: str
    to_refuse: bool

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """Return the credentials of a kit, or of the user who refuses for it."""
        if self.to_refuse:
            return (Scheme.API_KEY,)
        return (Scheme.API_KEY, Scheme.DEVICE_JWT, Scheme.SERVICE_JWT)

    def serves(self) -> str:
        """Return the device that the call is made for, "" where a user refuses for it."""
        return "" if self.to_refuse else self.device_id


@dataclass(frozen=True, slots=True)
class FetchCurrentJob(_OfAKit, Call["dict[str, JSONValue] | None"]):
    """FetchCurrentPendingFOTAJobExecution: the oldest that waits or is in progress, or None."""

    accepts: ClassVar[frozenset[int]] = frozenset({404})

    device_id: str
    to_refuse: bool = False

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", f"{_executions(self.device_id)}/current")

    def parse(self, response: Response) -> dict[str, JSONValue] | None:
        """Return the execution as sent. A 404 says "no job", unless its code names the device.

        Raises BadAnswer also for a 404 that is no JSON: a proxy's, or another server's.
        """
        if response.status != 404:
            return response.decode(dict[str, JSONValue])
        body = response.json()
        if isinstance(body, dict) and body.get("code") == _DEVICE_UNKNOWN:
            raise NotFound(
                f"the device cloud does not know the device {self.device_id}",
                hint=NOT_IN_SERVICE,
                status=404,
                code=_DEVICE_UNKNOWN,
            )
        return None


@dataclass(frozen=True, slots=True)
class UpdateJob(_OfAKit, StatusCall):
    """UpdateFOTAJobExecution: what became of a job. The same final state twice is no error."""

    # What it says of a job that is deleted, final or another's; other statuses are about no job.
    accepts: ClassVar[frozenset[int]] = frozenset({400, 404, 409, 410, 412, 422})

    device_id: str
    job_id: str
    status: str
    details: str = ""
    to_refuse: bool = False

    def request(self) -> Request:
        """Return what to send."""
        body = {"status": self.status}
        if self.details:
            body["details"] = self.details
        path = f"{_executions(self.device_id)}/{path_segment(self.job_id, 'a job id')}"
        return Request("PATCH", path, json=body)

    def parse(self, response: Response) -> None:
        """Raise NotFound if the job is not this device's to report on any more.

        Raises BadAnswer for a refusal that is no JSON, or a page: a proxy's, or another server's.
        Raises RateLimited for one that is about the account's plan.
        """
        if response.status in self.accepts:
            body = response.json()
            if isinstance(body, dict) and body.get("code") == _PLAN_USED_UP:
                raise RateLimited(
                    f"the device cloud takes the report on job {self.job_id} later: what the "
                    "account's plan allows is used up",
                    hint="`cellagent device account` shows the plan",
                    status=response.status,
                    code=_PLAN_USED_UP,
                )
            raise NotFound(
                f"the device cloud takes no report on job {self.job_id}: {response.status}",
                status=response.status,
            )
        response.check_accepted()


def _executions(device_id: str) -> str:
    return f"/v1/fota-job-executions/{path_segment(device_id, 'a device id')}"
