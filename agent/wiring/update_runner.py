"""Makes a kit's update runner from its profile, for a command and for the agent's loop.

Its jobs come from the sources that the profile names (`update_sources`). The profile also says
where an image may come from, what it must prove, and how it gets onto the kit.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent.auth.modem_jwt import ask_modem
from agent.call import Scheme
from agent.config import Configuration, Profile
from agent.config.profile import FotaSettings, KitSettings
from agent.config.urls import is_loopback_url
from agent.errors import ConfigError
from agent.extras import require
from agent.files.paths import named_path
from agent.fota.allowed_hosts import AllowedHosts
from agent.fota.download.downloader import Downloader
from agent.fota.download.requests import DownloadNetwork
from agent.fota.installers.base import Installer
from agent.fota.installers.cloud_client import CloudClient, WithCloudClient, cloud_client_of
from agent.fota.installers.serial_modem import PIECE_BYTES, SerialModemInstaller
from agent.fota.jobs import FirmwareType
from agent.fota.journal import Journal, is_installing, journal_folder, sole_worker
from agent.fota.kit_state import KitState, ModemState
from agent.fota.reporter import UpdateObserver
from agent.fota.runner import Planner, UpdateRunner
from agent.fota.signatures import load_public_key
from agent.fota.verification import ProofLevel, TrustPolicy
from agent.http import HttpClient
from agent.observability.ingest.device_identity import PartialIdentity
from agent.wiring.service_client import connect
from agent.wiring.update_sources import (
    AskVerdict,
    DeviceJobs,
    KitUpdates,
    UpdateSources,
    releases_of,
)
from at.device_uuid import read_device_uuid
from at.driver.modem import Modem
from at.ports.process_lock import ProcessLock
from at.ports.usb import same_kit, usb_kit_at
from at.protocol.errors import CommandRejected, ParseError


def owed_bytes(state_dir: Path, device_id: str) -> int:
    """Return how many bytes a silent kit may wait for: an install was killed as it wrote.

    "" for `device_id`: any of the kits that this host updates. Raises JournalDamaged.
    """
    is_cut_off = is_installing(state_dir, device_id)
    return PIECE_BYTES if is_cut_off else 0


async def device_id_of(modem: Modem | None) -> str:
    """Return the modem's UUID, the device's id where the profile names none. Raises ConfigError."""
    if modem is None:
        raise ConfigError(
            "kit.device_id is not set, and no port is there to ask the modem",
            hint="`--port PORT`, or `cellagent config set kit.device_id ID`",
        )
    try:
        return await read_device_uuid(modem)
    except (CommandRejected, ParseError) as untold:
        raise ConfigError(
            "the modem does not tell its UUID",
            hint="`cellagent config set kit.device_id ID` names the device",
        ) from untold


async def _told_id(modem: Modem | None, ask_verdict: AskVerdict) -> str:
    """Return `device_id_of`. Raises FirmwareRefused where the firmware is why there is none."""
    try:
        return await device_id_of(modem)
    except ConfigError:
        (await ask_verdict()).require()
        raise


def allowed_hosts_of(profile: Profile) -> AllowedHosts:
    """Return where images may come from; a device cloud on this machine is the stand-in."""
    return AllowedHosts(
        hosts=profile.fota.hosts, stand_in=is_loopback_url(profile.hosts.device_cloud)
    )


_BY_THE_PROXY = (
    "images do not go by hosts.proxy: `cellagent config set fota.trust_proxy true` takes them by it"
)


def network_of(profile: Profile) -> DownloadNetwork:
    """Return how download hosts are reached: by a proxy only where the profile trusts it."""
    proxy, trusted = profile.hosts.proxy, profile.fota.trust_proxy
    return DownloadNetwork(
        hosts=allowed_hosts_of(profile),
        ca_file=profile.hosts.ca_file,
        proxy=proxy if trusted else "",
        another_way=_BY_THE_PROXY if proxy and not trusted else "",
    )


def trust_of(profile: Profile) -> TrustPolicy:
    """Return what images must prove. Raises UsageError for a key file that holds none."""
    fota = profile.fota
    key_file = fota.public_key_file
    levels = {level.word: level for level in ProofLevel}
    return TrustPolicy(
        require=levels.get(fota.require),
        allow_downgrade=fota.allow_downgrade,
        digests=tuple(digest.lower() for digest in fota.digests),
        key=load_public_key(named_path(key_file)) if key_file else None,
    )


def needs_modem(profile: Profile) -> bool:
    """Return whether the kit's AT port is needed all along: for its id, versions or installer."""
    return (
        _installer_name(profile.fota, profile.kit) != "mcuboot"
        or not profile.kit.device_id
        or bool(profile.kit.port or _kinds_by_kit(profile))
    )


