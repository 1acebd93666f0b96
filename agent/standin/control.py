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
- `make_organization_token`: {"organization": slug, "name": text}; the token is in this one answer
- `delete_organization_token`: its id; like making one it needs the owner to be an admin there
- `trial_started`: Unix seconds, when the evaluation token was made
"""

from collections.abc import Callable
from dataclasses import asdict
from secrets import compare_digest
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from agent.standin import state
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON, MakeRefused
from agent.standin.faults import CONTROL_PATH, active_faults, set_faults
from agent.standin.keys import EVALUATION_TOKENS


class _Clock(msgspec.Struct, forbid_unknown_fields=True):
    freeze: bool | UnsetType = UNSET
    set: float | UnsetType = UNSET
    advance_s: float = 0


class _NewToken(msgspec.Struct, forbid_unknown_fields=True):
    organization: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class _Changes(msgspec.Struct, forbid_unknown_fields=True):
    """What the body may hold; the entry of `CHANGES` of the same name applies a field."""

    clock: _Clock | UnsetType = UNSET
    settings: dict[str, object] | UnsetType = UNSET
    faults: list[str] | UnsetType = UNSET
    plan: str | UnsetType = UNSET
    role: Literal["owner", "admin", "editor", "viewer"] | UnsetType = UNSET
    location: dict[str, bool] | UnsetType = UNSET
    single_sign_on: dict[str, bool] | UnsetType = UNSET
    members: dict[str, str | None] | UnsetType = UNSET
    rotate_api_key: bool | UnsetType = UNSET
    make_organization_token: _NewToken | UnsetType = UNSET
    delete_organization_token: str | UnsetType = UNSET
    trial_started: float | UnsetType = UNSET


def routes(cloud: state.Cloud, refuse: MakeRefused) -> list[Endpoint]:
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
        results: dict[str, object] = {}
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


def _state(cloud: state.Cloud) -> dict[str, object]:
    return {
        "clock": cloud.clock.iso(),
        "settings": asdict(cloud.settings),
        "faults": active_faults(cloud),
        "plan": cloud.table(state.TEAMS)[cloud.team_id].plan,
        "organization_tokens": [
            {
                name: value
                for name, value in msgspec.structs.asdict(token).items()
                if name != "token"
            }
            for token in cloud.table(state.ORGANIZATION_TOKENS).values()
        ],
    }


def _clock(cloud: state.Cloud, value: _Clock) -> None:
    if value.freeze is not UNSET:
        cloud.clock.freeze(still=value.freeze)
    if value.set is not UNSET:
        cloud.clock.set(value.set)
    cloud.clock.advance(value.advance_s)


def _settings(cloud: state.Cloud, value: dict[str, object]) -> None:
    current = asdict(cloud.settings)
    for name in value:
        if name not in current:
            raise ValueError(f"no setting {name!r}; there are {', '.join(current)}")
    cloud.settings = msgspec.convert({**current, **value}, state.Settings)


def _plan(cloud: state.Cloud, value: str) -> None:
    team = cloud.table(state.TEAMS)[cloud.team_id]
    team.plan = value
    cloud.table(state.TEAMS).put(cloud.team_id, team)


def _role(cloud: state.Cloud, value: str) -> None:
    for record in _owners_keys(cloud):
        record.role = value
        cloud.table(state.API_KEYS).put(record.key, record)


def _location(cloud: state.Cloud, value: dict[str, bool]) -> None:
    for name, enabled in value.items():
        project = cloud.table(state.PROJECTS).get(name)
        if project is None:
            raise ValueError(f"no project {name!r}")
        project.location = enabled
        cloud.put_project(project)


def _single_sign_on(cloud: state.Cloud, value: dict[str, bool]) -> None:
    for slug, required in value.items():
        organization = _organization(cloud, slug)
        organization.single_sign_on = required
        cloud.table(state.ORGANIZATIONS).put(slug, organization)


def _members(cloud: state.Cloud, value: dict[str, str | None]) -> None:
    owner = cloud.table(state.USERS)[state.EMAIL]
    for slug, role in value.items():
        _organization(cloud, slug)
        if role not in (None, *state.ORGANIZATION_ROLES):
            raise ValueError(f"no role {role!r}; there are {', '.join(state.ORGANIZATION_ROLES)}")
        owner.roles.pop(slug, None)
        if role:
            owner.roles[slug] = role
        cloud.table(state.USERS).put(state.EMAIL, owner)


def _organization(cloud: state.Cloud, slug: str) -> state.Organization:
    found = cloud.table(state.ORGANIZATIONS).get(slug)
    if found is None:
        raise ValueError(f"no organization {slug!r}")
    return found


def _owners_keys(cloud: state.Cloud) -> list[state.ApiKey]:
    keys = cloud.table(state.API_KEYS).values()
    return [key for key in keys if (key.email, key.team) == (state.EMAIL, cloud.team_id)]


def _rotate(cloud: state.Cloud, value: bool) -> dict[str, object] | None:
    if not value:
        return None
    role = _owners_keys(cloud)[0].role
    return {"api_key": state.issue_api_key(cloud, state.EMAIL, cloud.team_id, role)}


def _make_token(cloud: state.Cloud, value: _NewToken) -> dict[str, object]:
    _require_admin(cloud, value.organization)
    made = state.make_organization_token(cloud, value.organization, value.name)
    return {"organization_auth_token": {"id": made.id, "token": made.token}}


def _delete_token(cloud: state.Cloud, value: str) -> None:
    table = cloud.table(state.ORGANIZATION_TOKENS)
    for token in table.values():
        if token.id == value:
            _require_admin(cloud, token.organization)
            table.delete(token.token)
            return
    raise ValueError(f"no token has the id {value!r}; GET {CONTROL_PATH} lists them")


def _require_admin(cloud: state.Cloud, slug: str) -> None:
    """Raise ValueError where the owner, in whose name it is done, is no admin (D10.7, O4.2)."""
    _organization(cloud, slug)
    role = cloud.table(state.USERS)[state.EMAIL].roles.get(slug, "no member")
    if role != "admin":
        raise ValueError(
            f"organization admins make and delete tokens; the owner is {role} of {slug}"
        )


def _trial(cloud: state.Cloud, value: float) -> None:
    token = cloud.table(EVALUATION_TOKENS)[cloud.team_id]
    token.created_at = value
    cloud.table(EVALUATION_TOKENS).put(cloud.team_id, token)


CHANGES: dict[str, Callable[[state.Cloud, Any], dict[str, object] | None]] = {
    "clock": _clock,
    "settings": _settings,
    "faults": set_faults,
    "plan": _plan,
    "role": _role,
    "location": _location,
    "single_sign_on": _single_sign_on,
    "members": _members,
    "rotate_api_key": _rotate,
    "make_organization_token": _make_token,
    "delete_organization_token": _delete_token,
    "trial_started": _trial,
}
