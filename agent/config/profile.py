"""The schema of a profile: its sections and keys, with their defaults. Every key is optional.

What stands below a key is its row in the reference, where an `Example:` at its end is shown apart.
Secrets have no key here: they come from the environment, a 0600 file, systemd credentials or a
keyring (`agent.config.secrets`).
"""

from typing import Annotated, Literal

import msgspec

from agent.config import value_types
from at.protocol.dialect import DialectName


class Section(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base of every section: unknown keys are refused, values do not change after loading."""


class HostSettings(Section, frozen=True):
    """URLs of the services (clauses D1.1, O1.4)."""

    device_cloud: value_types.ServiceUrl = ""
    """The device cloud: devices, messages, jobs, locations. Example: https://cloud.example.com"""
    api: value_types.ServiceUrl = ""
    """The observability service's API. Example: https://api.example.com"""
    chunks: value_types.ServiceUrl = ""
    """Where chunks are pushed. Example: https://chunks.example.com"""
    ingress: value_types.ServiceUrl = ""
    """Where events and core dumps are pushed. Example: https://ingress.example.com"""
    files: value_types.ServiceUrl = ""
    """Where symbols and other files are uploaded. Example: https://files.example.com"""
    provisioning: value_types.ServiceUrl = ""
    """Where devices are claimed. Example: https://provisioning.example.com"""
    ca_file: value_types.PemFile = ""
    """A PEM file of CA certificates to trust instead of the system's. Example: ~/company-ca.pem"""
    proxy: value_types.ProxyUrl = ""
    """The only way to a proxy: the environment's proxy variables are not read.
    Example: http://proxy.example.com:3128"""


class AccountSettings(Section, frozen=True):
    """The account at the services: slugs, not secrets."""

    organization: value_types.Slug = ""
    """The slug of the organization. Example: my-org"""
    project: value_types.Slug = ""
    """The slug of the project. Example: my-project"""
    team_id: str = ""
    """The team at the device cloud, which a token of a service key names.
    Example: 5f6a2b18-0c3d-4e5f-8a9b-1c2d3e4f5a6b"""
    email: value_types.EmailAddress = ""
    """Whose `user_api_key` or `user_password` it is. Example: me@example.com"""
    project_paths: dict[str, value_types.PathInProject] = {}
    """Paths of devices that the service has by organization and project, which take an organization
    auth token: what such a path begins with, and what it begins with there, with {project} for
    "/v1/organizations/SLUG/projects/SLUG". None is known here; the service's reference has them.
    Example: {"/v1/devices" = "{project}/devices"}"""
    project_key_header: str = "Service-Project-Key"
    """The header that carries the project key; the real service names it after itself.
    Example: Service-Project-Key"""


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
    device_key_file: value_types.PemFile = ""
    """The older name of `kit.device_key_file`. Example: ~/keys/device.pem"""
    service_key_files: dict[str, value_types.PemFile] = {}
    """Service ("location", "fota", or "all") -> PEM of the key that the cloud made for it.
    Example: {location = "~/keys/location.pem"}"""
    keyring: bool = False
    """Ask the desktop's keyring for what no other source has."""


class KitSettings(Section, frozen=True):
    """One kit: its ports and how to talk to it."""

    port: value_types.PortName = ""
    """The port that answers AT; "" means the only kit that is plugged in.
    Example: serial:1050934568"""
    console_port: value_types.ConsolePort = "auto"
    """auto, same (as the AT port), none, or a port. Example: /dev/ttyACM1"""
    companion_port: value_types.PortName = ""
    """The port of an ESP-AT companion that scans Wi-Fi. Example: /dev/ttyUSB0"""
    dialect: DialectName = "auto"
    """The firmware that takes the command lines; auto finds it out."""
    baud: value_types.Count = 115200
    """Speed of the AT port in bit/s. Example: 1000000"""
    device_id: value_types.DeviceId = ""
    """The id at all services; "" means the one that the state knows, else the modem's UUID.
    Example: nrf-358299840010349"""
    hardware_version: value_types.Version = ""
    """The board; "" means what the kit itself, or its USB identity, says. Example: nrf9161dk"""
    software_type: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,128}$")] = ""
    """The component that prints core dumps; "" means what the kit's own events say.
    Example: main"""
    software_version: value_types.Version = ""
    """Its version, where the kit does not say it: an update does not change it here.
    Example: 1.0.0"""
    keep_online: value_types.KeepOnline = "as-found"
    """Which modem `run` turns on again after a restart that was not its own: none, one that was on
    before, or any."""
    settle_s: value_types.NotNegative = 30.0
    """How long after a restart the kit's own firmware has to turn the modem on first."""
    slot: str = ""
    """The bench operator's name for the place on the hub. Example: A1"""
    mcuboot_port: value_types.PortName = ""
    """The port on which the application or the boot loader speaks SMP. Example: /dev/ttyACM1"""
    device_key_file: value_types.PemFile = ""
    """PEM of a P-256 key held by this host, for a device whose modem does not sign; `run` has
    the modem sign all the same.
    Example: ~/keys/device.pem"""


