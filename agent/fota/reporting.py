"""What the cloud is told of a job, and asked about it; a report that was lost is sent again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent.errors import ServiceRefusal, Unavailable
from agent.fota import jobs
from agent.fota.jobs import Status
from agent.fota.journal import Result
from agent.fota.tools import JobGone

if TYPE_CHECKING:
    from agent.fota.tools import Tools


async def report(tools: Tools, status: Status, detail: str) -> None:
    """Report a state of the open job. Raises ServiceRefusal, Unavailable."""
    opened = tools.journal.open_job
    assert opened is not None
    jobs.check_transition(opened.reported, status)
    await tools.cloud.report(opened.job_id, status, jobs.detail_text(detail))
    tools.journal.update(reported=status)


async def end(tools: Tools, status: Status, detail: str) -> Result:
    """Put the open job away with its result, then report it; a lost report is sent again."""
    opened = tools.journal.open_job
    assert opened is not None
    jobs.check_transition(opened.reported, status)
    result = Result(
        job_id=opened.job_id,
        status=status,
        detail=jobs.detail_text(detail),
        at=tools.clock.now().isoformat(timespec="seconds"),
        proof=opened.proof,
    )
    tools.journal.close(result)
    tools.observer.stage(f"{status.value}: {result.detail}")
    await deliver(tools)
    return tools.journal.result_of(result.job_id) or result


async def deliver(tools: Tools) -> None:
    """Report the results that the cloud has not acknowledged. Raises Unavailable."""
    for result in tools.journal.results:
        if not result.delivered:
            await _tell(tools, result)
            tools.journal.delivered(result.job_id)


async def report_again(tools: Tools, job_id: str) -> Result | None:
    """Say once more how a job ended that is offered again; it is not done again."""
    result = tools.journal.result_of(job_id)
    if result is None or result.status is Status.CANCELLED:
        return None
    await _tell(tools, result)
    return result


def drop(tools: Tools) -> Result | None:
    """Put the open job away that the cloud took back; None where there is none."""
    opened = tools.journal.open_job
    if opened is None:
        return None
    result = Result(
        job_id=opened.job_id,
        status=Status.CANCELLED,
        detail="the device cloud took the job back; nothing was installed",
        at=tools.clock.now().isoformat(timespec="seconds"),
        delivered=True,
    )
    tools.journal.close(result)
    tools.observer.stage(f"CANCELLED: {result.detail}")
    return result


async def still_ours(tools: Tools) -> None:
    """Raise JobGone if the cloud no longer offers the open job; its silence proves nothing."""
    opened = tools.journal.open_job
    try:
        offered = await tools.cloud.current()
    except Unavailable:
        return
    if offered is None or opened is None or offered.job_id != opened.job_id:
        raise JobGone


async def _tell(tools: Tools, result: Result) -> None:
    with contextlib.suppress(ServiceRefusal):  # deleted or cancelled meanwhile
        await tools.cloud.report(result.job_id, result.status, result.detail)
