"""A token that is asked for signatures, one at a time, and given up when it does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pkcs11 import exceptions as refusals

from agent.errors import AgentError

if TYPE_CHECKING:
    from pkcs11 import Mechanism

    from agent.provisioning.token.pin import Pin

T = TypeVar("T")
ANSWERS_WITHIN_S = 60.0
"""For one call: some tokens wait for a touch, and a lost network HSM keeps its caller for ever."""
PIN_REFUSED = (refusals.PinIncorrect, refusals.PinInvalid, refusals.PinLenRange, refusals.PinLocked)
_GONE = (
    refusals.DeviceError,
    refusals.DeviceRemoved,
    refusals.KeyHandleInvalid,
    refusals.ObjectHandleInvalid,
    refusals.SessionClosed,
    refusals.SessionHandleInvalid,
    refusals.SlotIDInvalid,
    refusals.TokenNotPresent,
    refusals.UserNotLoggedIn,
)


class TokenError(AgentError):
    """The token failed: it was taken out, does not answer, or refused.

    `over`: it is not to be asked again in this run.
    """

    kind = "token"

    def __init__(self, message: str, *, over: bool = False) -> None:
        super().__init__(
            message, hint="see to the token, then run again: what was done is in the ledger"
        )
        self.over = over


class Signer:
    """A private key in an open session, asked by one thread at a time.

    The module was told at its start that there are no others. `pin` is for a key that wants it
    for every signature, None for the rest.
    """

    def __init__(self, key: Any, mechanism: Mechanism, label: str, pin: Pin | None) -> None:
        self._key = key
        self._mechanism = mechanism
        self._label = label
        self._pin = pin
        self._over = ""
        self._lock = threading.Lock()

    def sign(self, data: bytes) -> bytes:
        """Return the mechanism's signature of `data`. Raises TokenError."""
        pin = {"pin": self._pin.value.reveal()} if self._pin is not None else {}
        ask = partial(self._key.sign, data, mechanism=self._mechanism, **pin)
        with self._lock:
            if self._over:
                raise TokenError(self._over, over=True)
            try:
                signature: bytes = in_time(ask, f"the token {self._label} did not sign")
            except TokenError as failed:
                self._over = str(failed) if failed.over else ""
                raise
        return signature


def in_time(call: Callable[[], T], failure: str) -> T:
    """Return what `call` returns; it is made in a thread of its own, which no exit waits for.

    Raises TokenError, which begins with `failure`, where the module refuses or keeps us too long.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=work, name="pkcs11", daemon=True).start()
    try:
        return answer.result(ANSWERS_WITHIN_S)
    except TimeoutError as error:
        raise TokenError(f"{failure} within {ANSWERS_WITHIN_S:.0f} s", over=True) from error
    except refusals.PKCS11Error as error:
        # A PIN that failed is not tried again: the next board would, until the token locks itself.
        over = isinstance(error, PIN_REFUSED)
        raise TokenError(f"{failure}: {reason_of(error)}", over=over) from error


def reason_of(error: refusals.PKCS11Error) -> str:
    """Return in a person's words why the module refused."""
    if isinstance(error, _GONE):
        return "it was taken out, or its session ended"
    return str(error) or type(error).__name__