OF_ONE_KIT = (
    "console_port",
    "companion_port",
    "device_id",
    "hardware_version",
    "software_type",
    "software_version",
    "slot",
    "mcuboot_port",
    "device_key_file",
)
"""The keys of `kit` that are right for the kit on its `port` alone."""

OLDER_SECTIONS = {"mcuboot_port": "fota", "device_key_file": "credentials"}
"""A key of `kit` -> the section that it was in before each kit had its own."""


class LocationSettings(Section, frozen=True):
    """How the kit's position is found."""

    interval_s: value_types.NotNegative = 3600.0
    """Time between two positions of `run`; 0 turns them off."""
    by: Literal["host", "module"] = "host"
    """host: this host sends what is heard. module: the kit's own client asks, of an nRF93M1 or of
    Serial Modem 2.0, which this host tells what Wi-Fi it hears."""
    wifi: value_types.WifiSource = "auto"
    """auto, networkmanager, iw, companion, module, none, or file:PATH. An nRF93M1 is a `module`:
    auto takes it to locate, and else this host. Only auto takes the scanners of macOS and Windows,
    which have no word of their own. Example: networkmanager"""
    send_ssid: bool = False
    """Send the names of access points with their addresses."""
    legacy: bool = False
    """Use the deprecated path without organization and project (clause D8.3)."""
    good_enough_m: value_types.NotNegative = 200.0
    """An uncertainty that ends the search for a better source."""


class FotaSettings(Section, frozen=True):
    """Which jobs are carried out, and what an image must prove first."""

    source: Literal["jobs", "releases", "kit"] = "jobs"
    """Where updates of the application come from: the device cloud's jobs, the observability
    service's releases, or what the kit's own cloud client finds, downloads and checks."""
    modem_source: Literal["jobs", "releases", "kit", "none"] = "jobs"
    """The same for the modem's own firmware; whoever takes jobs takes those of every type."""
    modem_hardware_version: value_types.Version = ""
    """The modem's name in the project with its releases; "" means its +CGMM up to the blank.
    Example: nrf91x1"""
    interval_s: value_types.NotNegative = 900.0
    """Time between two looks of `run` for a job; 0 turns them off."""
    quiet_hours: value_types.QuietHours = ""
    """Local time without updates. Example: 22:00-06:00"""
    hosts: tuple[str, ...] = ()
    """Hosts that images may come from. Example: firmware.example.com"""
    require: Literal["", "size-checked", "intact", "verified"] = ""
    """May only raise the default of the image's type."""
    allow_downgrade: bool = False
    """Take an image whose version is below the one that runs."""
    trust_proxy: bool = False
    """Take an image through `hosts.proxy`, which then sees what it fetches."""
    public_key_file: value_types.PemFile = ""
    """PEM of the public key that images must be signed with. Example: ~/keys/app.pub.pem"""
    digests: tuple[value_types.Sha256Hex, ...] = ()
    """SHA-256 digests, in hex, of images that the operator trusts.
    Example: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"""
    installer: Literal["auto", "mcuboot", "serial-modem", "command", "virtual"] = "auto"
    """The way onto the kit; auto: a `command`, else its `mcuboot_port`, else the AT port."""
    mcuboot_port: value_types.PortName = ""
    """The older name of `kit.mcuboot_port`. Example: /dev/ttyACM1"""
    modem_fetches: bool = False
    """The older name of `modem_source = kit`; what `modem_source` says goes before it."""
    command: tuple[str, ...] = ()
    """Program and arguments of an external installer; {image} stands for the path.
    Example: /usr/local/bin/flash,{image}"""
    command_timeout_s: value_types.NotNegative = 600.0
    """How long that program may take."""

    def __post_init__(self) -> None:
        """Read the older name as the one that it has now."""
        if self.modem_fetches and self.modem_source == "jobs":
            msgspec.structs.force_setattr(self, "modem_source", "kit")


class OutboxSettings(Section, frozen=True):
    """How much is kept for delivery, how long, and which way it leaves."""

    through: Literal["host", "kit"] = "host"
    """host: over this host's network. kit: `run` gives a kit its own chunks, which its own cloud
    client sends; events and core dumps go by the host."""
    max_bytes: value_types.Count = 50 * 1024 * 1024
    """How much may wait; beyond it nothing more is taken."""
    max_items: value_types.Count = 100_000
    """How many items may wait."""
    max_age_s: value_types.NotNegative = 7 * 86400.0
    """What is older is dropped, and counted."""
    min_free_bytes: Annotated[int, msgspec.Meta(ge=0)] = 10 * 1024 * 1024
    """Free space on the disk below which nothing more is taken."""
    park_after: value_types.Count = 3
    """Permanent refusals after which an item is set aside and the others pass."""


