"""Makes the HTTP client of a configuration, with its credentials."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.auth.bearer import ApiKey, BearerToken, EvaluationToken, OrganizationToken, ServiceToken
from agent.auth.credential import Basic, Credential, Keyring, ModemProjectKey, ProjectKey, secret_of
from agent.call import Host, Scheme
from agent.config.profile import AccountSettings
from agent.config.project import ProjectSlugs
from agent.config.urls import is_loopback_url
from agent.http import HttpClient, HttpTransport
from agent.http.client import KitGate, WhileWaiting, refuse_any_kit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.auth.modem_jwt import AskModem
    from agent.config import Configuration

_PREFERABLE = {
    "api-key": Scheme.API_KEY,
    "device-jwt": Scheme.DEVICE_JWT,
    "service-jwt": Scheme.SERVICE_JWT,
    "evaluation-token": Scheme.EVALUATION_TOKEN,
    "service-token": Scheme.SERVICE_TOKEN,
    "organization-token": Scheme.ORGANIZATION_TOKEN,
    "basic": Scheme.BASIC,
}
_BEARERS: Sequence[type[BearerToken]] = (ApiKey, OrganizationToken, ServiceToken, EvaluationToken)


def connect(
    configuration: Configuration,
    *,
    ask_modem: AskModem | None = None,
    unattended: bool = False,
    kit_gate: KitGate = refuse_any_kit,
    while_waiting: WhileWaiting = lambda _: contextlib.nullcontext(),
) -> HttpClient:
    """Return a client for the services of a configuration; nothing is opened yet.

    `ask_modem` makes the kit's tokens (`AT%JWT`); `unattended` adds the warnings for those who
    are not there to log in again. `kit_gate` is awaited before each call in a kit's name,
    `while_waiting` entered while an answer is waited for. Raises ConfigError.
    """
    profile = configuration.profile
    hosts = {host: getattr(profile.hosts, host.value) for host in Host}
    transport = HttpTransport(ca_file=profile.hosts.ca_file, proxy=profile.hosts.proxy)
    keyring = Keyring(
        _credentials(configuration, ask_modem, unattended=unattended),
        prefer=_PREFERABLE.get(profile.credentials.prefer),
        replacing=dict(_replacing(configuration, unattended=unattended)),
    )
    addresses = {host: _address(configuration, host, unattended=unattended) for host in Host}
    return HttpClient(
        transport,
        hosts,
        keyring,
        kit_gate=kit_gate,
        addresses=addresses,
        project_paths=_project_paths(profile.account),
        while_waiting=while_waiting,
    )


def _project_paths(account: AccountSettings) -> dict[str, str]:
    """Return the paths that a profile names, with its slugs. Raises UsageError without slugs."""
    if not account.project_paths:
        return {}
    prefix = ProjectSlugs(account.organization, account.project).prefix
    return {old: new.replace("{project}", prefix, 1) for old, new in account.project_paths.items()}


def _address(configuration: Configuration, host: Host, *, unattended: bool) -> str:
    """Return where a base URL comes from, and how it is mended."""
    key, quoted = f"hosts.{host.value}", shlex.quote(configuration.name)
    origin = configuration.origins[key]
    where = f" in {configuration.file}" if origin.kind == "file" else f", {origin.kind}"
    mended = f"`cellagent config set {key} URL --profile {quoted}`"
    if origin.kind == "file":
        mended = f"`cellagent config unset {key} --profile {quoted}` takes it out, or {mended}"
    address = f"the address is {key} of profile {configuration.name}{where}"
    url = getattr(configuration.profile.hosts, host.value)
    if is_loopback_url(url) and url.startswith("http://"):
        serve = f"cellagent cloud serve --listen {urlsplit(url).netloc} --write-profile {quoted}"
        mended = f"`{serve}` starts a stand-in there"
        if unattended:  # which has read the keys of the one before
            mended += ", and `cellagent reload` takes its keys"
    elif unattended:  # it was right for months: whoever changes it in an outage has two troubles
        return address
    return f"{address}: {mended}"


def _replacing(configuration: Configuration, *, unattended: bool) -> Iterator[tuple[Scheme, str]]:
    """Yield, by kind, how each secret is replaced that a service may refuse."""
    secrets = configuration.secrets
    names = ((scheme, secret_of(scheme)) for scheme in Scheme)
    for scheme, name in ((Scheme.BASIC, "user_password"), *names):  # the user's key precedes
        if name and (replacing := secrets.replacing(name, unattended=unattended)):
            yield scheme, replacing


def _credentials(
    configuration: Configuration, ask_modem: AskModem | None, *, unattended: bool
) -> Iterator[Credential]:
    profile, secrets = configuration.profile, configuration.secrets
    account, kit = profile.account, profile.kit
    for bearer in _BEARERS:
        if secret := secrets.get(secret_of(bearer.scheme)):
            yield bearer(secret)
    for key in (ProjectKey, ModemProjectKey):
        if secret := secrets.get(secret_of(key.scheme)):
            yield key(secret, header=account.project_key_header)
    for name in ("user_api_key", "user_password"):
        secret = secrets.get(name) if account.email else None
        if secret:
            is_password = name == "user_password"
            yield Basic(account.email, secret, is_password=is_password, unattended=unattended)
            break
    # Key files need cryptography, which is loaded for those who have one.
    if ask_modem is not None:
        from agent.auth.modem_jwt import ModemJwt

        yield ModemJwt(ask_modem, kit.device_id)
    elif kit.device_key_file and (kit.device_id or not profile.kits):
        # Where none of several kits is chosen, it is nobody's.
        from agent.auth.key_files import DeviceKey

        yield DeviceKey(kit.device_key_file, kit.device_id)
    if profile.credentials.service_key_files:
        from agent.auth.key_files import ServiceKeys

        yield ServiceKeys(profile.credentials.service_key_files, account.team_id)
