"""What would be done with a job, and why not: nothing is changed, reported or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import RefusedByRule
from agent.fota import jobs, verification
from agent.fota.addresses import job_target
from agent.fota.jobs import KitFacts, MalformedJob, Status
from agent.fota.tools import Decided
from agent.http.addresses import SourceRefused

if TYPE_CHECKING:
    from agent.fota.jobs import Execution, Job
    from agent.fota.tools import Tools
    from agent.http.addresses import Target


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done with the pending job, and why. `refusal` is "" where it is taken."""

    execution: Execution
    job: Job | None
    targets: tuple[Target, ...]
    running: str
    refusal: str
    needed: str
    """What the image must prove: size-checked, intact or verified."""


async def plan_for(tools: Tools, offered: Execution) -> Plan:
    """Return the plan of a job. Raises RefusedByRule for the firmware gate, at.AtError."""
    try:
        job = jobs.read_job(offered)
    except MalformedJob as bad:
        return Plan(offered, None, (), "", str(bad), "")
    needed = verification.required_level(job.kind, tools.trust).word
    targets: tuple[Target, ...] = ()
    running = ""
    try:
        await _check_kit(tools, job)
        targets = tuple(job_target(job.host, path, tools.sources) for path in job.paths)
        verification.check_provable(job, tools.trust)
        now = await tools.installer.running(job.kind)
        running = now.version if now else ""
        verification.check_downgrade(job, "", running, tools.trust)
    except Decided as refused:
        return Plan(offered, job, targets, running, refused.detail, needed)
    except (SourceRefused, verification.NotProven) as refused:
        return Plan(offered, job, targets, running, str(refused), needed)
    return Plan(offered, job, targets, running, "", needed)


async def _check_kit(tools: Tools, job: Job) -> None:
    gate = await tools.gate()
    if gate and job.kind not in jobs.MODEM_TYPES:
        # Clause D1.3: nothing is done in such a kit's name; only D1.4's refusal is reported.
        raise RefusedByRule(gate, hint="update the modem's firmware by cable first")
    installer = tools.installer
    facts = KitFacts(installer=installer.name, types=installer.types, gate_refusal=gate)
    reason = jobs.reject_reason(job, facts) or await installer.check(job)
    if reason:
        raise Decided(Status.REJECTED, reason)
