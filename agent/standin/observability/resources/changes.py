"""Creates, changes and removes resources, with the effects on resources that refer to them."""

from __future__ import annotations

from typing import Any

from agent.standin.observability.operations import RequestContext
from agent.standin.observability.project import DEFAULT_COHORT, Project, Record
from agent.standin.observability.refusals import conflict, unknown_reference
from agent.standin.principal import CredentialKind


def create_release(context: RequestContext) -> Record:
    """Create a release without artifacts."""
    project, body = context.project, context.body
    if body["version"] in project.table("releases"):
        raise conflict(f"release {body['version']} already exists")
    record = {**project.release(body["version"]), **_given(body, "revision", "notes")}
    record |= _given(body, "min_version", "extra_info", "must_pass_through")
    project.table("releases").put(body["version"], record)
    return record


def change_release(context: RequestContext, record: Record) -> Record:
    """Change the given fields of a release."""
    names = ("revision", "notes", "extra_info", "must_pass_through")
    return _changed(context, "releases", record["version"], record, *names)


def remove_release(project: Project, record: Record) -> None:
    """Remove a release that no active deployment uses."""
    version = record["version"]
    active = (one for one in project.table("deployments").values() if one["status"] != "aborted")
    if any(one["release"] == version and not one["delta_from"] for one in active):
        raise conflict(f"release {version} is deployed")
    project.table("releases").delete(version)


def create_cohort(context: RequestContext) -> Record:
    """Create a cohort."""
    slug = context.body["slug"]
    if context.project.cohort(slug) is not None:
        raise conflict(f"cohort {slug} already exists")
    return context.project.make_cohort(slug, context.body.get("name") or slug)


def change_cohort(context: RequestContext, record: Record) -> Record:
    """Rename a cohort."""
    return _changed(context, "cohorts", record["slug"], record, "name")


def remove_cohort(project: Project, record: Record) -> None:
    """Remove a cohort, but not the default one, to which its devices move."""
    slug = record["slug"]
    if slug == DEFAULT_COHORT:
        raise conflict("the default cohort stays")
    devices = project.table("devices")
    for serial, device in devices.items():
        if device["cohort"] == slug:
            devices.put(serial, {**device, "cohort": DEFAULT_COHORT, "updated": project.now})
    deployments = project.table("deployments")
    for key, deployment in deployments.items():
        if deployment["cohort"] == slug:
            deployments.delete(key)
    project.table("cohorts").delete(slug)


def create_device(context: RequestContext) -> Record:
    """Create a device before it sends anything."""
    project, body = context.project, context.body
    serial = body["device_serial"]
    if serial in project.table("devices"):
        raise conflict(f"device {serial} already exists")
    _require_cohort(project, body)
    record = project.device(serial, body["hardware_version"])
    record = {**record, **_given(body, "owner_ref", "nickname", "description", "cohort")}
    project.table("devices").put(serial, record)
    return record


def change_device(context: RequestContext, record: Record) -> Record:
    """Change the given fields of a device."""
    _require_cohort(context.project, context.body)
    names = ("hardware_version", "owner_ref", "nickname", "description", "cohort")
    return _changed(context, "devices", record["device_serial"], record, *names)


def remove_device(project: Project, record: Record) -> None:
    """Remove a device; the data that it sent remains."""
    project.table("devices").delete(record["device_serial"])


def create_deployment(context: RequestContext) -> Record:
    """Deploy a release to a cohort; an earlier deployment of the same release there is aborted."""
    project, body, principal = context.project, context.body, context.principal
    # A delta release is named by both its versions.
    pair = body["release"] if isinstance(body["release"], list) else ["", body["release"]]
    named = {"delta_from": pair[0], "release": pair[1], "cohort": body["cohort"]}
    if release_of(project, named) is None:
        raise unknown_reference("release", "This release")
    if project.cohort(body["cohort"]) is None:
        raise unknown_reference("cohort", "This cohort")
    kind = body.get("type", "normal")
    percent = body.get("rollout_percent", 100) if kind == "staged_rollout" else 100
    table = project.table("deployments")
    for key, other in table.items():
        if named.items() <= other.items() and other["status"] != "aborted":
            table.put(key, {**other, "status": "aborted"})
    number = project.next_id("deployments")
    record = {
        "id": number,
        "type": kind,
        "status": "done" if percent == 100 else "in_progress",
        **named,
        "deployer": {"email": principal.email} if principal.kind is CredentialKind.BASIC else None,
        "rollout_percent": percent,
        "deployed": project.now,
        "extra_info": body.get("extra_info"),
    }
    table.put(str(number), record)
    return record


def release_of(project: Project, deployment: Record) -> Record | None:
    """Return the full or delta release of a deployment."""
    release: Record | None
    if deployment["delta_from"]:
        key = f"{deployment['delta_from']}/{deployment['release']}"
        release = project.table("delta-releases").get(key)
    else:
        release = project.table("releases").get(deployment["release"])
    return release


def change_deployment(context: RequestContext, record: Record) -> Record:
    """Change the percentage of a rollout."""
    percent = context.body.get("rollout_percent", record["rollout_percent"])
    if record["status"] == "aborted":
        raise conflict("the deployment was aborted")
    changed = {
        **record,
        "rollout_percent": percent,
        "status": "done" if percent == 100 else "in_progress",
    }
    context.project.table("deployments").put(str(record["id"]), changed)
    return changed


def abort_deployment(project: Project, record: Record) -> None:
    """Abort a deployment; its record remains."""
    project.table("deployments").put(str(record["id"]), {**record, "status": "aborted"})


def change_issue(context: RequestContext, record: Record) -> Record:
    """Change the status or the title of an issue."""
    changed = {**record, **_given(context.body, "status", "title")}
    context.project.table("issues").put(str(record["id"]), changed)
    return changed


def put_device_in_cohort(context: RequestContext, serial: str, slug: str) -> Record:
    """Move a device to a cohort."""
    project = context.project
    devices = project.table("devices")
    record = {**devices.get(serial), "cohort": slug, "updated": project.now}
    devices.put(serial, record)
    return record


def _given(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


def _changed(context: RequestContext, table: str, key: str, record: Record, *names: str) -> Record:
    changed = {**record, **_given(context.body, *names), "updated": context.project.now}
    context.project.table(table).put(key, changed)
    return changed


def _require_cohort(project: Project, body: dict[str, Any]) -> None:
    if "cohort" in body and project.cohort(body["cohort"]) is None:
        raise unknown_reference("cohort", "This cohort")
