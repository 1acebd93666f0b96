"""The open job of a kit: its steps in the journal, and how each of them is resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.fota.job_step import JobEvent, JobStep
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob
from at.protocol.state_machine import IllegalTransition
from tests.support.fota.update_scene import scene

TO_THE_KIT = {
    JobEvent.TAKE: JobStep.TAKEN,
    JobEvent.START: JobStep.STARTED,
    JobEvent.PROVE: JobStep.PROVEN,
    JobEvent.INSTALL: JobStep.INSTALLING,
    JobEvent.PLACE: JobStep.INSTALLED,
    JobEvent.CONFIRM: JobStep.CONFIRMING,
}
"""A job that nothing interrupts: events, and the step after each."""
AGAIN = {
    JobStep.PROVEN: (JobEvent.PROVE, JobStep.PROVEN),
    JobStep.INSTALLING: (JobEvent.INSTALL, JobStep.INSTALLING),
    JobStep.CONFIRMING: (JobEvent.CONFIRM, JobStep.CONFIRMING),
}
"""What a restart at a step leads to, beside what comes next."""


def brought_to(folder: Path, step: JobStep) -> Journal:
    """Return a journal whose job has come as far as `step`; each step is read from the disk."""
    for event, after in TO_THE_KIT.items():
        journal = do(Journal(folder), event)
        assert Journal(folder).step is after
        if after is step:
            return journal
    return Journal(folder)


def do(journal: Journal, event: JobEvent) -> Journal:
    """Let an event happen to the open job."""
    if event is JobEvent.TAKE:
        journal.begin(OpenJob(job_id="a", device_id="d", document={}))
    elif event in {JobEvent.END, JobEvent.WITHDRAW}:
        status = JobStatus.FAILED if event is JobEvent.END else JobStatus.CANCELLED
        journal.close(JobResult(job_id="a", status=status, detail="", at=""))
    else:
        journal.advance(event)
    return journal


STEPS = list(TO_THE_KIT.values())
OF_0_1_0 = Path(__file__).parents[2] / "interface" / "written-by-0.1.0"


@pytest.mark.parametrize("step", STEPS)
def test_a_job_ends_at_any_step_and_is_withdrawn_before_its_install_alone(
    tmp_path: Path, step: JobStep
) -> None:
    assert do(brought_to(tmp_path / "ended", step), JobEvent.END).step is JobStep.IDLE
    journal = brought_to(tmp_path / "withdrawn", step)
    if step in {JobStep.INSTALLING, JobStep.INSTALLED, JobStep.CONFIRMING}:
        with pytest.raises(IllegalTransition, match=f"{step.name} does not allow"):
            do(journal, JobEvent.WITHDRAW)
    else:
        assert do(journal, JobEvent.WITHDRAW).step is JobStep.IDLE
    assert step.in_install is (journal.step is not JobStep.IDLE)


@pytest.mark.parametrize("step", [JobStep.IDLE, *STEPS])
def test_no_step_is_left_out_or_done_twice_but_what_a_restart_repeats(
    tmp_path: Path, step: JobStep
) -> None:
    events = list(TO_THE_KIT)
    allowed = dict([AGAIN[step]] if step in AGAIN else [])
    for event in events[STEPS.index(step) + 1 :][:1] if step in STEPS else events[:1]:
        allowed[event] = TO_THE_KIT[event]
    if step is JobStep.INSTALLING:  # what was cut off may run all the same
        allowed[JobEvent.CONFIRM] = JobStep.CONFIRMING
    for event in events:
        folder = tmp_path / event.name
        journal = Journal(folder) if step is JobStep.IDLE else brought_to(folder, step)
        if event in allowed:
            assert do(journal, event).step is allowed[event]
        else:
            with pytest.raises(IllegalTransition):
                do(journal, event)
        assert Journal(folder).step is allowed.get(event, step)


def test_nothing_ends_where_no_job_is_open(tmp_path: Path) -> None:
    for event in (JobEvent.END, JobEvent.WITHDRAW):
        with pytest.raises(IllegalTransition):
            do(Journal(tmp_path), event)


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("offered", [True, False], ids=["offered", "gone"])
async def test_a_job_is_resumed_at_each_step_or_dropped_if_it_is_gone_before_its_install(
    tmp_path: Path, step: JobStep, offered: bool
) -> None:
    def kill() -> None:
        if here.journal.step is step:
            raise Killed

    async with scene(tmp_path) as here:
        with pytest.raises(Killed):
            await here.pull(edge=kill)
        assert here.journal.step is step
        if not offered:
            here.cloud.cancel()
        result = await here.pull()
    assert here.journal.step is JobStep.IDLE
    if offered or step.in_install:
        assert here.kit.installed == [here.server.sha256]
        assert result.status is JobStatus.SUCCEEDED
    else:
        assert (result, here.kit.installed) == (None, [])


@pytest.mark.parametrize("step", STEPS)
def test_a_journal_that_version_0_1_0_wrote_is_read_at_each_step(
    tmp_path: Path, step: JobStep
) -> None:
    document = json.loads((OF_0_1_0 / "fota-open" / "journal.json").read_text())
    document["open_job"]["step"] = step.value
    (tmp_path / "journal.json").write_text(json.dumps(document))
    journal = Journal(tmp_path)
    assert journal.step is step
    assert journal.open_job is not None
    assert journal.open_job.job_id == document["open_job"]["job_id"]
