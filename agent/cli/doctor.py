"""`cellagent doctor`: from the profile to the cloud in one go, by what other commands look at."""

from __future__ import annotations

import asyncio
import platform
import re
import shutil
import sys
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import click

import agent
from agent.cli.framework.command import agent_command, emit, json_line, note, say
from agent.cli.modem.why import with_options
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
    groups = [partial(each, session) for each in (_here, _services, _kit, _running)]
    works = [asyncio.ensure_future(_bounded(group)) for group in groups]
    lines: list[Line] = []
    try:
        for work in works:
            for line in await work:
                lines.append(line)
                _show(session, line)
    finally:
        for work in works:
            work.cancel()
    if report is not None:
        _write_report(report, session, lines)
        note(f"written to {report}: without secrets and identities; read it before it is sent")
    return AgentError.exit_code if any(line.state == "fail" for line in lines) else 0


def _show(session: Session, line: Line) -> None:
    if session.json:
        emit(asdict(line) | {"next": line.next or None})
        return
    mark = {"ok": "ok", "warn": "!", "fail": "NO"}[line.state]
    say(f"{mark:2}  {line.check:16} {redact(line.says)}")
    if line.next:
        say(f"      try: {redact(line.next)}")


async def _bounded(checks: Callable[[], Checks]) -> list[Line]:
    """Return the lines of one group; what ends it early is a line, too."""
    lines: list[Line] = []
    try:
        async with asyncio.timeout(_EACH_S), aclosing(checks()) as found:
            async for line in found:
                lines.append(line)  # noqa: PERF401 - what came before a failure counts
    except TimeoutError:
        lines.append(Line("time", "fail", f"no end after {_EACH_S:.0f} s: the rest was not seen"))
    except (AgentError, AtError, OSError) as error:
        lines.append(_failed("configuration", error))
    return lines


def _failed(check: str, error: Exception, state: Literal["warn", "fail"] = "fail") -> Line:
    return Line(check, state, str(error), getattr(error, "hint", ""))


async def _here(session: Session) -> Checks:
    """Look at files, profile, secrets, clock and disk."""
    from agent.config.paths import config_file, secrets_file, state_dir
    from agent.config.secrets import SECRETS, read_secrets_file
    from agent.config.trusted_places import require_trusted_way
    from agent.provisioning.running.host_clock import check_host_clock

    file = config_file()
    try:
        read_secrets_file(secrets_file(file))
        require_trusted_way(state_dir())
        yield Line("files", "ok", f"{file}, {secrets_file(file)}, {state_dir()}")
    except (AgentError, OSError) as error:
        yield _failed("files", error)
    configuration = session.configuration
    name, options = configuration.name, _options(session)
    kinds = [origin.kind for origin in configuration.origins.values()]
    values = ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)) if k != "default")
    where = configuration.name_origin.where or configuration.name_origin.kind
    says = f"{name} ({where}); values: {values or 'defaults alone'}"
    if any(getattr(configuration.profile.hosts, key) for key in ("device_cloud", "api")):
        yield Line("profile", "ok", says)
    else:
        yield Line("profile", "warn", f"{says}; it names no service", "cellagent config list")
    found = {key: origin for key in SECRETS if (origin := configuration.secrets.origin(key))}
    shown = ", ".join(f"{key} ({origin.kind})" for key, origin in found.items())
    if shown:
        yield Line("secrets", "ok", shown)
    else:
        yield Line("secrets", "warn", "none is set", f"cellagent login{options}")
    try:
        yield Line("clock", "ok", check_host_clock(None))
    except AgentError as error:
        yield _failed("clock", error, "warn")
    folder = next(path for path in (state_dir(), *state_dir().parents) if path.exists())
    free, least = shutil.disk_usage(folder).free, configuration.profile.outbox.min_free_bytes
    says = f"{free // 2**20} MiB free at {folder}, {least // 2**20} are kept free"
    if free < least:
        yield Line("disk", "fail", says, "cellagent outbox list" + options)
    else:
        yield Line("disk", "ok", says)


async def _services(session: Session) -> Checks:
    """Look at each host, then whether the services accept each secret."""
    from agent.wiring.secret_trials import TRIALS, try_secret

    configuration = session.configuration
    hosts = configuration.profile.hosts
    urls: dict[str, str] = {}
    for key in ("device_cloud", "api", "chunks", "ingress", "files", "provisioning"):
        if url := getattr(hosts, key):
            urls.setdefault(f"{urlsplit(url).scheme}://{urlsplit(url).netloc}", key)
    works = [_host(configuration, key, url) for url, key in urls.items()]
    for line in await asyncio.gather(*works):
        yield line
    for name in TRIALS:
        secret = configuration.secrets.get(name)
        if secret is None:
            continue
        check = name.replace("_", " ")
        try:
            async with asyncio.timeout(_HOST_S):
                await try_secret(configuration, name, secret.reveal())
            yield Line(check, "ok", f"accepted by {getattr(hosts, TRIALS[name].host)}")
        except TimeoutError:
            yield Line(check, "fail", f"no answer within {_HOST_S:.0f} s")
        except AgentError as error:
            mended = f"cellagent login --profile {configuration.name} {name}"
            is_refused = type(error).exit_code == 5
            yield Line(check, "fail", str(error), mended if is_refused else error.hint)


