"""Turns the errors of httpx into those of this package."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from agent import errors


@contextmanager
def own_errors(host: str) -> Iterator[None]:
    """Turn the errors of httpx into those of this package."""
    try:
        yield
    except httpx.ConnectTimeout as error:
        raise errors.Unreachable(
            f"{host} did not answer the connection in time", sent=False
        ) from error
    except httpx.PoolTimeout as error:
        raise errors.Unreachable(f"no free connection to {host}", sent=False) from error
    except httpx.TimeoutException as error:
        raise errors.DeadlineExceeded(f"{host} fell silent") from error
    except (httpx.ConnectError, httpx.ProxyError) as error:
        raise _not_connected(host, error) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise errors.ConfigError(f"cannot use the URL of {host}: {error}") from error
    except (httpx.LocalProtocolError, UnicodeError) as error:
        # A name that IDNA forbids, or a header: its text may quote a credential.
        raise errors.UsageError(f"the request to {host} is no valid HTTP") from error
    except (httpx.HTTPError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise errors.Unreachable(f"the connection to {host} broke: {reason}") from error


def _not_connected(host: str, error: httpx.TransportError) -> errors.AgentError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return errors.Untrusted(
                f"{host}: its certificate cannot be trusted ({cause.verify_message})",
                hint="check this machine's clock; a CA of its own goes into hosts.ca_file",
                sent=False,
            )
        if isinstance(cause, ssl.SSLError):
            return errors.Unreachable(f"{host}: TLS failed ({cause.reason or cause})", sent=False)
        if isinstance(cause, socket.gaierror):
            return errors.Unreachable(
                f"{host}: the name cannot be resolved",
                hint="check the spelling in the profile, and this machine's network",
                sent=False,
            )
        cause = cause.__cause__ or cause.__context__
    return errors.Unreachable(f"{host}: {str(error) or 'cannot connect'}", sent=False)
