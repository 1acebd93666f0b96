"""The schema of a profile: its sections and keys, with their defaults. Every key is optional.

Secrets have no key here: they come from the environment, a 0600 file, systemd credentials or a
keyring (`agent.config.secrets`).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from at.protocol.dialect import DialectName

NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Version = Annotated[str, msgspec.Meta(pattern=r"^[-a-zA-Z0-9_.+]{0,128}$")]
"""A version at the observability service."""
DeviceId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[-a-zA-Z0-9_]{0,128}$",
        description="what all services take: at most 128 letters, digits, - and _",
    ),
]
ServiceUrl = Annotated[str, msgspec.Meta(description="https, or http on this machine")]
Count = Annotated[int, msgspec.Meta(ge=1)]
# A description says what a value that has another form may be.
WifiSource = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|networkmanager|iw|companion|none|file:.+)$",
        description="auto, networkmanager, iw, companion, none, or file:PATH",
    ),
]
ConsolePort = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|same|none|[cC][oO][mM][0-9]+|.*[/:\\\\].*)$",
        description="auto, same (as the AT port), none, or a port as /dev/ttyACM1 or COM3",
    ),
]
QuietHours = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(([01]?[0-9]|2[0-3]):[0-5][0-9]-([01]?[0-9]|2[0-3]):[0-5][0-9])?$",
        description="local times as 22:00-06:00",
    ),
]
Sha256Hex = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}$", description="64 hex digits of a SHA-256")
]


class Section(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of every section: unknown keys are refused, values do not change after loading."""


class HostSettings(Section, frozen=True):
    """URLs of the services (clauses D1.1, O1.4)."""

    device_cloud: ServiceUrl = ""
    api: ServiceUrl = ""
    chunks: ServiceUrl = ""
    ingress: ServiceUrl = ""
    files: ServiceUrl = ""
    provisioning: ServiceUrl = ""
    ca_file: str = ""
    """A PEM file of CA certificates to trust instead of the system's."""
    proxy: str = ""
    """The only way to a proxy: the environment's proxy variables are not read."""


class AccountSettings(Section, frozen=True):
    """The account at the services: slugs, not secrets."""

    organization: str = ""
    project: str = ""
    team_id: str = ""
    email: str = ""
    project_key_header: str = "Service-Project-Key"
    """The real service names this header after itself."""


class CredentialSettings(Section, frozen=True):
    """Which credentials are used; the secrets themselves have no key."""

    prefer: Literal[
        "",
        "api-key",
        "device-jwt",
        "service-jwt",
        "evaluation-token",
        "service-token",
        "organization-token",
        "basic",
    ] = ""
    """The kind to use wherever an operation takes it (clause D9.2); else each has its own order."""
    device_key_file: str = ""
    """PEM of a P-256 key held by this host, for a device whose modem does not sign."""
    service_key_files: dict[str, str] = {}
    """Service ("location", "fota", or "all") -> PEM of the key that the cloud made for it."""
    keyring: bool = False
    """Ask the desktop's keyring for what no other source has."""


class KitSettings(Section, frozen=True):
    """One kit: its ports and how to talk to it."""

    port: str = ""
    console_port: ConsolePort = "auto"
    """auto, same (as the AT port), none, or a port."""
    companion_port: str = ""
    """The port of an ESP-AT companion that scans Wi-Fi."""
    dialect: DialectName = "auto"
    baud: Count = 115200
    device_id: DeviceId = ""
    """The id at all services; "" means the one that the state knows, else the modem's UUID."""
    hardware_version: Version = ""
    """The board, as `nrf9161dk`; "" means what the kit itself, or its USB identity, says."""
    software_type: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,128}$")] = ""
    """The component that prints core dumps, as `main`; "" means what the kit's own events say."""
    software_version: Version = ""
    """Its version, where the kit does not say it: an update does not change it here."""
    keep_online: Literal["never", "as-found", "always"] = "as-found"
    """Which modem `run` turns on again after a restart that was not its own: none, one that was on
    before, or any."""
    settle_s: NotNegative = 30.0
    """How long after a restart the kit's own firmware has to turn the modem on first."""
    slot: str = ""
    """The bench operator's name for the place on the hub."""


class LocationSettings(Section, frozen=True):
    """How the kit's position is found."""

    interval_s: NotNegative = 3600.0
    """Time between two positions of `run`; 0 turns them off."""
    wifi: WifiSource = "auto"
    """auto, networkmanager, iw, companion, none, or file:PATH. Only auto takes the scanners of
    macOS and Windows, which have no word of their own."""
    send_ssid: bool = False
    legacy: bool = False
    """Use the deprecated path without organization and project (clause D8.3)."""
    good_enough_m: NotNegative = 200.0
    """An uncertainty that ends the search for a better source."""


