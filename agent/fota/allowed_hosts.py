"""Checks the hosts that an image may come from, in a job or a redirect. No I/O.

The author of a job chooses what is fetched from inside our network. So the host must be in the
profile's list, besides the rule for every download (`agent.http.download_targets`).
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from agent.config.urls import is_loopback
from agent.http.download_targets import SourceRefused, Target, base_of, plain_target

# What RFC 3986 allows in a path, and "*", which bundle ids hold and the service wants untouched.
_PATH_SAFE = "/*!$&'()+,;=:@-._~%"


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The profile's hosts. `stand_in`: the services are the stand-in, all on loopback."""

    hosts: tuple[str, ...]
    """Host names, each with ":port" where it is not 443."""
    stand_in: bool = False


def job_target(host: str, path: str, allowed: AllowedHosts) -> Target:
    """Return the URL of a job's host and path. Raises SourceRefused.

    The host may carry a scheme and a trailing slash, the path a leading one: seen in the field. A
    path may also be a whole URL: what it names in place of the host has to be allowed as well.
    """
    if path.lower().startswith(("https://", "http://")):
        scheme, _, rest = path.partition("://")
        authority, _, path = rest.partition("/")
        host = f"{scheme}://{authority}"
    base = base_of(host, what="the job's host")
    return checked_target(f"{base}/{_job_path(path)}", allowed)


def checked_target(url: str, allowed: AllowedHosts) -> Target:
    """Return the parts of a URL (a job's, or where a redirect points to). Raises SourceRefused."""
    target = plain_target(url, stand_in=allowed.stand_in)
    loopback = allowed.stand_in and is_loopback(target.host)
    if not loopback and not _listed(target.host, target.port, allowed.hosts):
        every = shlex.quote(",".join([*allowed.hosts, target.authority]))
        raise SourceRefused(
            f"images may not come from {target.host}:{target.port}",
            hint=f"if the host is right: `cellagent config set fota.hosts {every}`",
        )
    return target


def _listed(host: str, port: int, hosts: Iterable[str]) -> bool:
    own = f"[{host}]" if ":" in host else host
    wanted = {f"{own}:{port}", own} if port == 443 else {f"{own}:{port}"}
    return any(entry.strip().lower().removeprefix("https://") in wanted for entry in hosts)


def _job_path(path: str) -> str:
    if any(mark in path for mark in "\\?#") or not path.isprintable():
        raise SourceRefused(f"the job's path {path[:80]!r} holds characters that no path has")
    return quote(path.removeprefix("/"), safe=_PATH_SAFE)
