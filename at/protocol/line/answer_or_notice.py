"""Which lines are the reply of the command in flight, and which are notices of the same name.

Three rules: a read reply of 3GPP TS 27.007 has `<n>` in front, its notice does not (and %XTEMP has
a level as a notice alone); the nRF91's subscriptions answer OK alone; and a modem gives its answer
in one piece, so that of two lines of one shape the last before OK is the reply.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

_SIGILS = frozenset("+%#*^$&!")
_CHUNK = re.compile(r"%FOTA:[ \t]*\"?[A-Za-z0-9+/]{2,}={0,2}\"?,[^,]*,[ \t]*[01]", re.ASCII)
_COMMAND_NAME = re.compile(r"\s*[Aa][Tt]\s*([+%#*^$&!][A-Za-z0-9_]+)")

# Names that only notices have.
NOTICES_ONLY = frozenset(
    {
        *("%CESQ", "%NCELLMEAS", "%XMODEMSLEEP", "%XT3412", "%MDMEV", "%XTIME", "%RAI"),
        *("%XPOFWARN", "+CGEV", "+CNEC_ESM", "+CNEC_EMM", "+CEDRXP"),
        *("+CMT", "+CMTI", "+CDS", "#XMODEM", "#XDATAMODE", "#XDFU", "#XGNSSPOS"),
        *("#XNRFPROV", "#XNRFCLOUDFOTA", "#XNRFCLOUDOBSUPLOAD", "#XNRFCLOUDOBSFORWARD"),
        *("%COAP", "%HTTPURC", "%NRFCLOUDOBS", "%SLEEPMODE"),
    }
)
# Names whose set form answers OK alone: their lines are notices, even those that come before OK.
_LATER = frozenset(
    {
        *("+CEREG", "+CREG", "+CGREG", "+C5GREG", "+CSCON", "%XSIM", "+CIND", "%XTEMP", "+CEDRXS"),
        *("%XVBATLOWLVL", "%LOCATION"),
        *("#XNRFCLOUD", "#XNRFCLOUDPOS", "#XGNSS", "#XGPS"),
    }
)
# Serial Modem's own names that only ever answer a command; its others may be notices.
_SERIAL_MODEM_REPLIES = frozenset(
    {
        *("#XSMVER", "#XSLMVER", "#XUUID", "#XLOG", "#XTRACE", "#XBOOTINFO"),
        *("#XNRFCLOUDOBSAUTO", "#XNRFCLOUDOBSCOREDUMP", "#XNRFCLOUDOBSDEVINFO"),
        "#XNRFCLOUDFOTAAUTO",
    }
)
# What a registration may be: TS 27.007, clause 7.2 and the like; 90 is the nRF91's own.
REGISTRATION_STATES = frozenset({*range(12), 90})
# Names whose read reply has `<n>,` in front, and whose notice does not.
REGISTRATIONS = frozenset({"+CEREG", "+CREG", "+CGREG", "+C5GREG"})


def line_name(line: str) -> str:
    """Return the name before the colon of a reply or notice ("+CEREG"), "" if there is none."""
    if line[:1] not in _SIGILS:
        return ""
    name, colon, _ = line.partition(":")
    return name if colon and _is_name(name) else ""


@lru_cache(256)
def _is_name(name: str) -> bool:
    return name[1:].replace("_", "").isalnum()


def command_name(command: str) -> str:
    """Return the name of a command line ("+CEREG" of "AT+CEREG?"), "" if it has none."""
    match = _COMMAND_NAME.match(command)
    return match.group(1).upper() if match else ""


def fields(line: str) -> list[str]:
    """Return the fields after the colon, as they stand; commas in quotes do not separate."""
    parts: list[str] = []
    for number, piece in enumerate(line.partition(":")[2].split('"')):
        if number % 2:
            parts[-1] += f'"{piece}"'
            continue
        first, *rest = piece.split(",")
        parts[-1:] = [(parts[-1] if parts else "") + first]
        parts += rest
    return [part.strip() for part in parts]


def is_registration_reply(line: str) -> bool:
    """Return whether a line is the reply of AT+CEREG? and its like: field two is a bare integer.

    A bare area may be all digits, too (Altair): a state has one or two, or, padded with zeros
    (Iridium), fields in quotes behind it.
    """
    parts = fields(line)
    if len(parts) < 2 or not parts[1].isdecimal():
        return False
    if len(parts[1]) <= 2:
        return True
    is_state = int(parts[1]) in REGISTRATION_STATES
    return is_state and (len(parts) == 2 or parts[2][:1] in {"", '"'})


def is_chunk_reply(line: str) -> bool:
    """Return whether a %FOTA line is a chunk: the last line of the answer to %NRFCLOUDFOTA=1."""
    return _CHUNK.fullmatch(line) is not None


# Names whose read reply and notice have different shapes.
REPLY_SHAPES: Mapping[str, Callable[[str], bool]] = {
    **dict.fromkeys(REGISTRATIONS, is_registration_reply),
    "+CSCON": lambda line: fields(line)[1:2] in (["0"], ["1"]),  # a mode
    "%XTEMP": lambda line: len(fields(line)) == 1,  # a notice has a level before the degrees
    "%FOTA": is_chunk_reply,
    "#XNRFCLOUD": lambda line: len(fields(line)) > 2,  # a notice has no tag and no device
}
# Names of lines that answer a command of another name.
ANSWERS_TO = {"%BCINFOSC": "%BCINFO", "%BCINFONC": "%BCINFO", "%FOTA": "%NRFCLOUDFOTA"}
# Names whose lines are the result of their command, before its OK or after it.
_EARLY_OR_LATE = frozenset({"%BCINFOSC", "%BCINFONC", "%NRFCLOUDLOCATION"})
# Names whose read reply and notice have the same shape.
ONE_SHAPE = frozenset({"%XSIM", "%XVBATLOWLVL"})
# The last is one of other makers' modems.
_ONE_SHAPE_OR_NONE = ONE_SHAPE | _EARLY_OR_LATE | {"+CIND", "+CEDRXS", "+CPIN"}


def is_syntax(line: str) -> bool:
    """Return whether a line tells what parameters a command takes: the reply of a test form."""
    return line.partition(":")[2].lstrip().startswith(("(", "<"))


def looks_like_notice(line: str) -> bool:
    """Return whether a line can only be a notice, whatever command was sent."""
    name = line_name(line)
    if is_reply := REPLY_SHAPES.get(name):
        return not is_reply(line) and "(" not in line
    if name.startswith("#X"):
        return name not in _SERIAL_MODEM_REPLIES and not is_syntax(line)
    return name in NOTICES_ONLY


def is_reply_alone(name: str, line: str) -> bool:
    """Return whether a line of this name can only be a reply, whatever command was sent."""
    return name not in _ONE_SHAPE_OR_NONE and not looks_like_notice(line)


def _any_line(_line: str) -> bool:
    return True


class Owner(Struct, frozen=True):
    """Which lines belong to a command: those of `name` that `owns` accepts.

    `bare`: lines without a name belong to it, too ("mfw_nrf9160_1.3.5"). `needs_line`: an OK
    without a line is no answer to it.
    """

    name: str
    owns: Callable[[str], bool] = _any_line
    bare: bool = True
    needs_line: Callable[[], bool] = lambda: False


def owner_of(command: str) -> Owner:
    """Return the owner of the answer to a command that is known by its text alone."""
    text = command.partition(";")[2] if command_name(command) == "%XSUDO" else ""
    name = command_name(f"AT{text}" if text else command)
    tail = command.rstrip()
    if tail.endswith("=?"):
        return Owner(name, bare=not name)
    if tail.endswith("?"):
        return Owner(name, REPLY_SHAPES.get(name, _any_line), bare=not name)
    if name == "%NRFCLOUDFOTA":
        return Owner(name, is_chunk_reply, bare=False)
    if name in NOTICES_ONLY or (name in _LATER and "=" in tail):
        return Owner(name, lambda _line: False, bare=False)
    return Owner(name)
