"""Checks this host's clock before it sets a modem's clock or dates a certificate."""

import ctypes
import sys

from agent.errors import RefusedByRule

_TIMEX_BYTES = 256  # struct timex has 208 on 64-bit Linux; its first field, modes, is 0: read only
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
AGREES_S = 60.0
"""Service and host may differ by so much: half of a round trip, and whole seconds in its header."""

DATED_WITHIN_S = 86400.0
"""A certificate is dated a day back and lasts for years: so much does it no harm."""


def kernel_says_synchronised() -> bool | None:
    """Return whether the kernel's clock is synchronised; None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(
            ctypes.create_string_buffer(_TIMEX_BYTES)
        )
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _UNSYNCHRONISED


def check_host_clock(ahead_s: float | None) -> str:
    """Return, for a person, why the host's clock is trusted. Raises RefusedByRule.

    `ahead_s` is how far it is ahead of the service's, None where no service was asked.
    """
    if ahead_s is not None and abs(ahead_s) > AGREES_S:
        raise _differs(ahead_s)
    synchronised = kernel_says_synchronised()
    if synchronised:
        return "from the host's clock, which is synchronised"
    if ahead_s is not None:
        return "from the host's clock, which agrees with the service's"
    why = "is not synchronised" if synchronised is False else "cannot be asked whether it is right"
    raise RefusedByRule(
        f"this host's clock {why}, and no service was there to compare it with",
        hint="`timedatectl set-ntp true`, or let the modem get the time from its network",
    )


def check_clock_for_certificates(ahead_s: float | None) -> str:
    """Return a warning to show before this clock dates certificates, "" for none.

    `ahead_s` as for `check_host_clock`. Raises RefusedByRule where the clock is known to be wrong.
    """
    if ahead_s is not None and abs(ahead_s) > DATED_WITHIN_S:
        raise _differs(ahead_s)
    if ahead_s is not None or kernel_says_synchronised() is not False:
        return ""
    return (
        "this host's clock is not synchronised, and no service was there to compare it with: "
        "certificates are dated by it"
    )


def _differs(ahead_s: float) -> RefusedByRule:
    return RefusedByRule(
        f"this host's clock differs from the service's by {abs(ahead_s):.0f} s",
        hint="set this host's clock with `timedatectl set-ntp true`, then run again",
    )
