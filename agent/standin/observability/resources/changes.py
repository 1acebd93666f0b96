"""Creates, changes and removes resources, with the effects on resources that refer to them."""

from typing import TypeVar

from agent.standin.observability import tables
from agent.standin.observability.operations import RequestContext
from agent.standin.observability.project import DEFAULT_COHORT, Project
from agent.standin.observability.refusals import conflict, unknown_reference
from agent.standin.principal import CredentialKind

R = TypeVar("R")


def set_given(context: RequestContext, record: R) -> R:
    """Set the fields of a record that the body has, and return it."""
    for name, value in context.given.items():
        setattr(record, name, value)
    return record


def create_release(context: RequestContext) -> tables.Release:
    """Create a release without artifacts."""
    project, version = context.project, context.body["version"]
    if version in project.table(tables.RELEASES):
        raise conflict(f"release {version} already exists")
    release = set_given(context, project.release(version))
    project.table(tables.RELEASES).put(version, release)
    return release


def require_not_deployed(project: Project, release: tables.Release) -> None:
    """Raise 409 for a release that an active deployment uses."""
    active = (one for one in project.table(tables.DEPLOYMENTS).values() if one.is_active)
    if any(one.release == release.version and not one.delta_from for one in active):
        raise conflict(f"release {release.version} is deployed")


def create_cohort(context: RequestContext) -> tables.Cohort:
    """Create a cohort."""
    slug = context.body["slug"]
    if context.project.cohort(slug) is not None:
        raise conflict(f"cohort {slug} already exists")
    return context.project.make_cohort(slug, context.body.get("name") or slug)


def require_other_than_default(_project: Project, cohort: tables.Cohort) -> None:
    """Raise 409 for the default cohort."""
    if cohort.slug == DEFAULT_COHORT:
        raise conflict("the default cohort stays")


def remove_cohort(project: Project, cohort: tables.Cohort) -> None:
    """Remove a cohort, whose devices move to the default one."""
    for device in project.table(tables.DEVICES).values():
        if device.cohort == cohort.slug:
            put_device_in_cohort(project, device, DEFAULT_COHORT)
    deployments = project.table(tables.DEPLOYMENTS)
    for key, deployment in deployments.items():
        if deployment.cohort == cohort.slug:
            deployments.delete(key)
    project.table(tables.COHORTS).delete(cohort.slug)


def create_device(context: RequestContext) -> tables.ObservedDevice:
    """Create a device before it sends anything."""
    project, serial = context.project, context.body["device_serial"]
    if serial in project.table(tables.DEVICES):
        raise conflict(f"device {serial} already exists")
    require_known(context)
    device = project.device(serial, context.body["hardware_version"])
    project.table(tables.DEVICES).put(serial, set_given(context, device))
    return device


def create_deployment(context: RequestContext) -> tables.Deployment:
    """Deploy a release to a cohort; an earlier deployment of the same release there is aborted."""
    project, body, principal = context.project, context.body, context.principal
    # A delta release is named by both its versions.
    named = body["release"] if isinstance(body["release"], list) else ["", body["release"]]
    delta_from, version = named
    if release_of(project, delta_from, version) is None:
        raise unknown_reference("release", "This release")
    if project.cohort(body["cohort"]) is None:
        raise unknown_reference("cohort", "This cohort")
    kind = body.get("type", "normal")
    percent = body.get("rollout_percent", 100) if kind == "staged_rollout" else 100
    for other in project.table(tables.DEPLOYMENTS).values():
        of_other = (other.delta_from, other.release, other.cohort)
        if of_other == (delta_from, version, body["cohort"]) and other.is_active:
            abort_deployment(project, other)
    deployment = tables.Deployment(
        id=project.next_id("deployments"),
        type=kind,
        status=_status(percent),
        delta_from=delta_from,
        release=version,
        cohort=body["cohort"],
        deployer={"email": principal.email} if principal.kind is CredentialKind.BASIC else None,
        rollout_percent=percent,
        deployed=project.now,
        extra_info=body.get("extra_info"),
    )
    project.table(tables.DEPLOYMENTS).put(str(deployment.id), deployment)
    return deployment


def release_of(project: Project, delta_from: str, version: str) -> tables.Release | None:
    """Return a full release, or a delta release from another version."""
    if delta_from:
        return project.table(tables.DELTA_RELEASES).get(f"{delta_from}/{version}")
    return project.table(tables.RELEASES).get(version)


def change_rollout(context: RequestContext, deployment: tables.Deployment) -> None:
    """Change the status of a deployment with its percentage; 409 for one that was aborted."""
    if not deployment.is_active:
        raise conflict("the deployment was aborted")
    percent = context.body.get("rollout_percent", deployment.rollout_percent)
    deployment.status = _status(percent)


def abort_deployment(project: Project, deployment: tables.Deployment) -> None:
    """Abort a deployment; its record remains."""
    deployment.status = "aborted"
    project.table(tables.DEPLOYMENTS).put(str(deployment.id), deployment)


def put_device_in_cohort(project: Project, device: tables.ObservedDevice, slug: str) -> None:
    """Move a device to a cohort."""
    device.cohort, device.updated = slug, project.now
    project.table(tables.DEVICES).put(device.device_serial, device)


def _status(percent: float) -> str:
    return "done" if percent == 100 else "in_progress"


def require_known(context: RequestContext, _device: tables.ObservedDevice | None = None) -> None:
    """Refuse a cohort or a release that is not there."""
    project, body = context.project, context.body
    if "cohort" in body and project.cohort(body["cohort"]) is None:
        raise unknown_reference("cohort", "This cohort")
    if body.get("release") is not None and body["release"] not in project.table(tables.RELEASES):
        raise unknown_reference("release", "This release")