async def _host(configuration: Configuration, key: str, url: str) -> Line:
    """Reach a host as every call does: DNS, TCP, TLS, proxy; name who issued its certificate."""
    from agent.http.transport import Deadlines, HttpTransport

    hosts = configuration.profile.hosts
    limits = Deadlines(connect_s=_HOST_S, read_s=_HOST_S, whole_s=_HOST_S)
    transport = HttpTransport(ca_file=hosts.ca_file, proxy=hosts.proxy, deadlines=limits)
    issuer = "" if hosts.proxy else await _issuer(url)
    how = f"{url}, " + (f"by proxy {hosts.proxy}" if hosts.proxy else issuer or "no TLS")
    try:
        async with asyncio.timeout(_HOST_S), transport.open("GET", f"{url}/") as answer:
            return Line(f"host {key}", "ok", f"{how}; answers {answer.status}")
    except TimeoutError:
        return Line(f"host {key}", "fail", f"{how}: no answer within {_HOST_S:.0f} s")
    except AgentError as error:
        mended = error.hint or f"cellagent config show hosts --profile {configuration.name}"
        says = f"{error}; {issuer}" if issuer else str(error)
        return Line(f"host {key}", "fail", says, mended)
    finally:
        await transport.close()


async def _issuer(url: str) -> str:
    """Return who issued the certificate that a host shows, trusted or not; "" if none is had."""
    import ssl

    from cryptography import x509

    parts = urlsplit(url)
    if parts.scheme != "https":
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent on it
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(_HOST_S):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 443, ssl=context
            )
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.transport.abort()
            issuer = x509.load_der_x509_certificate(shown).issuer
            return f"certificate by {issuer.rfc4514_string()}"
    return ""


async def _kit(session: Session) -> Checks:
    """Look at the ports and the kit, as `ports` and `modem check` do."""
    from agent.cli.ports import reports_of
    from at.causes.live import causes_of_modem
    from at.checkup import check_modem, firmware_check
    from at.firmware_gate import read_verdict

    reports = await reports_of(session, probe_all=False)
    answering = [each for each in reports if each.answers]
    for each in reports if not answering else ():
        yield Line("port", "fail", f"{each.usb.device}: no AT: {each.reason}", each.hint)
    if not reports:
        yield Line("port", "warn", "no kit is plugged in", "cellagent modem virtual --pty /tmp/kit")
    for each in answering:
        yield Line("port", "ok", f"{each.usb.device}: {each.firmware or 'answers AT'}")
    if not answering:
        return
    options = _options(session)
    async with session.modem() as modem:
        verdict = await read_verdict(modem)
        firmware = firmware_check(verdict)
        state: Literal["ok", "fail"] = "ok" if verdict.allowed else "fail"
        yield Line("firmware", state, firmware.shown, firmware.hint)
        checks = {check.name: check for check in await check_modem(modem)}
        for name in ("functional_mode", "sim", "registration", "time"):
            if check := checks.get(name):
                is_well = check.ok is not False and check.value is not None
                yield Line(name.replace("_", " "), "ok" if is_well else "warn", check.shown)
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
                yield Line("jwt", "warn", str(error), f"cellagent modem jwt{options}")


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

    configuration, options = session.configuration, _options(session)
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
        yield Line("outbox", "warn", says, f"cellagent outbox list{options}")
    else:
        yield Line("outbox", "ok", says)


def _options(session: Session) -> str:
    given = (("--profile", session.profile_name), ("--port", session.port))
    return "".join(f" {name} {value}" for name, value in given if value)


_IDENTITY = re.compile(
    r"\b\d{14,20}\b"  # IMEI, IMSI, ICCID
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<=//)[^/@\s]+(?=@)"  # a user, and a password, in a URL
    r"|(?<=serial:)\w+"
)


def _write_report(file: Path, session: Session, lines: list[Line]) -> None:
    """Write what was seen, the versions and the profile to a zip, without what names anyone."""
    hide = sorted(filter(None, _named(session)), key=len, reverse=True)

    def public(text: str) -> str:
        text = redact(text)
        for name in hide:
            text = text.replace(name, "[left out]")
        return _IDENTITY.sub("[left out]", text)

    versions = {
        "cellagent": agent.__version__,
        "python": sys.version,
        "system": platform.platform(),
    }
    with zipfile.ZipFile(held := BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("doctor.jsonl", public("".join(json_line(asdict(line)) for line in lines)))
        archive.writestr("versions.json", public(json_line(versions)))
        archive.writestr("profile.jsonl", public("".join(_profile_lines(session))))
    file.write_bytes(held.getvalue())


def _profile_lines(session: Session) -> Iterator[str]:
    from agent.config.parse import leaves

    with suppress(AgentError):
        configuration = session.configuration
        for key, value in leaves(configuration.profile):
            if (origin := configuration.origins[key]).kind != "default":
                yield json_line({"key": key, "value": value, "from": origin.kind})


def _named(session: Session) -> Iterator[str]:
    """Yield what names this user, this host, the account and the kits."""
    yield str(Path.home())
    yield platform.node()
    with suppress(AgentError):
        profile = session.configuration.profile
        account = profile.account
        yield from (account.organization, account.project, account.team_id, account.email)
        for kit in (profile.kit, *profile.kits.values()):
            yield kit.device_id
