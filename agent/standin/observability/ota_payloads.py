"""Committing the payload of an update: a whole release, or a step from one version to another.

Table `releases`: version -> release; `delta-releases`: "from/to" -> the same form with
`delta_from`, which is also its `min_version`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.observability.push import accepted
from agent.standin.observability.refusals import ObservabilityRefused

if TYPE_CHECKING:
    from starlette.responses import Response

    from agent.standin.observability.exchange import Exchange
    from agent.standin.observability.project import Project, Record
    from agent.standin.observability.upload_kinds import Kind

_OF_THE_ARTIFACT = (
    "extra_info",
    "firmware_type",
    "component_version",
    "component_base_version",
)
"""Words of the commit that are shown with the artifact, where they were said."""


def commit_release(exchange: Exchange, _kind: Kind, found: Record) -> Response:
    """Add a payload to its release, which is made where there is none."""
    body, project = exchange.body, exchange.project
    software = body["software_version"]
    table, key, release = _release(project, software["version"])
    artifact = _artifact(project, body, found)
    if any(_place(other) == _place(artifact) for other in release["artifacts"]):
        raise ObservabilityRefused(409, "this release has such an artifact already")
    changed = {**release, "artifacts": [*release["artifacts"], artifact], "updated": project.now}
    changed |= {name: body[name] for name in ("notes", "extra_info") if name in body}
    changed["revision"] = software.get("revision") or release["revision"]
    changed["must_pass_through"] = bool(body.get("must_pass_through"))
    project.table(table).put(key, changed)
    return accepted(exchange)


def _release(project: Project, version: str | list[str]) -> tuple[str, str, Record]:
    """Return table, key and record of the release that a version, or a pair of them, names."""
    delta_from, target = version if isinstance(version, list) else ("", version)
    if not isinstance(version, list):
        return "releases", target, project.release(target)
    key = f"{delta_from}/{target}"
    known: Record | None = project.table("delta-releases").get(key)
    return "delta-releases", key, known or project.new_release(target, delta_from)


def _artifact(project: Project, body: dict[str, Any], found: Record) -> Record:
    return {
        "id": project.next_id("artifacts"),
        "type": "firmware",
        "hardware_version": body["hardware_version"],
        "software_type": body["software_version"]["software_type"],
        "build_id": None,
        "filename": found["name"],
        "blob": found["blob"],
        "md5": found["md5"],
        "size": found["size"],
        "created": project.now,
        "more": {name: body[name] for name in _OF_THE_ARTIFACT if body.get(name) is not None},
    }


def _place(artifact: Record) -> tuple[Any, ...]:
    """Return what a release holds once."""
    more = artifact.get("more", {})
    return (
        artifact["hardware_version"],
        artifact["software_type"],
        more.get("component_base_version"),
        more.get("firmware_type"),
    )
