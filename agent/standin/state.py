"""The state that both halves share: clock, store, accounts, and the settings of a test.

Tables that both halves read:

- `organizations`: slug -> {id, slug, name, single_sign_on, created}
- `projects`: "organization/project" -> {id, slug, name, organization, project_key, location,
  created}
- `users`: email -> {id, email, name, password, user_api_key, created,
  roles: {organization: role}}
- `teams`: id -> {id, name, plan}
- `api_keys`: key -> {key, email, team, role, issued_at, superseded_at}
- `organization_tokens`: token -> {id, token, name, organization, created_at}
- `service_keys`: "team/service" -> {team, service, private, public, created_at}
- `evaluation_tokens`: team -> {public, created_at}
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agent.standin.clock import Clock
from agent.standin.store import Store, Table

ORGANIZATION = "acme"
PROJECT = "kits"
PROJECT_WITHOUT_LOCATION = "no-location"
OTHER_ORGANIZATION = "umbrella"
EMAIL = "owner@standin.invalid"
ORGANIZATION_ROLES = ("member", "project_manager", "admin")
"""What a user may be in an organization of the observability service."""
_Seconds = Annotated[float, Meta(ge=0, le=86400)]


@dataclass(slots=True)
class Settings:
    """What a test or the control endpoint can change."""

    devices: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Made-up Generic devices beside the seeded ones."""
    bulk_s: _Seconds = 0.3
    """How long a bulk operation takes."""
    discover_s: _Seconds = 3.0
    """How long a gateway takes to rediscover a device's services."""
    legacy_location: bool = True
    """The legacy location paths answer; False once "migrated" (clause D8.4)."""
    account_paths: bool = True
    """The deprecated account paths are there; they may go after 2026-07-01 (clause D9.4)."""
    play_claimed_devices: bool = True
    """A claimed device's provisioning commands are answered, though no kit carries them out."""


@dataclass(slots=True)
class Cloud:
    """The whole state of a running stand-in."""

    clock: Clock = field(default_factory=Clock)
    store: Store = field(default_factory=Store)
    settings: Settings = field(default_factory=Settings)
    urls: dict[str, str] = field(default_factory=dict)
    """Base URL by host, without a final slash; filled once the sockets listen."""
    allowed_hosts: set[str] = field(default_factory=set)
    """Names beside localhost and IP addresses that the Host header may hold."""
    control_token: str = field(default_factory=lambda: secret("ctl"))
    before_request: list[Callable[[], None]] = field(default_factory=list)
    """Called before each request: operations that were accepted earlier take effect here."""
    on_close: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Called when the stand-in stops: workers end here."""
    transient: dict[str, Any] = field(default_factory=dict)
    """State that ends with the process, by a name of its owner: workers, caches, faults."""

    async def close(self) -> None:
        """Stop the workers, and close the file."""
        for close in self.on_close:
            await close()
        self.on_close.clear()
        self.store.close()

    def table(self, name: str) -> Table:
        """Return a table of the store."""
        return self.store.table(name)

    @property
    def team_id(self) -> str:
        """The team (tenant) that the ready line names."""
        return str(self.table("teams").keys()[0])

    def project(self, organization: str, project: str) -> dict[str, Any] | None:
        """Return the project of those slugs, or None."""
        found: dict[str, Any] | None = self.table("projects").get(f"{organization}/{project}")
        return found


def secret(prefix: str) -> str:
    """Return a new secret: the prefix says what it is, 40 random hex digits follow."""
    return f"{prefix}_{secrets.token_hex(20)}"


def open_cloud(path: Path | None = None, *, devices: int = 0) -> Cloud:
    """Return a cloud over the file at `path`, or in memory; seeded where it is empty."""
    cloud = Cloud(store=Store(path), settings=Settings(devices=devices))
    if not len(cloud.table("organizations")):
        _seed(cloud)
        cloud.store.commit()
    return cloud


def _seed(cloud: Cloud) -> None:
    now = cloud.clock.iso()
    for slug, name in ((ORGANIZATION, "Acme Sensors"), (OTHER_ORGANIZATION, "Umbrella Works")):
        cloud.table("organizations").put(
            slug,
            {
                "id": str(uuid.uuid4()),
                "slug": slug,
                "name": name,
                "single_sign_on": False,
                "created": cloud.clock.time(),
            },
        )
        token = secret("oat")
        cloud.table("organization_tokens").put(
            token,
            {
                "id": str(uuid.uuid4()),
                "token": token,
                "name": "made at start",
                "organization": slug,
                "created_at": now,
            },
        )
    for organization, slug, name, location in (
        (ORGANIZATION, PROJECT, "Kits", True),
        (ORGANIZATION, PROJECT_WITHOUT_LOCATION, "No location services", False),
        (OTHER_ORGANIZATION, PROJECT, "Kits of another organization", True),
    ):
        cloud.table("projects").put(
            f"{organization}/{slug}",
            {
                "id": str(uuid.uuid4()),
                "slug": slug,
                "name": name,
                "organization": organization,
                "project_key": secrets.token_hex(16),
                "location": location,
                "created": cloud.clock.time(),
            },
        )
    _seed_people(cloud)


def _seed_people(cloud: Cloud) -> None:
    for email, name, roles in (
        (EMAIL, "Test Owner", {ORGANIZATION: "admin", OTHER_ORGANIZATION: "member"}),
        ("viewer@standin.invalid", "Test Viewer", {ORGANIZATION: "member"}),
        ("stranger@standin.invalid", "Test Stranger", {OTHER_ORGANIZATION: "admin"}),
    ):
        cloud.table("users").put(
            email,
            {
                "id": str(uuid.uuid4()),
                "email": email,
                "name": name,
                "password": secret("pw"),
                "user_api_key": secret("uk"),
                "created": cloud.clock.time(),
                "roles": roles,
            },
        )
    teams = [str(uuid.uuid4()), str(uuid.uuid4())]
    for team, name in zip(teams, ("Acme kits", "Umbrella kits"), strict=True):
        cloud.table("teams").put(team, {"id": team, "name": name, "plan": "PRO"})
    for email, team, role in (
        (EMAIL, teams[0], "owner"),
        (EMAIL, teams[1], "owner"),
        ("viewer@standin.invalid", teams[0], "viewer"),
    ):
        issue_api_key(cloud, email, team, role)


def issue_api_key(cloud: Cloud, email: str, team: str, role: str) -> str:
    """Return a new API key of a user for a team; its predecessor has a grace period (D10.1)."""
    table = cloud.table("api_keys")
    for key, record in table.items():
        if record["email"] == email and record["team"] == team and not record["superseded_at"]:
            table.put(key, {**record, "superseded_at": cloud.clock.time()})
    key = secrets.token_hex(20)
    table.put(
        key,
        {
            "key": key,
            "email": email,
            "team": team,
            "role": role,
            "issued_at": cloud.clock.time(),
            "superseded_at": None,
        },
    )
    return key


def current_api_key(cloud: Cloud, email: str, team: str) -> str:
    """Return the key that is not superseded."""
    return next(
        str(record["key"])
        for record in cloud.table("api_keys").values()
        if record["email"] == email and record["team"] == team and not record["superseded_at"]
    )


def organization_token(cloud: Cloud, organization: str) -> str:
    """Return the oldest token of an organization."""
    return next(
        str(record["token"])
        for record in cloud.table("organization_tokens").values()
        if record["organization"] == organization
    )
