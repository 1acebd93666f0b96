"""Turns the errors of httpx into those of this package: what failed, why, and what helps."""

import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from agent import errors
from agent.http.library import httpx

# Numbers of X509_STORE_CTX_get_error(3).
_NOT_YET_VALID, _EXPIRED, _SELF_SIGNED = 9, 10, 18
_WRONG_NAME = {62, 64}
# What OpenSSL says of an answer that is no TLS, and of an older one than is spoken here.
_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}
_OLD_TLS = {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"}
_TRUST = "`cellagent config set hosts.ca_file FILE` trusts the authority in FILE"
_PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
"""Those that other tools read, in their order."""
_PROXY = (
    "the proxy is hosts.proxy of the profile: `cellagent config unset hosts.proxy` goes without"
)

SLOW = "the service is slow, or a firewall on the way holds back what it says: try again later"
_NO_HTTP = (
    "another server answers there, or one that speaks TLS (https://) where the URL has http://: "
    "`cellagent config show hosts`"
)
_SAID = 120
"""Characters of what h11 says of an answer, which may quote it."""
_OWN_CERTIFICATE = "it wants a certificate of this machine, for which no service asks"
_NONE_SHOWN = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
_LOG_IN = (
    "it wants a user and a password, or others: `cellagent config set hosts.proxy URL`, which has "
    "them as http://USER:PASSWORD@HOST:PORT"
)


@contextmanager
def own_errors(place: str, proxy: str, *, answers: bool = False) -> Iterator[None]:
    """Turn the errors of httpx into those of this package.

    `place` is host and port; `proxy` those of the proxy on the way, "" where there is none, after
    "https://" where it is spoken to by TLS; `answers` where an answer has begun.
    """
    way = f"{place} by the proxy {proxy}" if proxy else place
    try:
        yield
    except httpx.ConnectTimeout as error:
        raise errors.Unreachable(
            f"{way} did not answer the connection in time",
            hint=f"a firewall on the way, no route, or a name server that does not answer: check "
            f"this machine's network{_about(proxy)}",
            sent=False,
        ) from error
    except httpx.PoolTimeout as error:
        raise errors.Unreachable(f"no free connection to {way}", sent=False) from error
    except httpx.TimeoutException as error:
        raise errors.DeadlineExceeded(f"{way} fell silent", hint=SLOW) from error
    except (httpx.ConnectError, httpx.ProxyError) as error:
        raise _not_connected(place, proxy, error) from error
    except httpx.InvalidURL as error:
        raise errors.ConfigError(f"cannot use the URL of {place}: {error}") from error
    except (httpx.LocalProtocolError, UnicodeError) as error:
        # A name that IDNA forbids, or a header: its text may quote a credential.
        raise errors.UsageError(f"the request to {place} is no valid HTTP") from error
    except httpx.RemoteProtocolError as error:
        if _ended_early(error):
            raise _broken(way, error, answers=answers) from error
        said = " ".join(str(error).split())[:_SAID]
        raise errors.BadAnswer(f"{way} answers no valid HTTP: {said}", hint=_NO_HTTP) from error
    except (httpx.HTTPError, OSError) as error:
        raise _broken(way, error, answers=answers) from error


def _about(proxy: str) -> str:
    if proxy:
        return f"; {_PROXY}"
    variable = next(filter(os.environ.get, _PROXY_VARIABLES), "")
    command = f'`cellagent config set hosts.proxy "${variable}"`'
    return f"; {variable} is not read: {command} goes by that proxy" if variable else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it; an address each where a name has several."""
    yield error
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _causes(inner)
    if cause := error.__cause__ or error.__context__:
        yield from _causes(cause)


def _ended_early(error: httpx.RemoteProtocolError) -> bool:
    """Return whether the server closed the connection, which no class tells from bad HTTP."""
    return str(error).startswith(("Server disconnected", "peer "))


def _broken(way: str, error: Exception, *, answers: bool) -> errors.Unreachable:
    causes = list(_causes(error))
    # With TLS 1.3 a server tells of it only behind the handshake, or resets the connection.
    if any(isinstance(one, ssl.SSLError) and one.reason == _NONE_SHOWN for one in causes):
        return errors.Untrusted(
            f"{way} wants a certificate of this machine, which has none to show",
            hint="no service asks for one: something else answers there",
            sent=False,
        )
    reason = str(error) or _reason(causes) or type(error).__name__
    hint = "if it breaks each time: a firewall on the way ends it"
    if not answers:
        hint += (
            ", or what answers there speaks TLS (https://) where the URL has http://, or "
            + _OWN_CERTIFICATE
        )
    return errors.Unreachable(f"the connection to {way} broke: {reason}", hint=hint)


def _reason(causes: Sequence[BaseException]) -> str:
    """Return what the operating system says, "" where it was not asked."""
    told = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    return told[0] if told else ""


def _not_connected(place: str, proxy: str, error: httpx.TransportError) -> errors.AgentError:
    causes = list(_causes(error))
    # Which of the two refused the handshake, httpx does not tell.
    ends = f"{place} or the proxy {proxy}" if proxy.startswith("https:") else place
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted(ends, cause)
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or str(cause)
            in_vain = reason in _NO_TLS | _OLD_TLS
            hint = "something else than the service answers there, perhaps plain http"
            if reason not in _NO_TLS:
                hint = "an old server, or a firewall on the way: TLS 1.2 or later is spoken here"
                hint += "" if in_vain else f"; or {_OWN_CERTIFICATE}"
            return (errors.Untrusted if in_vain else errors.Unreachable)(
                f"{ends}: TLS failed ({reason})", hint=hint, sent=False
            )
    if isinstance(error, httpx.ProxyError):
        wants_user = str(error).startswith("407 ")
        hint = f"{_LOG_IN}; {_PROXY}" if wants_user else _PROXY
        return errors.Unreachable(
            f"the proxy {proxy} does not connect to {place}: {error}", hint=hint, sent=False
        )
    far, way = (f"the proxy {proxy}", f" on the way to {place}") if proxy else (place, "")
    for cause in causes:
        if isinstance(cause, ConnectionRefusedError):
            return errors.NothingListens(
                f"{far}: nothing listens there{way}", hint=_PROXY if proxy else "", sent=False
            )
        if isinstance(cause, socket.gaierror):
            unknown = cause.errno == socket.EAI_NONAME
            return (errors.NothingListens if unknown else errors.Unreachable)(
                f"{far}: the name cannot be resolved{way}",
                hint=f"check its spelling, and this machine's network{_about(proxy)}",
                sent=False,
            )
    return errors.Unreachable(
        f"{far}: {_reason(causes) or str(error) or 'cannot connect'}{way}",
        hint=f"check this machine's network{_about(proxy)}",
        sent=False,
    )


def _untrusted(ends: str, error: ssl.SSLCertVerificationError) -> errors.Untrusted:
    """Return what is wrong with a certificate: its name, its time, or who signed it."""
    code = error.verify_code
    if code in _WRONG_NAME:
        says = "is for another name"
        hint = "something else than the service answers there, or the URL has another name for it"
    elif code in {_NOT_YET_VALID, _EXPIRED}:
        says = "has expired" if code == _EXPIRED else "is not valid yet"
        hint = (
            f"this machine's clock says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; if that is right, "
            "whoever runs that server must renew its certificate"
        )
    elif code == _SELF_SIGNED:
        says = "is signed by itself"
        hint = f"if that server is yours: {_TRUST}"
    else:
        says = "is signed by an authority that this machine does not trust"
        hint = f"a firewall or a proxy that reads along signs so; if it is your own: {_TRUST}"
    return errors.Untrusted(
        f"{ends}: its certificate {says} ({error.verify_message})", hint=hint, sent=False
    )
