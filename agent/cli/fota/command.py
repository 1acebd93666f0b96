"""`cellagent fota`: the pending update of the kit: check, pull, status, abandon; to offer one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import click

from agent.cli.fota.offer import offer
from agent.cli.fota.progress import ProgressOnStderr
from agent.cli.framework.command import AgentGroup, emit, emit_or_say, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.terminal import ask
from agent.errors import AgentError, RefusedByRule, with_hint
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, JobsHeld, Journal, journal_folder
from at.protocol.counts import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent.cli.framework.session import Session
    from agent.fota.reporter import UpdateObserver
    from agent.fota.runner import UpdatePlan, UpdateRunner
    from at.driver.modem import Modem
    from at.firmware_gate import FirmwareVerdict

_LOOK_S = 0.5
_PATIENCE_S = 5.0  # a look for jobs is over in a moment


@click.group(cls=AgentGroup, name="fota")
def command() -> None:
    """Carry out the update that a service has for the kit, and report its result."""


command.add_command(offer)


@command.command(epilog="Example: cellagent fota check --port /dev/ttyACM0")
async def check(session: Session) -> int:
    """Show the pending job and whether it would be taken; nothing is changed or reported."""
    return await _check(session)


@command.command(epilog="Example: cellagent fota pull --port /dev/ttyACM0 --json")
@click.option("--dry-run", is_flag=True, help="Decide and say, but download and report nothing.")
@click.option("--again", is_flag=True, help="Also a release that the kit did not keep.")
async def pull(session: Session, dry_run: bool, again: bool) -> int:
    """Carry the pending job to its end, or go on with the one that was begun.

    Exit code 4 where the job was refused by a rule, 1 where it failed.
    """
    if dry_run:
        return await _check(session, again=again)
    progress = ProgressOnStderr()
    try:
        result = await _pull(session, progress, again=again)
    except AgentError:
        if progress.result is not None:  # it ended, and only its report failed
            note(_in_words(progress.result, session))
        raise
    if session.json:
        emit(_result_object(result, session))
    elif result is None:
        say("no job is pending")
    else:
        say(_in_words(result, session))
    return _exit_code(result)


@command.command(epilog="Example: cellagent fota status --json")
@click.option("--device-id", metavar="ID", help="Of which device; else of all that had jobs.")
def status(session: Session, device_id: str | None) -> None:
    """Show the job in work and the last results, from the journal on this host."""
    from urllib.parse import unquote

    state_dir = session.configuration.state_dir
    if device_id is not None:
        folders = [journal_folder(state_dir, device_id)]
    else:
        folders = sorted(path for path in (state_dir / "fota").glob("*") if path.is_dir())
    for folder in folders:
        _show(session, unquote(folder.name), folder)
    if not folders and not session.json:
        say("no update was carried out from this host")


@command.command(epilog='Example: cellagent fota abandon --reason "wrong image" --yes')
@click.option(
    "--reason", default="given up by the operator", show_default=True, help="As it is reported."
)
@click.option("--yes", is_flag=True, help="Do not ask, whatever the kit may be in the middle of.")
async def abandon(session: Session, reason: str, yes: bool) -> None:
    """Give up the job in work and report it FAILED (REJECTED if it was only just taken)."""
    async with _runner(session) as runner:
        opened = runner.journal.open_job
        if opened is not None:
            ask(f"Give up job {opened.job_id} ({opened.step.value})?", yes=yes)
        result = await runner.abandon(reason)
    emit_or_say(
        session,
        _result_object(result, session),
        "no job is in work" if result is None else f"{result.job_id}: {result.status.value}",
    )


def _in_words(result: JobResult, session: Session) -> str:
    text = f"{result.job_id}: {result.status.value}: {result.detail}"
    return with_hint(text, pasteable_hint(result.hint, "", session))


async def _pull(session: Session, observer: UpdateObserver, *, again: bool) -> JobResult | None:
    """Carry the pending job to its end, over the links that an install takes: it restarts the kit.

    Raises as `UpdateRunner.pull` does.
    """
    from agent.fota.kit_state import AWAY_S
    from at.protocol.errors import LinkLost, NoAnswer, PortError

    awaited_until = 0.0
    while True:
        try:
            async with _runner(session, observer, again=again) as runner:
                try:
                    return await runner.pull()
                except asyncio.CancelledError:
                    if runner.journal.open_job is not None:
                        session.goes_on = (
                            "`cellagent fota pull` goes on with the job, "
                            "`cellagent fota abandon` gives it up"
                        )
                    raise
                except LinkLost:
                    if runner.journal.step.in_install and not awaited_until:
                        note("the kit is away: waiting until its port is back")
                        awaited_until = time.monotonic() + AWAY_S
                    raise
        except (LinkLost, PortError, NoAnswer):
            if time.monotonic() >= awaited_until:
                raise
            await asyncio.sleep(_LOOK_S)


async def _check(session: Session, *, again: bool = False) -> int:
    async with _runner(session, again=again) as runner:
        plan = await runner.plan()
    if session.json:
        emit(_plan_object(plan, session))
    elif plan is None:
        say("no job is pending")
    else:
        _say_plan(plan, session)
    return RefusedByRule.exit_code if plan is not None and plan.refusal else 0


@contextlib.asynccontextmanager
async def _runner(
    session: Session, observer: UpdateObserver | None = None, *, again: bool = False
) -> AsyncIterator[UpdateRunner]:
    """Make the FOTA runner of the chosen kit, and close what it uses at the end."""
    from agent.daemon.kit.store import names_of
    from agent.wiring.update_runner import (
        needs_modem,
        owed_bytes,
        require_installer,
        runner_with_own_client,
    )
    from at.firmware_gate import read_verdict

    require_installer(session.profile)
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        async with contextlib.AsyncExitStack() as stack:
            modem: Modem | None = None
            if needs_modem(session.profile):
                owed = owed_bytes(session.configuration.state_dir, session.kit.device_id)
                modem = await stack.enter_async_context(session.modem(owed_bytes=owed))

            async def ask_verdict(modem: Modem | None = modem) -> FirmwareVerdict:
                if modem is not None:
                    return await read_verdict(modem)
                return await session.firmware_verdict()  # and closed: MCUboot may be on that port

            try:
                runner = await stack.enter_async_context(
                    runner_with_own_client(
                        session.configuration,
                        modem,
                        ask_verdict,
                        observer,
                        names=partial(
                            names_of, session.configuration.state_dir, session.configuration.name
                        ),
                        again=again,
                    )
                )
            except JobsHeld:
                if time.monotonic() >= give_up_at:
                    raise
            else:
                yield runner
                return
        # The agent that looks for jobs needs the modem for it, which is given back by now.
        await asyncio.sleep(_LOOK_S)


def _exit_code(result: JobResult | None) -> int:
    if result is None or result.status in {JobStatus.SUCCEEDED, JobStatus.CANCELLED}:
        return 0
    rejected = result.status is JobStatus.REJECTED
    return (RefusedByRule if rejected else AgentError).exit_code


def _result_object(result: JobResult | None, session: Session) -> dict[str, object]:
    if result is None:
        return {"job": None}
    return {
        "job": result.job_id,
        "status": result.status.value,
        "detail": result.detail,
        "proof": result.proof,
        "at": result.at,
        "delivered": result.delivered,
        "try": pasteable_hint(result.hint, "", session) or None,
    }


def _plan_object(plan: UpdatePlan | None, session: Session) -> dict[str, object]:
    if plan is None:
        return {"job": None}
    job = plan.job
    return {
        "job": plan.execution.job_id,
        "status": plan.execution.status.value,
        "firmware_type": job.kind.value if job else None,
        "version": job.version if job else None,
        "size_bytes": (job.size_bytes or None) if job else None,
        "urls": [target.shown for target in plan.targets],
        "running": plan.running or None,
        "must_be": plan.needed or None,
        "take": not plan.refusal,
        "reason": plan.refusal or None,
        "try": pasteable_hint(plan.hint, "", session) or None,
    }


def _say_plan(plan: UpdatePlan, session: Session) -> None:
    job = plan.job
    say(f"job      {plan.execution.job_id} ({plan.execution.status.value})")
    if job is not None:
        size = f"{job.size_bytes} bytes" if job.size_bytes else "size not declared"
        say(f"image    {job.kind.value} {job.version or '(no version)'}, {size}")
        for target in plan.targets:
            say(f"from     {target.shown}")
        say(f"running  {plan.running or 'not known'}")
        say(f"must be  {plan.needed}")
    if plan.refusal:
        hint = pasteable_hint(plan.hint, "", session)
        say(with_hint(f"would be refused: {plan.refusal}", hint))
    else:
        say("would be taken")


def _show(session: Session, device_id: str, folder: Path) -> None:
    if not (folder / "journal.json").exists():
        emit_or_say(
            session,
            {"device_id": device_id, "open": None, "results": []},
            f"{device_id}: no update was carried out from this host",
        )
        return
    journal = Journal(folder)
    opened = journal.open_job
    if session.json:
        emit(
            {
                "device_id": device_id,
                "open": None
                if opened is None
                else {
                    "job": opened.job_id,
                    "step": opened.step.value,
                    "reported": opened.reported.value,
                    "proof": opened.proof or None,
                    "version": opened.version or None,
                    "running_before": opened.running_before or None,
                    "bytes": _downloaded_bytes(journal),
                },
                "results": [_result_object(result, session) for result in journal.results],
            }
        )
        return
    say(f"{device_id}:")
    if opened is None:
        say("  no job in work")
    else:
        here = counted(_downloaded_bytes(journal), "bytes")
        say(f"  job {opened.job_id}: {opened.step.value}, {here} here")
        if opened.proof:
            say(f"    {opened.proof}")
    for result in journal.results[-5:]:
        unreported = "" if result.delivered else " (not yet reported)"
        say(f"  {result.at}  {result.job_id}  {result.status.value}{unreported}")
        say(f"    {result.detail}")
        if hint := pasteable_hint(result.hint, "", session):
            say(f"    try: {hint}")


def _downloaded_bytes(journal: Journal) -> int:
    return sum(path.stat().st_size for path in journal.folder.glob("image-*.bin"))
