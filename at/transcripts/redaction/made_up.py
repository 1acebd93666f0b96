"""Made-up values in place of what names a device, a SIM or a person. Pure; no two programs agree.

Values are numbered in the order in which they appear, so nothing of a real one can be computed
back: the digits of a hash would be, since a model has only a million IMEIs. Each begins in a way
that no real one does, so a made-up value is known as one and stays as it is.
"""

import re
from collections.abc import Callable

from at.protocol.check_digit import luhn_digit

TEST_TAC = "00100999"
"""IMEIs whose type allocation begins with 00 are set aside for tests (GSMA TS.06)."""
_UUID_BEGINS = "00000000-0000-4000-8000-"
_ACCOUNT_BEGINS = "99999"
_PLMN_DIGITS, _ISSUER_DIGITS, _EUICC_ISSUER_DIGITS = 5, 6, 8
SENT = re.compile(
    rb"00100999[0-9]{7,8}|00000000-0000-4000-8000-[0-9a-f]{12}|device-[0-9]{4,}"
    rb"|89[0-9]{4}99999[0-9]{7,9}|[0-9]{5,6}99999[0-9]{4,5}"
    rb"|(?<![0-9])\+?(?:99999[0-9]{4,10}|9{7,8})(?![0-9])"
)
"""Made-up values that a host may send: IMEI, UUID, device id, card number, IMSI, phone number."""
_SHORTEST = 9  # what is shorter has no room for a mark and a number: all of it becomes one digit
_DEVICE = re.compile(r"device-[0-9]{4,}", re.ASCII)


class MadeUp:
    """The made-up values of one recording: the same for the same original at every place."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], str] = {}
        self._made: set[str] = set()
        self._counts: dict[str, int] = {}

    def imei(self, digits: str) -> str:
        """Return an IMEI (15 digits, with its check digit) or an IMEISV (16, its version kept)."""
        base = self._value("imei", digits[:14], TEST_TAC, lambda n: f"{TEST_TAC}{n % 10**6:06}")
        return base + (digits[14:] if len(digits) == 16 else luhn_digit(base))

    def imsi(self, digits: str) -> str:
        """Return an IMSI of the same network: the operator is no person."""
        # In North America the network's code has three digits, elsewhere two.
        network = digits[: _PLMN_DIGITS + digits.startswith("3")]
        return self._account("imsi", network, digits)

    def iccid(self, digits: str) -> str:
        """Return a card number of the same country and issuer; 19 and 20 digits end in a check."""
        base = self._account("iccid", digits[:_ISSUER_DIGITS], digits[:18])
        if len(digits) > 18:
            base += digits[18:-1]
            base += luhn_digit(base)
        return base

    def eid(self, digits: str) -> str:
        """Return the number of an eUICC, of the same maker: 32 digits, modulo 97 (GSMA SGP.29)."""
        base = self._account("eid", digits[:_EUICC_ISSUER_DIGITS], digits[:30])
        return f"{base}{98 - int(base + '00') % 97:02}"

    def uuid(self, text: str) -> str:
        """Return a UUID of version 4, in lower case with dashes."""
        return self._value("uuid", text.lower(), _UUID_BEGINS, lambda n: f"{_UUID_BEGINS}{n:012x}")

    def phone(self, number: str) -> str:
        """Return a telephone number of as many digits; a plus sign stays."""
        digits = number.lstrip("+")
        return number[: -len(digits)] + self._account("phone", "", digits) if digits else number

    def serial(self, text: str) -> str:
        """Return a serial number of the same length, of zeros and a number."""
        if len(text) < _SHORTEST:
            return "0" * len(text)
        zeros = "0" * (len(text) - 4)
        return self._value("serial", text, zeros, lambda n: f"{n % 10**4:0{len(text)}}")

    def device_id(self, text: str) -> str:
        """Return a name for a device that is called by neither its UUID nor its IMEI."""
        if _DEVICE.fullmatch(text):
            return text
        return self._value("device", text, "\0", lambda n: f"device-{n:04}")

    def digest(self, text: str) -> str:
        """Return 64 hex digits in place of the digest of what only this device holds."""
        return self._value("digest", text.upper(), "0" * 32, lambda n: f"{n:064X}")

    @property
    def originals(self) -> dict[str, list[str]]:
        """The originals that were replaced so far, by kind."""
        known: dict[str, list[str]] = {}
        for kind, original in self._values:
            known.setdefault(kind, []).append(original)
        return known

    def is_in(self, text: str) -> bool:
        """Return whether a made-up value that has passed here is part of `text`."""
        return any(made in text for made in self._made)

    def _account(self, kind: str, issuer: str, digits: str) -> str:
        """Return `issuer`, then a mark and a number, as long as `digits`."""
        size = len(digits) - len(issuer)
        if size < _SHORTEST:
            return issuer + "9" * size
        begins, room = issuer + _ACCOUNT_BEGINS, size - len(_ACCOUNT_BEGINS)
        return self._value(kind, digits, begins, lambda n: f"{begins}{n % 10**room:0{room}}")

    def _value(self, kind: str, original: str, begins: str, make: Callable[[int], str]) -> str:
        """Return the made-up value of an original; one that was made up before stays."""
        if original.startswith(begins):
            self._made.add(original)
            return original
        made = self._values.get((kind, original))
        while made is None:
            self._counts[kind] = number = self._counts.get(kind, 0) + 1
            if make(number) not in self._made:
                made = self._values[kind, original] = make(number)
                self._made.add(made)
        return made
