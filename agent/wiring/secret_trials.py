"""Which secrets of a profile the services accept: each tried alone, by a call that only reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.call import Call
from agent.cloud.account import FetchAccount
from agent.config import Configuration
from agent.config.profile import CredentialSettings, Profile
from agent.config.secrets import SECRETS, Secrets
from agent.errors import ConfigError, NotFound, ServiceRefusal
from agent.observability.api.client import FetchLatestRelease, FetchMe
from agent.observability.api.kinds import KINDS, Scope
from agent.observability.api.resources import FetchResource
from agent.retry import DEFAULT_RETRIES, RetryPolicy
from agent.wiring.service_client import connect


@dataclass(frozen=True, slots=True)
class Trial:
    """The host that a secret is for, a key of `hosts`, and the commands that it opens."""

    host: str
    opens: tuple[str, ...]


TRIALS: Mapping[str, Trial] = {
    "api_key": Trial("device_cloud", ("device list", "fota check", "provision run")),
    "organization_token": Trial("api", ("locate", "observe cohort list", "report file")),
    "project_key": Trial("api", ("report event", "run")),
    "user_api_key": Trial("api", ("observe whoami",)),
    "user_password": Trial("api", ("observe whoami",)),
}
"""The secrets that can be tried. The location services take the others, and bill each call."""


async def try_secret(
    configuration: Configuration, name: str, value: str, retries: RetryPolicy = DEFAULT_RETRIES
) -> None:
    """Send one call with this secret and no other.

    Raises Unauthorized, Forbidden, Unavailable, ConfigError where the profile lacks what it needs.
    """
    profile = configuration.profile
    call = _call(profile, name)
    alone = msgspec.structs.replace(
        configuration,
        profile=msgspec.structs.replace(profile, credentials=CredentialSettings()),
        secrets=Secrets(
            configuration.name, Path("/dev/null/none"), environ={SECRETS[name].variable: value}
        ),
    )
    async with connect(alone) as client:
        try:
            await client.send(call, retries=retries)
        except NotFound:
            if name == "organization_token":
                raise  # the organization of the profile is not one that the token opens
        except ServiceRefusal:
            if name != "project_key":
                raise  # it was accepted: only the device that it asks for is made up


def _call(profile: Profile, name: str) -> Call[object]:
    account = profile.account
    if not getattr(profile.hosts, TRIALS[name].host):
        raise ConfigError(
            f"the profile names no hosts.{TRIALS[name].host}",
            hint="`cellagent config use public` takes that of the public services",
        )
    if name == "api_key":
        return FetchAccount()
    if name == "organization_token":
        if not account.organization:
            raise ConfigError(
                "an organization token needs account.organization",
                hint="`cellagent config set account.organization SLUG`",
            )
        return FetchResource(KINDS["organization"], Scope(), account.organization)
    if name == "project_key":
        return FetchLatestRelease("cellagent-login", "none", "none")
    if not account.email:
        raise ConfigError(
            f"{name} needs account.email", hint="`cellagent config set account.email ADDRESS`"
        )
    return FetchMe()
