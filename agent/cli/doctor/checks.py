"""What `cellagent doctor` looks at: by what other commands look at, with no rule of its own."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from agent.errors import AgentError, BadAnswer
from at.protocol.errors import CommandRejected, NoModemTime, ParseError

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from agent.config import Configuration
    from agent.config.profile import HostSettings
    from agent.http.transport import HttpTransport
    from at.discovery import PortReport
    from at.driver.modem import Modem

_HOST_S = 8.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: what was looked at, how it is, and the next command."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    next: str = ""


Checks = AsyncGenerator[Line, None]


def failed(check: str, error: Exception, state: Literal["warn", "fail"] = "fail") -> Line:
    """Return the line of a check that ended in an error."""
    from agent.cli.framework.hints import usual_hint

    hint = getattr(error, "hint", "") or usual_hint(error) or "`cellagent config path`"
    says = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        says = f"{error.filename}: {error.strerror}"
    return Line(check, state, says, hint)


async def look_at_profile(session: Session) -> Checks:
    """Look at files, profile, secrets and disk."""
    yield _files()
    configuration = session.configuration
    hosts = configuration.profile.hosts
    names_a_service = bool(hosts.device_cloud or hosts.api)
    yield _profile(configuration, names_a_service=names_a_service)
    for line in _secrets(configuration, configuration.name if names_a_service else "public"):
        yield line
    yield _disk(configuration)


def _files() -> Line:
    from agent.config.secrets import read_secrets_file
    from agent.files.paths import config_file, secrets_file, state_dir
    from agent.files.trusted_places import require_trusted_folder

    file = config_file()
    try:
        read_secrets_file(secrets_file(file))
        require_trusted_folder(state_dir())
    except (AgentError, OSError) as error:
        return failed("files", error)
    return Line("files", "ok", f"{file}, {secrets_file(file)}, {state_dir()}")


def _profile(configuration: Configuration, *, names_a_service: bool) -> Line:
    kinds = [origin.kind for origin in configuration.origins.values()]
    values = ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)) if k != "default")
    where = configuration.name_origin.where or configuration.name_origin.kind
    says = f"{configuration.name} ({where}); values: {values or 'defaults alone'}"
    if names_a_service:
        return Line("profile", "ok", says)
    return Line("profile", "warn", f"{says}; it names no service", "`cellagent config list`")


def _secrets(configuration: Configuration, login_profile: str) -> Iterator[Line]:
    from agent.config.secrets import SECRETS

    found = []
    for key in SECRETS:
        try:
            if origin := configuration.secrets.origin(key):
                found.append(f"{key} ({origin.kind})")
        except AgentError as error:
            yield failed("secrets", error)
    if found:
        yield Line("secrets", "ok", ", ".join(found))
    else:
        login = f"`cellagent login --profile {shlex.quote(login_profile)}`"
        yield Line("secrets", "warn", "none is set", login)


def _disk(configuration: Configuration) -> Line:
    from agent.files.paths import is_there, state_dir

    folder = next(path for path in (state_dir(), *state_dir().parents) if is_there(path))
    free, least = shutil.disk_usage(folder).free, configuration.profile.outbox.min_free_bytes
    says = f"{free // 2**20} MiB free at {folder}, {least // 2**20} MiB are kept free"
    if free < least:
        return Line("disk", "fail", says, "free some space on that disk")
    try:
        # Room is not all: a disk may have no inode left, or be read-only. The file has no name.
        with TemporaryFile(dir=folder):
            return Line("disk", "ok", says)
    except OSError as error:
        error.filename = str(folder)
        unwritten = AgentError(f"no file can be made in {folder}: {error.strerror}")
        unwritten.__cause__ = error
        return failed("disk", unwritten)


async def look_at_services(session: Session) -> Checks:
    """Look at each host, the clock that they show, and whether they accept each secret."""
    from agent.call import Host
    from agent.provisioning.running.host_clock import check_host_clock
    from agent.retry import NO_RETRY
    from agent.wiring.secret_trials import TRIALS, try_secret

    configuration = session.configuration
    hosts, again = configuration.profile.hosts, "`cellagent doctor`"
    urls: dict[str, str] = {}
    for host in Host:
        if url := getattr(hosts, host.value):
            urls.setdefault(f"{urlsplit(url).scheme}://{urlsplit(url).netloc}", host.value)
    works = [_host(configuration, key, url) for url, key in urls.items()]
    aheads: list[float] = []
    for line, ahead_s in await asyncio.gather(*works):
        yield line
        aheads += [] if ahead_s is None else [ahead_s]
    try:
        yield Line("clock", "ok", check_host_clock(min(aheads, key=abs, default=None)))
    except AgentError as error:
        yield failed("clock", error, "fail" if aheads else "warn")
    for name in TRIALS:
        check = name.replace("_", " ")
        try:
            if (secret := configuration.secrets.get(name)) is None:
                continue
            async with asyncio.timeout(_HOST_S):
                await try_secret(configuration, name, secret.reveal(), NO_RETRY)
            yield Line(check, "ok", f"accepted by {getattr(hosts, TRIALS[name].host)}")
        except TimeoutError:
            yield Line(check, "fail", f"no answer within {_HOST_S:.0f} s", again)
        except AgentError as error:
            mended = f"`cellagent login --profile {shlex.quote(configuration.name)} {name}`"
            if configuration.secrets.preceding(name):  # it stays
                mended = configuration.secrets.replacing(name, unattended=False)
            is_refused = type(error).exit_code == 5
            other = _hosts_of(configuration) if isinstance(error, BadAnswer) else again
            yield Line(check, "fail", str(error), mended if is_refused else error.hint or other)


def _hosts_of(configuration: Configuration) -> str:
    return f"`cellagent config show hosts --profile {shlex.quote(configuration.name)}`"


async def _host(configuration: Configuration, key: str, url: str) -> tuple[Line, float | None]:
    """Reach a host as every call does; return that, and how far this clock is ahead of its own."""
    from agent.retry import http_date

    hosts, check = configuration.profile.hosts, f"host {key}"
    if not hosts.proxy:  # which resolves the name itself
        name = urlsplit(url).hostname
        try:
            async with asyncio.timeout(_HOST_S):
                await asyncio.get_running_loop().getaddrinfo(name, None)
        except TimeoutError:
            says = f"no name server gave the address of {name} within {_HOST_S:.0f} s"
            return Line(check, "fail", says, "check this machine's network"), None
        except (OSError, UnicodeError):
            pass  # told below, as every call tells it
    transport = _transport(hosts)
    issuer = await _issuer(url, hosts.proxy)
    place = hosts.proxy.rpartition("@")[2].rpartition("/")[2]
    how = f"{url}, {issuer or 'no TLS'}" + (f", by the proxy {place}" if place else "")
    mended = _hosts_of(configuration)
    try:
        async with asyncio.timeout(_HOST_S), transport.open("GET", f"{url}/") as answer:
            theirs = http_date(answer.headers.get("date", ""))
            ahead_s = None if theirs is None else (datetime.now(UTC) - theirs).total_seconds()
            return Line(check, "ok", f"{how}; answers {answer.status}"), ahead_s
    except TimeoutError:
        return Line(check, "fail", f"{how}: no answer within {_HOST_S:.0f} s", mended), None
    except AgentError as error:
        says = f"{error}; {issuer}" if issuer else str(error)
        return Line(check, "fail", says, error.hint or mended), None
    finally:
        await transport.close()


def _transport(hosts: HostSettings) -> HttpTransport:
    from agent.http.transport import Deadlines, HttpTransport

    limits = Deadlines(connect_s=_HOST_S, read_s=_HOST_S, whole_s=_HOST_S)
    return HttpTransport(ca_file=hosts.ca_file, proxy=hosts.proxy, deadlines=limits)


async def _issuer(url: str, proxy: str) -> str:
    """Return who issued the certificate that a host shows, trusted or not; "" if none is had."""
    import ssl

    from cryptography import x509

    from agent.http.library import httpx

    if not url.startswith("https:"):
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing but the request for / is sent on it
    way = httpx.AsyncHTTPTransport(verify=context, proxy=proxy or None)
    with suppress(httpx.HTTPError, OSError, ValueError):
        async with asyncio.timeout(_HOST_S), way:
            answer = await way.handle_async_request(httpx.Request("HEAD", f"{url}/"))
            tls = answer.extensions["network_stream"].get_extra_info("ssl_object")
            shown = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True))
            await answer.aclose()
            return f"certificate by {shown.issuer.rfc4514_string()}"
    return ""


async def look_at_kit(session: Session) -> Checks:
    """Look at the ports and the kit, as `ports` and `modem check` do."""
    from agent.cli.ports import reports_of

    reports = await reports_of(session, probe_all=False)
    for line in _ports(reports, session.profile.kit.port):
        yield line
    if any(each.answers for each in reports):
        async with session.modem() as modem:
            async for line in _look_at_modem(modem):
                yield line


def _ports(reports: list[PortReport], named: str) -> Iterator[Line]:
    """Yield a line for each port that answers, else for each that should."""
    answering = [each for each in reports if each.answers]
    kits = [each for each in reports if each.usb.model or each.usb.device == named]
    for each in answering or kits:
        if each.answers:
            yield Line("port", "ok", f"{each.usb.device}, {each.firmware or 'answers AT'}")
        else:
            mended = each.hint or f"`cellagent ports --port {shlex.quote(each.usb.device)}`"
            yield Line("port", "fail", f"{each.usb.device}: no AT: {each.reason}", mended)
    if not (answering or kits):
        says, mended = "no kit is plugged in", "plug one in"
        if reports:
            others = ", ".join(each.usb.device for each in reports)
            says += f"; {others} may be something else"
            quoted = shlex.quote(reports[0].usb.device)
            mended += f", or name its port: `cellagent doctor --port {quoted}`"
        yield Line("port", "warn", says, mended)


async def _look_at_modem(modem: Modem) -> Checks:
    from at.causes.live import causes_of_modem
    from at.checkup import check_modem, firmware_check
    from at.firmware_gate import read_verdict

    verdict = await read_verdict(modem)
    firmware = firmware_check(verdict)
    yield Line("firmware", "ok" if verdict.allowed else "fail", firmware.shown, firmware.hint)
    checks = {check.name: check for check in await check_modem(modem)}
    for name in ("functional_mode", "sim", "registration", "time"):
        if check := checks.get(name):
            is_well = check.ok if name == "registration" else check.ok is not False
            is_well = is_well and check.value is not None
            mended = "" if is_well else check.hint or "`cellagent modem why`"
            yield Line(name.replace("_", " "), "ok" if is_well else "warn", check.shown, mended)
    for cause in (await causes_of_modem(modem, watch_s=0))[:3]:
        if not cause.is_trouble:
            yield Line("network", "ok", cause.says)
            continue
        fails = cause.certainty == "certain" and cause.cause != "modem-off"
        says = f"{cause.cause}: {cause.says}"
        yield Line("network", "fail" if fails else "warn", says, cause.next)
    if verdict.allowed:
        from at.commands.jwt import MakeJwt

        try:
            await modem.send(MakeJwt("", "", 60))
            yield Line("jwt", "ok", "the modem signs tokens")
        except NoModemTime as error:
            yield failed("jwt", error, "warn")
        except (CommandRejected, ParseError) as error:
            yield Line("jwt", "warn", str(error), "`cellagent modem jwt`")


async def look_at_agent(session: Session) -> Checks:
    """Look at the running agent, as `status` does."""
    from agent.daemon.control.client import NotRunning, send_request
    from agent.daemon.control.protocol import StatusAnswer, StatusRequest
    from agent.daemon.snapshot import State

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


async def look_at_outbox(session: Session) -> Checks:
    """Look at the outbox, as `outbox list` does."""
    from agent.cli.observability.outbox import on_outbox
    from agent.daemon.control.protocol import OutboxAnswer, OutboxRequest
    from agent.files.paths import is_there
    from agent.outbox import queries
    from agent.wiring.forwarding import outbox_folder

    if not is_there(outbox_folder(session.configuration)):
        yield Line("outbox", "ok", "empty")
        return
    listing = await on_outbox(
        session,
        lambda store: queries.list_items(store, 1),
        OutboxRequest("list", limit=1),
        OutboxAnswer[queries.OutboxListing],
    )
    totals = listing.totals
    says = f"{totals.waiting} waiting, {totals.parked} parked, {totals.bytes} bytes"
    if totals.parked:
        yield Line("outbox", "warn", says, "`cellagent outbox list`")
    else:
        yield Line("outbox", "ok", says)
