"""Functional mode and error format: +CFUN +CMEE (TS 27.007, 8.2 and 9.1).

+CFUN answers OK long before the modem is on a network.
"""

from enum import IntEnum
from typing import Annotated

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.record_fields import listed, optional, within
from at.protocol.values import Fields, Record


class FunctionalMode(IntEnum):
    """<fun> of +CFUN, as the nRF91's manual names it. Other vendors have more modes.

    Firmware for satellites alone has those that keep the registration, to change between profiles.
    """

    OFF = 0
    NORMAL = 1
    RECEIVE_ONLY = 2
    FLIGHT = 4
    LTE_OFF = 20
    LTE_ON = 21
    GNSS_OFF = 30
    GNSS_ON = 31
    UICC_OFF = 40
    UICC_ON = 41
    FLIGHT_UICC_ON = 44
    FLIGHT_REGISTERED = 45
    FLIGHT_REGISTERED_UICC_ON = 46


LTE_MODES = frozenset({FunctionalMode.NORMAL, FunctionalMode.RECEIVE_ONLY, FunctionalMode.LTE_ON})
"""The modes in which LTE runs: the modem then refuses to write credentials (+CME ERROR: 518)."""

OFF_MODES = frozenset({0, 4, 20, 44, 45, 46})
"""The modes in which it neither sends nor listens for LTE; GNSS has modes beside these."""


class Functionality(Record, frozen=True):
    """Answer of +CFUN?; other vendors add <rst>, and modes that FunctionalMode does not name."""

    fun: Annotated[int, within(0, 255)]
    rst: Annotated[int | None, optional(0, 1)] = None


def _resets(fields: Fields, name: str) -> tuple[int, ...] | None:
    return None if fields.peek().absent else fields.integers(name, 0, 1)


class FunctionalModes(Record, frozen=True):
    """Answer of +CFUN=?."""

    funs: Annotated[tuple[int, ...], listed(0, 255)]
    rsts: Annotated[tuple[int, ...] | None, _resets] = None


@at_command("AT+CFUN=")
class SetFunctionalMode(OkCommand, frozen=True):
    """AT+CFUN=<fun>. Mode 4 while attached waits for the detach, seconds under bad radio."""

    fun: int


@at_command("AT+CFUN?")
class ReadFunctionalMode(Command[Functionality], frozen=True):
    """AT+CFUN?."""


@at_command("AT+CFUN=?")
class TestFunctionalMode(Command[FunctionalModes], frozen=True):
    """AT+CFUN=?."""


class ErrorFormat(Record, frozen=True):
    """0 plain ERROR, 1 numbers; 2, texts, is refused by an nRF91."""

    n: Annotated[int, within(0, 2)]


@at_command("AT+CMEE=")
class SetErrorFormat(OkCommand, frozen=True):
    """AT+CMEE=<n>."""

    n: int = 1


@at_command("AT+CMEE?")
class ReadErrorFormat(Command[ErrorFormat], frozen=True):
    """AT+CMEE?."""
