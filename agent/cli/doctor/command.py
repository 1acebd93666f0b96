"""`cellagent doctor`: from the profile to the cloud in one go, and a report of it."""

import asyncio
import platform
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

import agent
from agent.cli.doctor import checks
from agent.cli.doctor.checks import Checks, Line
from agent.cli.framework.command import agent_command, emit, json_line, note, say
from agent.cli.framework.file_type import OUTPUT_FILE
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import say_marked, waiting
from agent.errors import AgentError
from agent.files.paths import named_path
from agent.redact import redact
from at.protocol.errors import AtError

_EACH_S = 45.0
"""The longest that a group of checks may take: a modem has ten seconds to tell its causes."""


@agent_command("cellagent doctor --report doctor.zip")
@click.option(
    "--report",
    type=OUTPUT_FILE,
    metavar="FILE.zip",
    help="Write all of it to a file without secrets and identities, fit for a public issue.",
)
async def command(session: Session, report: Path | None) -> int:
    """Look at everything from the profile to the cloud, and name the next command for each.

    Changes nothing. Files, hosts, kit and the running agent are looked at side by side, each for
    at most 45 seconds. Exits with 1 if anything fails.
    """
    groups = {
        "profile": checks.look_at_profile,
        "services": checks.look_at_services,
        "kit": checks.look_at_kit,
        "agent": checks.look_at_agent,
        "outbox": checks.look_at_outbox,
    }
    works = [
        asyncio.ensure_future(_bounded(name, partial(groups[name], session))) for name in groups
    ]
    lines: list[Line] = []
    try:
        for work in works:
            async with waiting("looking", session):
                group = await work
            for found in group:
                line = replace(found, next=_one_step(found.next, session))
                if line.says in {told.says for told in lines if told.state == "fail"}:
                    continue  # a profile that cannot be read ends each group
                lines.append(line)
                _show(session, line)
    finally:
        for work in works:
            work.cancel()
    if report is not None:
        _write_report(report, session, lines)
        note(f"written to {report}: without secrets and identities; read it before it is sent")
    return AgentError.exit_code if any(line.state == "fail" for line in lines) else 0


def _one_step(step: str, session: Session) -> str:
    """Return a hint with port and profile in its commands.

    One that begins with a command is that command, unless something has to be done after it.
    """
    step = pasteable_hint(step, "", session)
    command = re.match(r"`([^`]+)`(?!.*\bthen\b)", step)
    return command[1] if command else step


def _show(session: Session, line: Line) -> None:
    if session.json:
        emit(asdict(line) | {"next": line.next or None})
        return
    mark = {"ok": "ok", "warn": "!", "fail": "NO"}[line.state]
    say_marked(f"{mark:2}  {line.check:16} {redact(line.says)}")
    if line.next:
        say(f"      try: {redact(line.next)}")


async def _bounded(name: str, looking: Callable[[], Checks]) -> list[Line]:
    """Return the lines of one group; what ends it early is a line, too."""
    lines: list[Line] = []
    try:
        async with asyncio.timeout(_EACH_S), aclosing(looking()) as found:
            async for line in found:
                lines.append(line)  # noqa: PERF401 - what came before a failure counts
    except TimeoutError:
        says = f"no end after {_EACH_S:.0f} s: the rest was not seen"
        lines.append(Line(name, "fail", says, "`cellagent doctor`"))
    except (AgentError, AtError, OSError) as error:
        lines.append(checks.failed(name, error))
    return lines


_IDENTITY = re.compile(
    r"(?<!\d)\d{9,20}(?!\d)"  # IMEI, IMSI, ICCID, the number of a board
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|(?<=//)[^/\s]+(?=@)"  # a user, and a password, in a URL
    r"|[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<=serial:)\w+"
    r"|(?<=/by-id/)[^\s,'\"`]+"  # with the same number, which a Thingy:91 X has in hex
)


def _write_report(file: Path, session: Session, lines: list[Line]) -> None:
    """Write what was seen, the versions and the profile to a zip, without what names anyone."""
    from agent.files.private_files import output_file

    named = sorted(filter(None, _named(session)), key=len, reverse=True)
    names = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in named))

    def public(row: Mapping[str, object]) -> str:
        # The names of keys and states stay: somebody may be called "ok".
        hidden = {
            key: _IDENTITY.sub(_LEFT_OUT, names.sub(_LEFT_OUT, redact(str(value))))
            for key, value in row.items()
            if key in _FREE_TEXT
        }
        return json_line({**row, **hidden})

    versions = {
        "cellagent": agent.__version__,
        "python": sys.version,
        "system": platform.platform(),
    }
    contents = {
        "doctor.jsonl": "".join(public(asdict(line)) for line in lines),
        "versions.json": public(versions),
        "profile.jsonl": "".join(map(public, _profile_lines(session))),
    }
    with (
        output_file(file, private=True) as written,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in contents.items():
            # Paths may have any bytes, and JSON has an escape for these.
            archive.writestr(name, text.encode(errors="backslashreplace"))


_LEFT_OUT = "[left out]"
_FREE_TEXT = {"says", "next", "value", "key", "system"}
_PROGRAMS = ("fota.command", "provisioning.on_board")
"""Keys whose arguments may be anything."""


def _profile_lines(session: Session) -> Iterator[dict[str, object]]:
    from agent.config.parse import leaves

    with suppress(AgentError):
        configuration = session.configuration
        for key, value in leaves(configuration.profile):
            if (origin := configuration.origins[key]).kind != "default":
                shown = _LEFT_OUT if key in _PROGRAMS else value
                yield {"key": key, "value": shown, "from": origin.kind}


def _named(session: Session) -> Iterator[str]:
    """Yield what names this user, this host, the account and the kits."""
    home = named_path("~")
    yield from (str(home), home.name)
    yield platform.node()
    with suppress(AgentError):
        profile = session.configuration.profile
        account, bench = profile.account, profile.provisioning
        yield from (account.organization, account.project, account.team_id, account.email)
        yield from (bench.station, bench.lot, bench.product, *bench.slots.values(), *bench.slots)
        yield from bench.tags
        yield from profile.kits
        for kit in (profile.kit, *profile.kits.values()):
            yield from (kit.device_id, kit.slot)