def require_installer(profile: Profile) -> None:
    """Raise MissingExtra where the installer of a kit of the profile needs one."""
    kits = (profile.kit, *profile.kits.values())
    if "mcuboot" in {_installer_name(profile.fota, kit) for kit in kits}:
        require("an installation by MCUboot", "smpclient")


def installer_of(
    profile: Profile, modem: Modem | None, observer: UpdateObserver, lock: ProcessLock | None = None
) -> Installer:
    """Return the installer that the profile names. Raises ConfigError.

    "auto" takes what is configured: a command, else an MCUboot port, else the AT port itself.
    The virtual modem takes images as Serial Modem does. `lock` is that of the kit's jobs.
    """
    fota, kit = profile.fota, profile.kit
    chosen = _installer_name(fota, kit)
    if chosen == "command":
        from agent.fota.installers.command import CommandInstaller

        return CommandInstaller(fota.command, fota.command_timeout_s, modem, lock, kit.port)
    if chosen == "mcuboot":
        port = kit.mcuboot_port
        mended = (
            "`cellagent config set kit.mcuboot_port PORT`, of one of several kits "
            "kits.NAME.mcuboot_port; `cellagent ports` lists the ports"
        )
        if not port:
            raise ConfigError(
                "no mcuboot_port is set for this kit, and MCUboot is to update it", hint=mended
            )
        others = (each for each in profile.kits.values() if each.port != kit.port)
        is_shared = any(each.mcuboot_port == port for each in others)
        may_be_of_another = is_shared or all(map(usb_kit_at, (kit.port, port)))
        if may_be_of_another and not same_kit(kit.port, port):
            raise ConfigError(
                f"kit.mcuboot_port, {port}, is not seen to be a port of the kit on {kit.port}: "
                "another kit would be updated in its place",
                hint=mended,
            )
        from agent.fota.installers.mcuboot import McubootInstaller

        return McubootInstaller(port, kit.baud, observer.overheard)
    if modem is None:
        raise ConfigError("installing over the AT port needs the kit's port", hint="`--port PORT`")
    return SerialModemInstaller(modem)


@asynccontextmanager
async def runner_of_kit(
    profile: Profile,
    state_dir: Path,
    client: HttpClient,
    modem: Modem | None,
    *,
    ask_verdict: AskVerdict,
    observer: UpdateObserver | None,
    names: Callable[[str], PartialIdentity],
    wrap_installer: Callable[[Installer], Installer] = lambda installer: installer,
    link: Callable[[], Awaitable[Modem]] | None = None,
    again: bool = False,
    patience_s: float = 5.0,
) -> AsyncIterator[UpdateRunner]:
    """Yield the runner of the profile's kit, which alone works on its jobs meanwhile.

    `ask_verdict` is asked before the first call, once: an installation that was cut off is ended
    before that, as a kit that is in its boot loader answers nothing. `wrap_installer` returns the
    installer to use in place of the profile's. `link` waits for the modem where another may come
    in the place of `modem`. `names` returns what a device's own events say, for releases; `again`
    tries also one that it did not keep. Raises JobsHeld after `patience_s`, MissingExtra.
    """
    require_installer(profile)
    device_id = profile.kit.device_id or await _told_id(modem, ask_verdict)
    jobs = DeviceJobs(client, device_id, ask_verdict)
    folder = journal_folder(state_dir, device_id)
    async with sole_worker(folder, patience_s) as lock:
        observer = observer or UpdateObserver()
        own_client = _cloud_client(profile, modem, client)
        installer = installer_of(profile, modem, observer, lock)
        if own_client is not None:
            installer = WithCloudClient(installer, own_client)
        installer = wrap_installer(installer)
        planner = Planner(allowed_hosts_of(profile), trust_of(profile), installer, jobs.verdict)
        downloader = Downloader(network_of(profile))
        journal = Journal(folder)
        releases = releases_of(
            profile, device_id, client, modem, installer, journal, names(device_id), again=again
        )
        by_kit = (
            [
                KitUpdates(own_client, kind, device_id, installer, journal, again=again)
                for kind in _kinds_by_kit(profile)
            ]
            if own_client is not None
            else []
        )
        asks_jobs = "jobs" in {profile.fota.source, profile.fota.modem_source}
        runner = UpdateRunner(
            UpdateSources(jobs, [*releases, *by_kit], journal, asks_jobs=asks_jobs),
            journal,
            planner,
            downloader,
            observer=observer,
            state=_state_of(profile, modem, link),
        )
        try:
            yield runner
        finally:
            await runner.close()