class FotaSettings(Section, frozen=True):
    """Which jobs are carried out, and what an image must prove first."""

    interval_s: NotNegative = 900.0
    """Time between two looks of `run` for a job; 0 turns them off."""
    quiet_hours: QuietHours = ""
    """Local time without updates, as "22:00-06:00"."""
    hosts: tuple[str, ...] = ()
    """Hosts that images may come from."""
    require: Literal["", "size-checked", "intact", "verified"] = ""
    """May only raise the default of the image's type."""
    allow_downgrade: bool = False
    trust_proxy: bool = False
    public_key_file: str = ""
    digests: tuple[Sha256Hex, ...] = ()
    """SHA-256 digests, in hex, of images that the operator trusts."""
    installer: Literal["auto", "mcuboot", "serial-modem", "command", "virtual"] = "auto"
    mcuboot_port: str = ""
    modem_fetches: bool = False
    """Whether a Serial Modem kit downloads modem images itself: they are then only size-checked."""
    command: tuple[str, ...] = ()
    """Program and arguments of an external installer; {image} stands for the path."""
    command_timeout_s: NotNegative = 600.0


class OutboxSettings(Section, frozen=True):
    """How much is kept for delivery, and how long."""

    max_bytes: Count = 50 * 1024 * 1024
    max_items: Count = 100_000
    max_age_s: NotNegative = 7 * 86400.0
    min_free_bytes: int = 10 * 1024 * 1024
    """Free space on the disk below which nothing more is taken."""
    park_after: Count = 3
    """Permanent refusals after which an item is set aside and the others pass."""


class EventSettings(Section, frozen=True):
    """What `run` itself reports to the observability service about its kits."""

    own: bool = True
    """A trace when a link is lost, a modem restarts, an update ends, a task of the agent fails."""
    heartbeat_s: NotNegative = 3600.0
    """Time between two heartbeats that count them; 0 turns those off."""


class BoardLimits(Section, frozen=True):
    """What a kit must keep before `provision` writes to it; None reads nothing and asks nothing."""

    supply_min_mv: int | None = None
    supply_max_mv: int | None = None
    temperature_min_c: int | None = None
    temperature_max_c: int | None = None
    rsrp_min_dbm: int | None = None
    sim_required: bool = False

    def __post_init__(self) -> None:
        """Check that each least is not above its most. Raises ValueError."""
        for what, unit in (("supply", "mv"), ("temperature", "c")):
            least = getattr(self, f"{what}_min_{unit}")
            most = getattr(self, f"{what}_max_{unit}")
            if least is not None and most is not None and least > most:
                raise ValueError(f"{what}_min_{unit} {least} is above {what}_max_{unit} {most}")
        if self.rsrp_min_dbm is not None and self.rsrp_min_dbm >= 0:
            raise ValueError(f"rsrp_min_dbm is {self.rsrp_min_dbm}: an RSRP is negative, as -110")


class ProvisioningSettings(Section, frozen=True):
    """What the bench writes and where it keeps its ledger."""

    ledger: str = ""
    """"" means a SQLite file in the state folder; else a postgresql:// URL without password."""
    station: str = ""
    """The station's name in the ledger; "" is the host's name."""
    lot: str = ""
    product: str = ""
    """Recorded with every run, where `run --lot` and `--product` say nothing else."""
    security_tag: int = 16842753
    ca_chain_file: str = ""
    """The server's CA chain that is written to the kits."""
    device_ca_file: str = ""
    device_ca_key_file: str = ""
    """A PEM file, or the pkcs11: URI of a key on a token (extra bench)."""
    certificate_days: Annotated[int, msgspec.Meta(ge=1, le=36500)] = 3650
    """How long a board's certificate holds; it never outlives the CA that signs it."""
    attestation_keys: str = ""
    """The public keys that sign what kits attest (%ATTESTTOKEN, %KEYGEN): a PEM or DER file, or a
    folder of them. A kit whose signature is by none of them is refused; "" checks none."""
    registration: Literal["public-key", "onboard", "claim", "none"] = "public-key"
    firmware_types: tuple[str, ...] = ("APP", "MODEM")
    tags: tuple[str, ...] = ()
    sub_type: str = ""
    slots: dict[str, str] = {}
    """USB place -> the operator's name for it."""
    limits: BoardLimits = BoardLimits()
    on_board: tuple[str, ...] = ()
    """Program and arguments that are given the record of each run, as JSON on standard input."""
    on_board_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0


class MetricsSettings(Section, frozen=True):
    """Prometheus metrics, on loopback."""

    listen: str = ""


class Profile(Section, frozen=True):
    """One profile: what `--profile NAME` selects."""

    hosts: HostSettings = HostSettings()
    account: AccountSettings = AccountSettings()
    credentials: CredentialSettings = CredentialSettings()
    kit: KitSettings = KitSettings()
    """The only kit, or what the kits of `kits` have in common."""
    kits: dict[str, KitSettings] = {}
    location: LocationSettings = LocationSettings()
    fota: FotaSettings = FotaSettings()
    outbox: OutboxSettings = OutboxSettings()
    events: EventSettings = EventSettings()
    provisioning: ProvisioningSettings = ProvisioningSettings()
    metrics: MetricsSettings = MetricsSettings()
