"""`cellagent doctor`: from the profile to the cloud in one go, by what other commands look at."""

from __future__ import annotations

import asyncio
import platform
import re
import shlex
import shutil
import sys
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import click

import agent
from agent.cli.framework.command import agent_command, emit, json_line, note, say
from agent.cli.modem.why import with_options
from agent.daemon.status import pasteable
from agent.errors import AgentError
from agent.redact import redact
from at.protocol.errors import AtError, CommandRejected, ParseError

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from agent.config import Configuration

_EACH_S = 45.0
"""The longest that a group of checks may take: a modem has ten seconds to tell its causes."""
_HOST_S = 8.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: what was looked at, how it is, and the next command."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    next: str = ""


Checks = AsyncGenerator[Line, None]


@agent_command("cellagent doctor --report doctor.zip")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.zip",
    help="Write all of it to a file without secrets and identities, fit for a public issue.",
)
async def command(session: Session, report: Path | None) -> int:
    """Look at everything from the profile to the cloud, and name the next command for each.

    Changes nothing. Files, hosts, kit and the running agent are looked at side by side, each for
    at most 45 seconds. Exits with 1 if anything fails.
    """
    groups = {"profile": _here, "services": _services, "kit": _kit, "agent": _running}
    works = [
        asyncio.ensure_future(_bounded(name, partial(groups[name], session))) for name in groups
    ]
    lines: list[Line] = []
    try:
        for work in works:
            for found in await work:
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
    """Return a hint with port and profile in its commands; one that begins with a command is it."""
    step = pasteable(step, session.profile_name or "", session.port or "")
    command = re.match(r"`([^`]+)`", step)
    return command[1] if command else step


def _show(session: Session, line: Line) -> None:
    if session.json:
        emit(asdict(line) | {"next": line.next or None})
        return
    mark = {"ok": "ok", "warn": "!", "fail": "NO"}[line.state]
    say(f"{mark:2}  {line.check:16} {redact(line.says)}")
    if line.next:
        say(f"      try: {redact(line.next)}")


async def _bounded(name: str, checks: Callable[[], Checks]) -> list[Line]:
    """Return the lines of one group; what ends it early is a line, too."""
    lines: list[Line] = []
    try:
        async with asyncio.timeout(_EACH_S), aclosing(checks()) as found:
            async for line in found:
                lines.append(line)  # noqa: PERF401 - what came before a failure counts
    except TimeoutError:
        says = f"no end after {_EACH_S:.0f} s: the rest was not seen"
        lines.append(Line(name, "fail", says, "`cellagent doctor`"))
    except (AgentError, AtError, OSError) as error:
        lines.append(_failed(name, error))
    return lines


def _failed(check: str, error: Exception, state: Literal["warn", "fail"] = "fail") -> Line:
    return Line(check, state, str(error), getattr(error, "hint", "") or "`cellagent config path`")


async def _here(session: Session) -> Checks:
    """Look at files, profile, secrets and disk."""
    from agent.config.paths import config_file, secrets_file, state_dir
    from agent.config.secrets import SECRETS, Origin, read_secrets_file
    from agent.config.trusted_places import require_trusted_way

    file = config_file()
    try:
        read_secrets_file(secrets_file(file))
        require_trusted_way(state_dir())
        yield Line("files", "ok", f"{file}, {secrets_file(file)}, {state_dir()}")
    except (AgentError, OSError) as error:
        yield _failed("files", error)
    configuration = session.configuration
    name = configuration.name
    kinds = [origin.kind for origin in configuration.origins.values()]
    values = ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)) if k != "default")
    where = configuration.name_origin.where or configuration.name_origin.kind
    says = f"{name} ({where}); values: {values or 'defaults alone'}"
    hosts = configuration.profile.hosts
    names_a_service = bool(hosts.device_cloud or hosts.api)
    if names_a_service:
        yield Line("profile", "ok", says)
    else:
        yield Line("profile", "warn", f"{says}; it names no service", "`cellagent config list`")
    found: dict[str, Origin] = {}
    for key in SECRETS:
        try:
            if origin := configuration.secrets.origin(key):
                found[key] = origin
        except AgentError as error:
            yield _failed("secrets", error)
    login = f"`cellagent login --profile {shlex.quote(name if names_a_service else 'public')}`"
    if found:
        shown = ", ".join(f"{key} ({origin.kind})" for key, origin in found.items())
        yield Line("secrets", "ok", shown)
    else:
        yield Line("secrets", "warn", "none is set", login)
    folder = next(path for path in (state_dir(), *state_dir().parents) if path.exists())
    free, least = shutil.disk_usage(folder).free, configuration.profile.outbox.min_free_bytes
    says = f"{free // 2**20} MiB free at {folder}, {least // 2**20} MiB are kept free"
    if free < least:
        yield Line("disk", "fail", says, "`cellagent outbox list`")
    else:
        yield Line("disk", "ok", says)


