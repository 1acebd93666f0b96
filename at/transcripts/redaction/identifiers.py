"""Finds in any text what names a device, a SIM or a person, and puts a made-up value there.

What was replaced once is replaced wherever it appears; else a text must look like an identifier.
"""

import re
from collections.abc import Callable
from uuid import UUID

from at.protocol.check_digit import ends_in_luhn_digit, luhn_digit
from at.protocol.dialect import CONTROL_SEQUENCE
from at.protocol.errors import ParseError
from at.protocol.redaction.command_redaction import MARKER
from at.transcripts.redaction import resigning
from at.transcripts.redaction.made_up import MadeUp

UNREADABLE = "{redacted:identity}"
_UNREADABLE_TOKEN = f"eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZWRhY3RlZCI6dHJ1ZX0.{'A' * 86}"
# Signed texts in base64url: an answer of %KEYGEN or %ATTESTTOKEN, whose COSE_Sign1 with ES256 is
# d2 84 43 a1 01 26 first; a JWT; and what is left of either on a line that lost something. Base64
# behind a line's end is that of a PEM text.
_SIGNED = re.compile(
    r"(?<![\w-])(?:(?P<attested>[\w-]{20,}\.0oRDoQEm[\w-]{80,})|(?P<jwt>eyJ[\w-]*\.[\w-]+\.[\w-]+)"
    r"|(?P<rest>(?:eyJ|2dn3)[\w-]{20,}[\w.-]*|(?<!\n)(?:MII|MFkw)[\w-]{100,}[\w.-]*))",
    re.ASCII,
)
# What each of the looks below has; most lines of a log have none of it.
_MAY_NAME = re.compile(r"[0-9A-Fa-f](?:[0-9A-Fa-f]{5}|[0-9]{3}[ -][0-9])|\+[1-9]")
_SIGNED_SIGNS = ("eyJ", "2dn3", "MII", "MFkw")
_ESCAPE_SEQUENCE = re.compile(f"({CONTROL_SEQUENCE})")
_UUID = re.compile(
    r"(?<![0-9A-Za-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9A-Za-z])", re.IGNORECASE
)
# UUIDs that name no device: nil, and those of the Bluetooth SIG.
_NOBODY = re.compile(r"0{8}(?:-0{4}){3}-0{12}|.{8}-0000-1000-8000-00805f9b34fb", re.IGNORECASE)
_LABELLED = re.compile(
    r"(?<![a-z])(imeisv|imei|meid|imsi|iccid|eid|msisdn|phone number|own(?=: )"
    r"|serial(?:[ _-]?(?:number|num|no|nr))?|s/n|snr|sn(?=[ :=]{1,2}[0-9]{9})|dev-id|j-?link"
    r"|tty\.usbmodem|cu\.usbmodem"
    # Of which the kit's serial number may be a part.
    r"|(?:client|device)[ _-]?id[\"']?[\s:=]{1,5}[\"']?(?:[a-z][\w.]{0,31}[_-])?"
    r"(?=[0-9]{8,12}(?![0-9a-z])))"
    r"([^0-9a-z+]{0,5})"
    r"(\+?[0-9]{6,32})(?![0-9])",
    re.IGNORECASE,
)
# A serial number in hex, behind the name of a kit, as Linux and the tools of Nordic print it.
_USB_SERIAL = re.compile(
    r"(?<=_)[0-9A-F]{9,32}(?=-if[0-9]{2}(?![0-9A-Za-z]))"
    r"|(?<=THINGY91X_)[0-9A-F]{9,16}(?![0-9A-Za-z_])"
)
# What a path calls a person: below the directory of all users, or that of one who develops there.
_HOME = re.compile(
    r"(?i)(\b[A-Z]:[\\/]{1,4}Users[\\/]{1,4}|(?<![\w.])/Users/)(?!Public[\\/]|Shared/)"
    r"(?:[^\\/\"'<>|:;,\r\n]{1,64}(?=[\\/])|[^\\/\"'<>|:;,)\]}`\s]{1,64}"
    r"(?=[\"'<>)\]}`\r\n]|$))"
    r"|((?<![\w.])/home/)[\w.-]{1,64}"
    r"(?=/(?:\.\w|(?:ncs|zephyr|nordic|nrf|work|project|dev|src|git|repo|venv|bin|snap"
    r"|Documents|Downloads|Desktop)[\w-]*/"
    r"|[^\s\"':]{1,200}\.(?:zip|hex|bin|elf|log|txt|py|sh|[ch]|cpp|conf|json|ya?ml|pem|crt)\b))"
    r"|((?<=HomeDir: )/home/|(?<=\bHOME=)/home/)[\w.-]{1,64}"
)
# Before the prompt of a shell of the host.
_PROMPT = re.compile(
    r"(?<![\w.@/:-])(?:\([\w.-]{1,40}\) )?[\w.-]{1,40}@[\w.-]{1,60}"
    r"(?=:? ?[~/][^\s:]{0,60} ?[#$%](?:\s|$))"
)
_HOME_SIGNS = ("sers\\", "sers/", "/home/")
# It begins with a digit, by which the search is fast, and then looks at what is before that.
_LONG_NUMBER = re.compile(
    r"[0-9](?:(?<![0-9a-z].)(?P<device>(?<=(?<![0-9a-z])nrf-.))?"
    r"|(?P<word>(?<=[g-z].)|(?<=nrf.)|(?<=device.)))"
    r"(?:(?!(?<=0)0{10})[0-9]{14}|[0-9]{17,19}|[0-9]{31})(?=F?(?![0-9a-z]))",
    re.IGNORECASE,
)
_GROUPED_IMSI = re.compile(
    r"(?ai)(?<![a-z])(imsi[^0-9a-z]{1,5})"
    r"([0-9]{3}[ /-](?:[0-9]{2}[ /-]?[0-9]{10}|[0-9]{3}[ /-][0-9]{9}))(?![0-9])"
)
# As labels print an IMEI, with its check digit, version or neither, and a card number.
_GROUPED = re.compile(
    r"(?<![\w-])(?:(?P<imei>[0-9]{2}([- ])[0-9]{6}\2[0-9]{6}(?:\2[0-9]{1,2})?)"
    r"|(?P<iccid>89[0-9]{2}([- ])(?:[0-9]{4}\4){3}[0-9]{2,4}(?:\4[0-9]{1,4})?))(?![\w-])",
    re.ASCII,
)
_PHONE = re.compile(r'(?<=")\+[0-9]{7,15}(?=")')
# As text writes one (ITU-T E.164), in groups (E.123) or not; a length of time or of anything else
# has its unit behind it.
_WRITTEN_PHONE = re.compile(
    r"(?<![\w+.,*/^-])\+(?:[1-9][0-9]{7,14}"
    r"|(?=(?:[ ()-]{0,2}[0-9]){8,15}(?![0-9]))[1-9][0-9]{0,2}"
    r"(?:(?:[ -]\(?|\)[ -]?)[0-9]{1,8}){1,6})"
    r"(?![\w-]|[.,:][0-9]|(?: [0-9]+)* ?(?:[mun]?s|bytes?|ticks?|Hz|%)\b)",
    re.ASCII,
)
_DIALLED = re.compile(r"(?<!\w)(ATD[TPI]? ?)(\+?[0-9]{7,15})(?![0-9])", re.IGNORECASE)
_COUNTRIES = "234567"  # with these begin the codes of countries (ITU-T E.212), and so every IMSI
_QUOTED = re.compile(r'"[^"]*(?:"|\Z)')
_KINDS = ("imei", "imsi", "iccid", "eid", "uuid", "serial", "phone")
"""What is known again wherever it stands, by the name of the method that makes one up."""
Change = Callable[[str], str]