class EventSettings(Section, frozen=True):
    """What `run` itself reports to the observability service about its kits."""

    own: bool = True
    """A trace when a link is lost, a modem restarts, an update ends, a task of the agent fails."""
    heartbeat_s: value_types.NotNegative = 3600.0
    """Time between two heartbeats that count them; 0 turns those off."""


class BoardLimits(Section, frozen=True):
    """What a kit must keep before `provision` writes to it; None reads nothing and asks nothing."""

    supply_min_mv: int | None = None
    """The least supply voltage. Example: 3300"""
    supply_max_mv: int | None = None
    """The most supply voltage. Example: 5500"""
    temperature_min_c: int | None = None
    """The least temperature of the modem. Example: 5"""
    temperature_max_c: int | None = None
    """The most temperature of the modem. Example: 45"""
    rsrp_min_dbm: int | None = None
    """The weakest signal of the serving cell; it needs the radio on. Example: -110"""
    sim_required: bool = False
    """Whether a SIM must answer; it needs the radio on."""

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

    ledger: value_types.LedgerAddress = ""
    """"" means a SQLite file in the state folder; else a postgresql:// URL without password.
    Example: postgresql://bench@db.example.com/boards?sslmode=verify-full"""
    station: str = ""
    """The station's name in the ledger; "" is the host's name. Example: line-3"""
    lot: str = ""
    """Recorded with every run, where `run --lot` says nothing else. Example: L2031"""
    product: str = ""
    """Recorded with every run, where `run --product` says nothing else. Example: tracker-2"""
    security_tag: value_types.SecurityTag = 16842753
    """Where in the modem the credentials are written."""
    ca_chain_file: value_types.PemFile = ""
    """The server's CA chain that is written to the kits. Example: chain.pem"""
    device_ca_file: value_types.PemFile = ""
    """The certificate of the CA that signs the kits' certificates; "" gives them none.
    Example: ca.pem"""
    device_ca_key_file: value_types.PathOrUri = ""
    """Its key: a PEM file, or the pkcs11: URI of a key on a token (extra bench). Example: ca.key"""
    certificate_days: Annotated[int, msgspec.Meta(ge=1, le=36500)] = 3650
    """How long a board's certificate holds; it never outlives the CA that signs it. Example: 365"""
    attestation_keys: value_types.PathOrUri = ""
    """The public keys that sign what kits attest (%ATTESTTOKEN, %KEYGEN): a PEM or DER file, or a
    folder of them. A kit whose signature is by none of them is refused; "" checks none.
    Example: ~/identity-keys"""
    registration: value_types.Registration = "public-key"
    """How the service gets the kits' keys: `provisioning` of the how-tos compares the ways."""
    into: Literal["team", "project"] = "team"
    """team: with the API key. project: with an organization auth token, into `account.project`;
    then kits of the nRF91 come by `onboard` (with a certificate) or `attestation`."""
    firmware_types: tuple[str, ...] = ("APP", "MODEM")
    """What `onboard` says that the device can be updated with. Example: APP,MODEM,BOOT"""
    tags: tuple[value_types.DeviceTag, ...] = ()
    """The tags that `onboard` gives the device. Example: bench,line-3"""
    sub_type: str = ""
    """The sub-type that `onboard` gives the device. Example: tracker"""
    slots: dict[str, str] = {}
    """USB place -> the operator's name for it. Example: {"1-1.4.1" = "A1"}"""
    tray: value_types.TrayLayout = ""
    """How the slots lie on the table, columns and rows: row by row in the order of `slots`; "": in
    the order of their names. Example: 4x4"""
    label_pattern: str = ""
    """The regular expression of the labels that `run --scan` takes; "" takes any text of at most 64
    characters. Example: [A-Z]{2}[0-9]{6}"""
    limits: BoardLimits = BoardLimits()
    """What each kit must keep, below."""
    on_board: tuple[str, ...] = ()
    """Program and arguments that are given the record of each run, as JSON on standard input.
    Example: ./to-mes.py,--line,3"""
    on_board_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    """How long that program may take for one record."""


class MetricsSettings(Section, frozen=True):
    """Prometheus metrics, on loopback."""

    listen: value_types.LoopbackPlace = ""
    """HOST:PORT of loopback; "" serves none. Example: 127.0.0.1:9464"""


class PageSettings(Section, frozen=True):
    """The live page, in a browser on this host."""

    listen: value_types.PlaceToListen = ""
    """HOST:PORT of loopback; "" serves none unless `run --page` asks. Example: 127.0.0.1:8642"""
    certificate_file: value_types.PemFile = ""
    """A PEM file of a certificate, its chain and its key: the page then may be served to other
    machines, under the names in it, and only encrypted. Example: ~/page.pem"""


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
    page: PageSettings = PageSettings()