async def _services(session: Session) -> Checks:
    """Look at each host, the clock that they show, and whether they accept each secret."""
    from agent.provisioning.running.host_clock import check_host_clock
    from agent.wiring.secret_trials import TRIALS, try_secret

    configuration = session.configuration
    hosts, again = configuration.profile.hosts, "`cellagent doctor`"
    urls: dict[str, str] = {}
    for key in ("device_cloud", "api", "chunks", "ingress", "files", "provisioning"):
        if url := getattr(hosts, key):
            urls.setdefault(f"{urlsplit(url).scheme}://{urlsplit(url).netloc}", key)
    works = [_host(configuration, key, url) for url, key in urls.items()]
    aheads: list[float] = []
    for line, ahead_s in await asyncio.gather(*works):
        yield line
        aheads += [] if ahead_s is None else [ahead_s]
    try:
        yield Line("clock", "ok", check_host_clock(min(aheads, key=abs, default=None)))
    except AgentError as error:
        yield _failed("clock", error, "fail" if aheads else "warn")
    for name in TRIALS:
        check = name.replace("_", " ")
        try:
            if (secret := configuration.secrets.get(name)) is None:
                continue
            async with asyncio.timeout(_HOST_S):
                await try_secret(configuration, name, secret.reveal())
            yield Line(check, "ok", f"accepted by {getattr(hosts, TRIALS[name].host)}")
        except TimeoutError:
            yield Line(check, "fail", f"no answer within {_HOST_S:.0f} s", again)
        except AgentError as error:
            mended = f"`cellagent login --profile {shlex.quote(configuration.name)} {name}`"
            is_refused = type(error).exit_code == 5
            yield Line(check, "fail", str(error), mended if is_refused else error.hint or again)


async def _host(configuration: Configuration, key: str, url: str) -> tuple[Line, float | None]:
    """Reach a host as every call does; return that, and how far this clock is ahead of its own."""
    from agent.http.transport import Deadlines, HttpTransport

    hosts, check = configuration.profile.hosts, f"host {key}"
    limits = Deadlines(connect_s=_HOST_S, read_s=_HOST_S, whole_s=_HOST_S)
    transport = HttpTransport(ca_file=hosts.ca_file, proxy=hosts.proxy, deadlines=limits)
    issuer = await _issuer(url, hosts.proxy)
    place = hosts.proxy.rpartition("@")[2].rpartition("/")[2]
    how = f"{url}, {issuer or 'no TLS'}" + (f", by the proxy {place}" if place else "")
    mended = f"`cellagent config show hosts --profile {shlex.quote(configuration.name)}`"
    try:
        async with asyncio.timeout(_HOST_S), transport.open("GET", f"{url}/") as answer:
            said = answer.headers.get("date", "")
            with suppress(ValueError):
                ahead_s = (datetime.now(UTC) - parsedate_to_datetime(said)).total_seconds()
                return Line(check, "ok", f"{how}; answers {answer.status}"), ahead_s
            return Line(check, "ok", f"{how}; answers {answer.status}"), None
    except TimeoutError:
        return Line(check, "fail", f"{how}: no answer within {_HOST_S:.0f} s", mended), None
    except AgentError as error:
        says = f"{error}; {issuer}" if issuer else str(error)
        return Line(check, "fail", says, error.hint or mended), None
    finally:
        await transport.close()


async def _issuer(url: str, proxy: str) -> str:
    """Return who issued the certificate that a host shows, trusted or not; "" if none is had."""
    import ssl

    import httpx
    from cryptography import x509

    if not url.startswith("https:"):
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing but the request for / is sent on it
    way = httpx.AsyncHTTPTransport(verify=context, proxy=proxy or None, trust_env=False)
    with suppress(httpx.HTTPError, OSError, ValueError):
        async with asyncio.timeout(_HOST_S), way:
            answer = await way.handle_async_request(httpx.Request("HEAD", f"{url}/"))
            tls = answer.extensions["network_stream"].get_extra_info("ssl_object")
            shown = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True))
            await answer.aclose()
            return f"certificate by {shown.issuer.rfc4514_string()}"
    return ""


