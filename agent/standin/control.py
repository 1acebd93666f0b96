"""The control endpoint: a test changes the running stand-in here, with a token of its own.

`POST /control` takes an object of any of these, applies them in this order and answers with the
state that `GET /control` shows:

- `clock`: {"advance_s": n}, {"set": unix seconds}, {"freeze": true}; false lets it run on
- `settings`: {name: value} of `agent.standin.state.Settings`
- `faults`: a list of fault specifications as `--fault` takes them; [] clears them
- `plan`: a plan's name, of the team; `role`: the owner's role in it
- `location`: {"organization/project": bool}
- `single_sign_on`: {organization: bool}; user API keys do not open one that requires it
- `members`: {organization: role of the owner in it, or null: removed}
- `rotate_api_key`: true; the new key is in this one answer
- `trial_started`: Unix seconds, when the evaluation token was made
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from secrets import compare_digest
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON, MakeRefused
from agent.standin.faults import active_faults, set_faults
from agent.standin.state import EMAIL, ORGANIZATION_ROLES, Cloud, Settings, issue_api_key
from agent.standin.store import Table

CONTROL_PATH = "/control"


class _Clock(msgspec.Struct, forbid_unknown_fields=True):
    freeze: bool | UnsetType = UNSET
    set: float | UnsetType = UNSET
    advance_s: float = 0


class _Changes(msgspec.Struct, forbid_unknown_fields=True):
    """What the body may hold; the entry of `CHANGES` of the same name applies a field."""

    clock: _Clock | UnsetType = UNSET
    settings: dict[str, Any] | UnsetType = UNSET
    faults: list[str] | UnsetType = UNSET
    plan: str | UnsetType = UNSET
    role: Literal["owner", "admin", "editor", "viewer"] | UnsetType = UNSET
    location: dict[str, bool] | UnsetType = UNSET
    single_sign_on: dict[str, bool] | UnsetType = UNSET
    members: dict[str, str | None] | UnsetType = UNSET
    rotate_api_key: bool | UnsetType = UNSET
    trial_started: float | UnsetType = UNSET


def routes(cloud: Cloud, refuse: MakeRefused) -> list[Route]:
    """Return the routes of the control endpoint; `refuse` makes its errors."""

    def authorize(request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not compare_digest(given.encode(), f"Bearer {cloud.control_token}".encode()):
            reason = "the control token opens this, and nothing else does"
            refused = refuse(CONTROL_PATH, 401, reason)
            refused.headers["WWW-Authenticate"] = "Bearer"
            raise refused

    async def read_state(request: Request) -> Response:
        authorize(request)
        return JSON(_state(cloud))

    async def change(request: Request) -> Response:
        authorize(request)
        try:
            changes = msgspec.json.decode(await request.body(), type=_Changes)
        except (msgspec.DecodeError, RecursionError) as error:
            raise refuse(CONTROL_PATH, 400, f"the body is not what this takes: {error}") from error
        results: dict[str, Any] = {}
        for name, apply in CHANGES.items():
            value = getattr(changes, name)
            if value is not UNSET:
                try:
                    results |= apply(cloud, value) or {}
                except ValueError as error:
                    raise refuse(CONTROL_PATH, 400, f"{name}: {error}") from error
        return JSON({**_state(cloud), **results})

    return [
        Endpoint(CONTROL_PATH, read_state, methods=["GET"]),
        Endpoint(CONTROL_PATH, change, methods=["POST"]),
    ]


def _state(cloud: Cloud) -> dict[str, Any]:
    return {
        "clock": cloud.clock.iso(),
        "settings": asdict(cloud.settings),
        "faults": active_faults(cloud),
        "plan": cloud.table("teams").get(cloud.team_id)["plan"],
    }


def _clock(cloud: Cloud, value: _Clock) -> None:
    if value.freeze is not UNSET:
        cloud.clock.freeze(still=value.freeze)
    if value.set is not UNSET:
        cloud.clock.set(value.set)
    cloud.clock.advance(value.advance_s)


def _settings(cloud: Cloud, value: dict[str, Any]) -> None:
    current = asdict(cloud.settings)
    for name in value:
        if name not in current:
            raise ValueError(f"no setting {name!r}; there are {', '.join(current)}")
    cloud.settings = msgspec.convert({**current, **value}, Settings)


def _plan(cloud: Cloud, value: str) -> None:
    team = cloud.table("teams").get(cloud.team_id)
    cloud.table("teams").put(cloud.team_id, {**team, "plan": value})


def _role(cloud: Cloud, value: str) -> None:
    table = cloud.table("api_keys")
    for key, record in table.items():
        if record["email"] == EMAIL and record["team"] == cloud.team_id:
            table.put(key, {**record, "role": value})


def _location(cloud: Cloud, value: dict[str, bool]) -> None:
    projects = cloud.table("projects")
    for name, enabled in value.items():
        if name not in projects:
            raise ValueError(f"no project {name!r}")
        projects.put(name, {**projects.get(name), "location": enabled})


def _single_sign_on(cloud: Cloud, value: dict[str, bool]) -> None:
    table = cloud.table("organizations")
    for slug, required in value.items():
        table.put(slug, {**_organization(table, slug), "single_sign_on": required})


def _members(cloud: Cloud, value: dict[str, str | None]) -> None:
    organizations, users = cloud.table("organizations"), cloud.table("users")
    for slug, role in value.items():
        _organization(organizations, slug)
        if role not in (None, *ORGANIZATION_ROLES):
            raise ValueError(f"no role {role!r}; there are {', '.join(ORGANIZATION_ROLES)}")
        owner = users.get(EMAIL)
        roles = {name: has for name, has in owner["roles"].items() if name != slug}
        users.put(EMAIL, {**owner, "roles": {**roles, slug: role} if role else roles})


def _organization(organizations: Table, slug: str) -> dict[str, Any]:
    if slug not in organizations:
        raise ValueError(f"no organization {slug!r}")
    found: dict[str, Any] = organizations.get(slug)
    return found


def _rotate(cloud: Cloud, value: bool) -> dict[str, Any] | None:
    if not value:
        return None
    role = next(
        record["role"]
        for record in cloud.table("api_keys").values()
        if record["email"] == EMAIL and record["team"] == cloud.team_id
    )
    return {"api_key": issue_api_key(cloud, EMAIL, cloud.team_id, role)}


def _trial(cloud: Cloud, value: float) -> None:
    table = cloud.table("evaluation_tokens")
    table.put(cloud.team_id, {**table.get(cloud.team_id), "created_at": value})


CHANGES: dict[str, Callable[[Cloud, Any], dict[str, Any] | None]] = {
    "clock": _clock,
    "settings": _settings,
    "faults": set_faults,
    "plan": _plan,
    "role": _role,
    "location": _location,
    "single_sign_on": _single_sign_on,
    "members": _members,
    "rotate_api_key": _rotate,
    "trial_started": _trial,
}