class Identifiers:
    """The identifiers of one recording, each with its made-up value."""

    def __init__(self) -> None:
        self.made_up = MadeUp()
        self.key_ids: set[str] = set()
        """The `kid` of each key that was replaced by the published one."""
        self._builds: set[str] = set()
        self._tokens: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None
        self._known_count = 0

    def replaced(self, text: str, *, typed: bool = False, sent: bool = False) -> str:
        """Return a text with made-up identifiers.

        `typed`: long numbers outside quotes are what the line's grammar makes them, such as a time.
        `sent`: by a host, which has signed texts from elsewhere: a replay takes any there.
        """
        if "\x1b" not in text:
            return self._part_replaced(text, typed=typed, sent=sent)
        # The letter that ends an escape sequence is no part of the word behind it.
        parts = _ESCAPE_SEQUENCE.split(text)
        parts[::2] = [self._part_replaced(part, typed=typed, sent=sent) for part in parts[::2]]
        return "".join(parts)

    def _part_replaced(self, text: str, *, typed: bool, sent: bool) -> str:
        if not sent and any(sign in text for sign in _HOME_SIGNS):
            text = _HOME.sub(lambda match: f"{match[1] or match[2] or match[3]}user", text)
        if not sent and "@" in text:
            text = _PROMPT.sub("user@host", text)
        if not _MAY_NAME.search(text) and not any(sign in text for sign in _SIGNED_SIGNS):
            return self._known_replaced(text)
        text = _SIGNED.sub(UNREADABLE if sent else self._signed, text)
        text = _UUID.sub(lambda match: self.uuid(match.group()), text)
        text = _LABELLED.sub(lambda m: f"{m[1]}{m[2]}{self._labelled(m) or m[3]}", text)
        text = _GROUPED_IMSI.sub(self._grouped_imsi, text)
        text = _USB_SERIAL.sub(lambda match: self.serial(match.group()), text)
        text = _PHONE.sub(lambda match: self.made_up.phone(match.group()), text)
        text = _DIALLED.sub(lambda match: match[1] + self.made_up.phone(match[2]), text)
        if typed:
            text = _QUOTED.sub(lambda match: self._numbers(match.group()), text)
        else:
            text = _WRITTEN_PHONE.sub(self._phone, text)
            text = self._numbers(text)
        return self._known_replaced(text)

    def keep_builds(self, text: str) -> None:
        """Note the UUIDs of a text as those of a firmware, which every device with it has."""
        self._builds |= {match.group().lower() for match in _UUID.finditer(text)}

    def uuid(self, text: str) -> str:
        """Return another UUID; one that names no device stays, a damaged one loses its digits."""
        if not _UUID.fullmatch(text):
            is_words = re.search("[0-9]", text) is None  # that it is being made
            return text if is_words or MARKER.fullmatch(text) else re.sub("[0-9A-Fa-f]", "0", text)
        if text.lower() in self._builds or _NOBODY.fullmatch(text):
            return text
        return self.made_up.uuid(text)

    def serial(self, text: str) -> str:
        """Return another serial number, which is an IMEI or IMEISV on most modems."""
        if re.fullmatch(r"(?!0{11})[0-9]{15,16}", text, re.ASCII):
            return self.made_up.imei(text)
        if re.fullmatch(r"\(?[0-9]{0,2}(?:-[0-9])?\)?", text, re.ASCII) or MARKER.search(text):
            return text  # the version of the software, as +CGSN=3 prints it, or what +CGSN takes
        return self.made_up.serial(text)

    def imsi(self, text: str) -> str:
        """Return another IMSI; a damaged one loses its digits."""
        if not re.fullmatch(r"[0-9]{6,15}", text, re.ASCII):
            return _nines(text)
        return self.made_up.imsi(text)

    def iccid(self, text: str) -> str:
        """Return another card number, its padding kept; a damaged one loses its digits."""
        digits = text.rstrip("Ff")
        if not re.fullmatch(r"[0-9]{18,20}", digits, re.ASCII):
            return _nines(text)
        return self.made_up.iccid(digits) + text[len(digits) :]

    def device_id(self, text: str) -> str:
        """Return another device id: in its old form where that is known, else `device-0001`."""
        other = self.replaced(text)
        if other != text or not text or self.made_up.is_in(text) or MARKER.search(text):
            return other
        return self.made_up.device_id(text)

    def token(self, text: str) -> str:
        """Return a JWT with other names, signed by the published key."""
        if text == _UNREADABLE_TOKEN:
            return text
        return self._resigned(text, self._other_jwt, _UNREADABLE_TOKEN)

    def generated_key(self, text: str) -> str:
        """Return an answer of %KEYGEN with other names, signed by the published key."""
        return self._resigned(text, self._other_key, UNREADABLE)

    def attestation(self, text: str) -> str:
        """Return an attestation token with other names, signed by the published key."""
        return self._resigned(
            text, lambda old: resigning.resigned_attestation(old, self.uuid), UNREADABLE
        )

    def certificate(self, text: str) -> str:
        """Return a client certificate with other names, signed by the published key."""
        return self._resigned(
            text,
            lambda old: resigning.resigned_certificate(old, self.device_id),
            "{redacted:certificate}",
        )

    def _signed(self, match: re.Match[str]) -> str:
        """Return a signed text signed anew; what is left of one says nothing."""
        text = match.group()
        if match.lastgroup == "jwt":
            return self.token(text)
        if match.lastgroup == "rest":
            return UNREADABLE
        other = self.generated_key(text)
        return self.attestation(text) if other == UNREADABLE else other

    def _other_jwt(self, text: str) -> str:
        other, kid = resigning.resigned_jwt(text, self.replaced, self.device_id)
        self.key_ids |= {kid.lower()} if kid else set()
        return other

    def _other_key(self, text: str) -> str:
        other, kid = resigning.resigned_key(text, self.uuid, self.device_id)
        self.key_ids.add(kid)
        return other

    def _resigned(self, text: str, make: Change, unreadable: str) -> str:
        """Return what `make` makes of a text, the same each time; `unreadable` if it cannot."""
        if MARKER.fullmatch(text):
            return text
        if text not in self._tokens:
            try:
                other = make(text)
            except (ParseError, ValueError, RecursionError, ImportError):
                return unreadable
            # Signatures are random: another pass over the same line must not sign again.
            self._tokens[text] = self._tokens[other] = other
        return self._tokens[text]

    def is_labelled(self, text: str, end: int) -> bool:
        """Return whether what ends there stands behind the name of what it is."""
        in_groups = any(one.end() == end for one in _GROUPED_IMSI.finditer(text))
        return in_groups or any(
            one.end() == end and self._labelled(one) for one in _LABELLED.finditer(text)
        )

    def _labelled(self, match: re.Match[str]) -> str:
        """Return another number of the kind that is named, "" where the number is none of it."""
        label, number = match[1].lower(), match[3]
        match label:
            case "imei" | "imeisv" | "meid" if len(number) in {14, 15, 16}:
                return self.made_up.imei(number)[: len(number)]
            case "imsi":
                return self.imsi(number)
            case "iccid":
                return self.iccid(number)
            case "eid" if len(number) == 32:
                return self.made_up.eid(number)
            case "msisdn" | "phone number" | "own" if len(number) < 17:
                return self.made_up.phone(number)
            case "imei" | "imeisv" | "meid" | "eid" | "msisdn" | "phone number" | "own":
                return ""
        # Shorter ones are rates and counters; a path puts zeros before it, and an IMEI has its own.
        digits = number if len(number) in {15, 16} else number.lstrip("0")
        if len(digits) > 7:
            return number[: -len(digits)] + self.serial(digits)
        return number if len(number) > 7 else ""

    def number(self, text: str) -> str:
        """Return another telephone number; a short one, or a name in its place, stays."""
        return self.made_up.phone(text) if re.fullmatch(r"\+?[0-9]{7,15}", text) else text

    def _phone(self, match: re.Match[str]) -> str:
        digits = re.sub("[^0-9]", "", match.group())
        return _in_groups(self.made_up.phone(f"+{digits}")[1:], match.group())

    def _numbers(self, text: str) -> str:
        return _LONG_NUMBER.sub(self._number, _GROUPED.sub(self._grouped, text))

    def _grouped(self, match: re.Match[str]) -> str:
        """Return a number that is written in groups as another one, in the same groups."""
        digits = re.sub("[- ]", "", match.group())
        if match["imei"]:
            other = self.made_up.imei(digits + luhn_digit(digits) * (len(digits) == 14))
        else:
            other = self.iccid(digits)
        return _in_groups(other, match.group())

    def _grouped_imsi(self, match: re.Match[str]) -> str:
        return match[1] + _in_groups(self.imsi(re.sub("[^0-9]", "", match[2])), match[2])

    def _number(self, match: re.Match[str]) -> str:
        """Return a long number changed if it has the form of an IMEI, a card number or an EID."""
        digits = match.group()
        if len(digits) == 15 and (match["device"] is not None or ends_in_luhn_digit(digits)):
            digits = self.made_up.imei(digits)
        elif match["word"] is not None:
            pass  # a word and a number behind it may be anything else
        elif len(digits) == 32 and digits.startswith("89"):
            digits = self.made_up.eid(digits)
        elif len(digits) != 32 and digits.startswith("89"):
            digits = self.made_up.iccid(digits)
        elif len(digits) == 15 and digits[0] in _COUNTRIES and not _is_fraction(match):
            digits = self.made_up.imsi(digits)
        return digits

    def _known_replaced(self, text: str) -> str:
        """Return a text without the originals that were replaced before."""
        originals = self.made_up.originals
        count = sum(map(len, originals.values()))
        if count != self._known_count:
            self._known, self._known_count = _known_pattern(originals), count
        return text if self._known is None else self._known.sub(self._again, text)

    def _again(self, match: re.Match[str]) -> str:
        kind, text = str(match.lastgroup), match.group()
        if kind == "uuid":
            other = self.made_up.uuid(str(UUID(text)))
            return other if "-" in text else other.replace("-", "")
        make: Change = getattr(self.made_up, kind)
        return make(text)[: len(text)]  # an IMEI stood there without its check digit


def _in_groups(digits: str, groups: str) -> str:
    """Return digits in the groups of another number."""
    left = iter(digits)
    return re.sub("[0-9]", lambda _: next(left), groups)


def _is_fraction(match: re.Match[str]) -> bool:
    return match.string[: match.start()].endswith(".")


def _nines(text: str) -> str:
    return re.sub("[0-9]", "9", text)


def _known_pattern(originals: dict[str, list[str]]) -> re.Pattern[str] | None:
    """Return the pattern of what was replaced before, one named group for each kind."""
    behind = {"imei": "[0-9]{0,2}", "iccid": "[0-9]{0,2}", "eid": "[0-9]{2}"}
    kinds = []
    for kind in _KINDS:
        known = [re.escape(original) for original in originals.get(kind, ())]
        if kind == "uuid":
            known = [original.replace(r"\-", "-?") for original in known]
        if known:
            kinds.append(f"(?P<{kind}>(?:{'|'.join(known)}){behind.get(kind, '')})")
    if not kinds:
        return None
    return re.compile(rf"(?<![0-9])(?:{'|'.join(kinds)})(?![0-9])", re.IGNORECASE)
