"""The state that both halves share: clock, store, accounts, and the settings of a test."""

import secrets
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from agent.standin.clock import Clock
from agent.standin.store import Store, Table, TableOf

ORGANIZATION = "acme"
PROJECT = "kits"
PROJECT_WITHOUT_LOCATION = "no-location"
OTHER_ORGANIZATION = "umbrella"
EMAIL = "owner@standin.invalid"
ORGANIZATION_ROLES = ("member", "project_manager", "admin")
"""What a user may be in an organization of the observability service."""
_Seconds = Annotated[float, Meta(ge=0, le=86400)]


class Organization(Struct, kw_only=True):
    """An organization of the observability service."""

    id: str
    slug: str
    name: str
    single_sign_on: bool = False
    """Whether user API keys are refused."""
    created: float


class ProjectRecord(Struct, kw_only=True):
    """A project of an organization."""

    id: str
    slug: str
    name: str
    organization: str
    """The slug."""
    project_key: str
    location: bool
    """Whether it has location services."""
    created: float


class User(Struct, kw_only=True):
    """A person, with a role in each of his organizations, by their slugs."""

    id: str
    email: str
    name: str
    password: str
    user_api_key: str
    created: float
    roles: dict[str, str]


class Team(Struct, kw_only=True):
    """A team (tenant) of the device cloud."""

    id: str
    name: str
    plan: str


class ApiKey(Struct, kw_only=True):
    """A user's key for a team."""

    key: str
    email: str
    team: str
    role: str
    issued_at: float
    """Read by none; a stand-in of 0.1.0 cannot read a key without it."""
    superseded_at: float | None


class OrganizationToken(Struct, kw_only=True):
    """A token for an organization, by its slug."""

    id: str
    token: str
    name: str
    organization: str
    created_at: str


