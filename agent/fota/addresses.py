"""Where an image may come from: the job's host and path, or a redirect, by the profile's list.

A job is another's word about what to fetch from inside our network: so beside the rule for every
download (`agent.http.addresses`) the host must be on the profile's list. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent.config.urls import is_loopback
from agent.http.addresses import SourceRefused, base_of, plain_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.http.addresses import Target

# What RFC 3986 allows in a path, and "*", which bundle ids hold and the service wants untouched.
_PATH_SAFE = "/*!$&'()+,;=:@-._~%"


@dataclass(frozen=True, slots=True)
class Sources:
    """The rule of the profile: which hosts, and whether it is the stand-in's (all on loopback)."""

    hosts: tuple[str, ...]
    """Host names, each with ":port" where it is not 443."""
    stand_in: bool = False


def job_target(host: str, path: str, sources: Sources) -> Target:
    """Return the URL of a job's host and path. Raises SourceRefused.

    The host may carry a scheme and a trailing slash, the path a leading one: seen in the field.
    """
    base = base_of(host, what="the job's host")
    return checked_target(f"{base}/{_job_path(path)}", sources)


def checked_target(url: str, sources: Sources) -> Target:
    """Return the parts of a URL (a job's, or where a redirect points to). Raises SourceRefused."""
    target = plain_target(url, stand_in=sources.stand_in)
    loopback = sources.stand_in and is_loopback(target.host)
    if not loopback and not _listed(target.host, target.port, sources.hosts):
        raise SourceRefused(
            f"images may not come from {target.host}:{target.port}",
            hint="if the host is right, add it to fota.hosts of the profile",
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