@asynccontextmanager
async def runner_with_own_client(
    configuration: Configuration,
    modem: Modem | None,
    ask_verdict: AskVerdict,
    observer: UpdateObserver | None,
    *,
    names: Callable[[str], PartialIdentity] = lambda _device_id: PartialIdentity(),
    again: bool = False,
) -> AsyncIterator[UpdateRunner]:
    """Yield the `runner_of_kit` of a configuration, over a client of its own.

    Raises also ConfigError and AtError, and JobsHeld at once: an agent that looks for jobs may be
    waiting for `modem` meanwhile.
    """
    profile, state_dir = configuration.profile, configuration.state_dir
    ask = None if modem is None else ask_modem(modem, profile.provisioning.security_tag)
    async with (
        connect(configuration, ask_modem=ask) as client,
        runner_of_kit(
            profile,
            state_dir,
            client,
            modem,
            ask_verdict=ask_verdict,
            observer=observer,
            names=names,
            again=again,
            patience_s=0.0,
        ) as runner,
    ):
        yield runner


def _kinds_by_kit(profile: Profile) -> list[FirmwareType]:
    fota = profile.fota
    sources = ((fota.source, FirmwareType.APP), (fota.modem_source, FirmwareType.MODEM))
    return [kind for source, kind in sources if source == "kit"]


def _cloud_client(profile: Profile, modem: Modem | None, client: HttpClient) -> CloudClient | None:
    """Return the kit's own cloud client, None where none is asked. Raises ConfigError."""
    kinds = _kinds_by_kit(profile)
    if not kinds:
        return None
    if modem is None:
        raise ConfigError(
            "fota.source is kit, and no port is there to ask it", hint="`--port PORT`"
        )
    keyring = client.keyring
    own = cloud_client_of(
        modem,
        keyring.project_key(Scheme.PROJECT_KEY),
        keyring.project_key(Scheme.MODEM_PROJECT_KEY),
    )
    if own is None or not set(kinds) <= own.types:
        wanted = " and ".join(kind.value for kind in kinds)
        raise ConfigError(
            f"the kit on {modem.name} has no client that updates {wanted} by itself",
            hint="`cellagent config set fota.source jobs`; Serial Modem 2.0 updates APP and MODEM, "
            "an nRF93M1 MODEM: `cellagent config set fota.modem_source kit`",
        )
    return own


def _state_of(
    profile: Profile, modem: Modem | None, link: Callable[[], Awaitable[Modem]] | None
) -> KitState:
    if modem is None:
        return KitState()

    async def same_modem() -> Modem:
        return modem

    return ModemState(link or same_modem, profile.kit.settle_s)


def _installer_name(fota: FotaSettings, kit: KitSettings) -> str:
    if fota.installer != "auto":
        return fota.installer
    if fota.command:
        return "command"
    return "mcuboot" if kit.mcuboot_port else "serial-modem"