ORGANIZATIONS = TableOf("organizations", Organization)
"""By slug."""
PROJECTS = TableOf("projects", ProjectRecord)
"""By "organization/project"."""
USERS = TableOf("users", User)
"""By email."""
TEAMS = TableOf("teams", Team)
"""By id."""
API_KEYS = TableOf("api_keys", ApiKey)
ORGANIZATION_TOKENS = TableOf("organization_tokens", OrganizationToken)
T = TypeVar("T")


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
    _transient: dict[type, object] = field(default_factory=dict)
    _of_tables: dict[type, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Have what is made of the tables made anew where they are rolled back."""
        self.store.on_roll_back = self._of_tables.clear

    async def close(self) -> None:
        """Stop the workers, and close the file."""
        for close in self.on_close:
            await close()
        self.on_close.clear()
        self.store.close()

    def table(self, of: TableOf[T], name: str = "") -> Table[T]:
        """Return a table of the store; `name` is that of the one, where `of` is that of many."""
        return self.store.table(of, name)

    def transient(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the one object of a type that ends with the process: a worker, a cache, faults."""
        return _the_one(self._transient, kind, make)

    def of_tables(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the one object of a type that keeps in memory what is in the tables."""
        return _the_one(self._of_tables, kind, make)

    @property
    def team_id(self) -> str:
        """The team (tenant) that the ready line names."""
        return next(iter(self.table(TEAMS)))

    def project(self, organization: str, project: str) -> ProjectRecord | None:
        """Return the project of those slugs, or None."""
        return self.table(PROJECTS).get(f"{organization}/{project}")

    def put_project(self, record: ProjectRecord) -> None:
        """Store a project."""
        self.table(PROJECTS).put(f"{record.organization}/{record.slug}", record)


def _the_one(kept: dict[type, object], kind: type[T], make: Callable[[], T]) -> T:
    found = kept.get(kind)
    if found is None:
        found = kept[kind] = make()
    assert isinstance(found, kind)
    return found


def secret(prefix: str) -> str:
    """Return a new secret: the prefix says what it is, 40 random hex digits follow."""
    return f"{prefix}_{secrets.token_hex(20)}"


def open_cloud(path: Path | None = None, *, devices: int = 0) -> Cloud:
    """Return a cloud over the file at `path`, or in memory; seeded where it is empty."""
    cloud = Cloud(store=Store(path), settings=Settings(devices=devices))
    if not len(cloud.table(ORGANIZATIONS)):
        _seed(cloud)
        cloud.store.commit()
    return cloud


def _seed(cloud: Cloud) -> None:
    for slug, name in ((ORGANIZATION, "Acme Sensors"), (OTHER_ORGANIZATION, "Umbrella Works")):
        organization = Organization(id=_uuid(), slug=slug, name=name, created=cloud.clock.time())
        cloud.table(ORGANIZATIONS).put(slug, organization)
        make_organization_token(cloud, slug, "made at start")
    for slugs, name, location in (
        ((ORGANIZATION, PROJECT), "Kits", True),
        ((ORGANIZATION, PROJECT_WITHOUT_LOCATION), "No location services", False),
        ((OTHER_ORGANIZATION, PROJECT), "Kits of another organization", True),
    ):
        make_project(cloud, *slugs, name, location=location)
    _seed_people(cloud)


def _seed_people(cloud: Cloud) -> None:
    for email, name, roles in (
        (EMAIL, "Test Owner", {ORGANIZATION: "admin", OTHER_ORGANIZATION: "member"}),
        ("viewer@standin.invalid", "Test Viewer", {ORGANIZATION: "member"}),
        ("stranger@standin.invalid", "Test Stranger", {OTHER_ORGANIZATION: "admin"}),
    ):
        user = User(
            id=_uuid(),
            email=email,
            name=name,
            password=secret("pw"),
            user_api_key=secret("uk"),
            created=cloud.clock.time(),
            roles=roles,
        )
        cloud.table(USERS).put(email, user)
    teams = [_uuid(), _uuid()]
    for team, name in zip(teams, ("Acme kits", "Umbrella kits"), strict=True):
        cloud.table(TEAMS).put(team, Team(id=team, name=name, plan="PRO"))
    for email, team, role in (
        (EMAIL, teams[0], "owner"),
        (EMAIL, teams[1], "owner"),
        ("viewer@standin.invalid", teams[0], "viewer"),
    ):
        issue_api_key(cloud, email, team, role)


def make_project(
    cloud: Cloud, organization: str, slug: str, name: str, *, location: bool = False
) -> None:
    """Create a project with a new project key."""
    record = ProjectRecord(
        id=_uuid(),
        slug=slug,
        name=name,
        organization=organization,
        project_key=secrets.token_hex(16),
        location=location,
        created=cloud.clock.time(),
    )
    cloud.put_project(record)


def _uuid() -> str:
    return str(uuid.uuid4())


def issue_api_key(cloud: Cloud, email: str, team: str, role: str) -> str:
    """Return a new API key of a user for a team; its predecessor has a grace period (D10.1)."""
    table, now = cloud.table(API_KEYS), cloud.clock.time()
    for record in current_api_keys(cloud, email, team):
        record.superseded_at = now
        table.put(record.key, record)
    key = secrets.token_hex(20)
    issued = ApiKey(key=key, email=email, team=team, role=role, issued_at=now, superseded_at=None)
    table.put(key, issued)
    return key


def current_api_keys(cloud: Cloud, email: str, team: str) -> list[ApiKey]:
    """Return the keys of a user for a team that are not superseded: one at most."""
    return [
        record
        for record in cloud.table(API_KEYS).values()
        if (record.email, record.team) == (email, team) and not record.superseded_at
    ]


def make_organization_token(cloud: Cloud, organization: str, name: str) -> OrganizationToken:
    """Create and store a token for an organization, by its slug."""
    token = OrganizationToken(
        id=_uuid(),
        token=secret("oat"),
        name=name,
        organization=organization,
        created_at=cloud.clock.iso(),
    )
    cloud.table(ORGANIZATION_TOKENS).put(token.token, token)
    return token


def organization_token(cloud: Cloud, organization: str) -> str:
    """Return the oldest token of an organization; a new one where all were deleted."""
    for record in cloud.table(ORGANIZATION_TOKENS).values():
        if record.organization == organization:
            return record.token
    return make_organization_token(cloud, organization, "made at start").token