async def _kit(session: Session) -> Checks:
    """Look at the ports and the kit, as `ports` and `modem check` do."""
    from agent.cli.ports import reports_of
    from at.causes.live import causes_of_modem
    from at.checkup import check_modem, firmware_check
    from at.firmware_gate import read_verdict

    reports = await reports_of(session, probe_all=False)
    answering = [each for each in reports if each.answers]
    named = session.port or session.profile.kit.port
    kits = [each for each in reports if each.usb.model or each.usb.device == named]
    for each in answering or kits:
        if each.answers:
            yield Line("port", "ok", f"{each.usb.device}, {each.firmware or 'answers AT'}")
        else:
            mended = each.hint or f"`cellagent ports --port {shlex.quote(each.usb.device)}`"
            yield Line("port", "fail", f"{each.usb.device}: no AT: {each.reason}", mended)
    if not (answering or kits):
        others = ", ".join(each.usb.device for each in reports)
        says = f"no kit is plugged in{f'; {others} may be something else' if others else ''}"
        yield Line(
            "port",
            "warn",
            says,
            "plug one in"
            + (
                f", or name its port: `cellagent doctor --port {reports[0].usb.device}`"
                if others
                else ""
            ),
        )
    if not answering:
        return
    async with session.modem() as modem:
        verdict = await read_verdict(modem)
        firmware = firmware_check(verdict)
        state: Literal["ok", "fail"] = "ok" if verdict.allowed else "fail"
        yield Line("firmware", state, firmware.shown, firmware.hint)
        checks = {check.name: check for check in await check_modem(modem)}
        for name in ("functional_mode", "sim", "registration", "time"):
            if check := checks.get(name):
                is_well = check.ok is not False and check.value is not None
                mended = "" if is_well else check.hint or "`cellagent modem why`"
                yield Line(name.replace("_", " "), "ok" if is_well else "warn", check.shown, mended)
        for cause in (await causes_of_modem(modem, watch_s=0))[:3]:
            if cause.cause in {"registered", "nothing-found"}:
                yield Line("network", "ok", cause.says)
                continue
            kind: Literal["warn", "fail"] = "warn" if cause.cause == "modem-off" else "fail"
            kind = kind if cause.certainty == "certain" else "warn"
            yield Line(
                "network", kind, f"{cause.cause}: {cause.says}", with_options(cause.next, session)
            )
        if verdict.allowed:
            from at.commands.jwt import MakeJwt

            try:
                await modem.send(MakeJwt("", "", 60))
                yield Line("jwt", "ok", "the modem signs tokens")
            except (CommandRejected, ParseError) as error:
                yield Line("jwt", "warn", str(error), "`cellagent modem jwt`")


async def _running(session: Session) -> Checks:
    """Look at the running agent and the outbox, as `status` and `outbox list` do."""
    from agent.cli.observability.outbox import on_outbox
    from agent.daemon.control.client import NotRunning, send_request
    from agent.daemon.control.protocol import (
        OutboxAnswer,
        OutboxRequest,
        StatusAnswer,
        StatusRequest,
    )
    from agent.daemon.snapshot import State
    from agent.outbox import queries
    from agent.wiring.forwarding import outbox_folder

    configuration = session.configuration
    place = configuration.state_dir, configuration.name
    try:
        head = (await send_request(*place, StatusRequest(), StatusAnswer)).status.headline
        states: dict[State, Literal["warn", "fail"]] = {
            State.TROUBLE: "fail",
            State.ATTENTION: "warn",
        }
        yield Line("agent", states.get(head.state, "ok"), head.says, head.hint or "")
    except NotRunning:
        yield Line("agent", "ok", "none runs")
    except AgentError as error:
        yield _failed("agent", error)
    if not outbox_folder(configuration).exists():
        yield Line("outbox", "ok", "empty")
        return
    listing = await on_outbox(
        session,
        lambda outbox: queries.list_items(outbox, 1),
        OutboxRequest("list", limit=1),
        OutboxAnswer[queries.OutboxListing],
    )
    totals = listing.totals
    says = f"{totals.waiting} waiting, {totals.parked} parked, {totals.bytes} bytes"
    if totals.parked:
        yield Line("outbox", "warn", says, "`cellagent outbox list`")
    else:
        yield Line("outbox", "ok", says)


_IDENTITY = re.compile(
    r"(?<!\d)\d{9,20}(?!\d)"  # IMEI, IMSI, ICCID, the number of a board
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|(?<=//)[^/\s]+(?=@)"  # a user, and a password, in a URL
    r"|[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<=serial:)\w+"
)


def _write_report(file: Path, session: Session, lines: list[Line]) -> None:
    """Write what was seen, the versions and the profile to a zip, without what names anyone."""
    from agent.config.private_files import replacing

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
        replacing(file, private=True) as written,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in contents.items():
            archive.writestr(name, text)


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
    yield str(Path.home())
    yield Path.home().name
    yield platform.node()
    with suppress(AgentError):
        profile = session.configuration.profile
        account, bench = profile.account, profile.provisioning
        yield from (account.organization, account.project, account.team_id, account.email)
        yield from (bench.station, bench.lot, bench.product, *bench.slots.values(), *bench.slots)
        yield from profile.kits
        for kit in (profile.kit, *profile.kits.values()):
            yield from (kit.device_id, kit.slot)
