"""Checks before anything is sent: no value breaks out of its quotes, no line out of its command."""

import re

from at.protocol.errors import UnsafeArgument

# CR and LF end a command, NUL may, Ctrl-Z and Esc end or abort a text, backspace and DEL edit it.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_BUT_LINE_ENDS = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_QUOTED = re.compile('"[^"]*"')
# Without quotes, as most are.
_PLAIN = re.compile("[Aa][Tt][ !#-~]*")


def quoted(value: str, *, multiline: bool = False) -> str:
    """Return `value` in quotes. Raises UnsafeArgument where it would break out of them.

    `multiline`: it may hold CR and LF (PEM).
    """
    if '"' in value:
        raise UnsafeArgument("the value holds a quote: it would end its own text early")
    if match := _forbidden(multiline).search(value):
        raise UnsafeArgument(f"the value holds {_named(match)}: it would break out of its quotes")
    return f'"{value}"'


def check_line(line: str, *, multiline: bool = False, longest: int = 4095) -> str:
    """Return `line` if it is one command and nothing else. Raises UnsafeArgument.

    `multiline`: its quoted text may hold CR and LF. `longest`: the dialect's limit in bytes.
    """
    if len(line) <= longest and _PLAIN.fullmatch(line):
        return line
    if not line[:2].upper() == "AT":
        raise UnsafeArgument(
            f"{_shown(line)} is no AT command: it does not begin with AT", hint="write AT before it"
        )
    if line.count('"') % 2:
        raise UnsafeArgument(
            f"{_shown(line)} has an odd quote", hint="the modem would wait for its end for ever"
        )
    outside = _QUOTED.sub("", line)
    if match := _CONTROL.search(outside):
        raise UnsafeArgument(f"{_shown(line)} holds {_named(match)} outside quotes")
    if match := _forbidden(multiline).search(line):
        raise UnsafeArgument(f"{_shown(line)} holds {_named(match)} in its quotes")
    try:
        size = len(line.encode())
    except UnicodeEncodeError:
        raise UnsafeArgument(f"{_shown(line)} cannot be written as UTF-8") from None
    if size > longest:
        raise UnsafeArgument(
            f"{_shown(line)} has {size} bytes; the modem takes {longest} and would lose the rest"
        )
    return line


def _forbidden(multiline: bool) -> re.Pattern[str]:
    return _CONTROL_BUT_LINE_ENDS if multiline else _CONTROL


def _named(match: re.Match[str]) -> str:
    names = {"\r": "CR", "\n": "LF", "\x00": "NUL", "\x1a": "Ctrl-Z", "\x1b": "Esc"}
    return names.get(match.group(), f"control character 0x{ord(match.group()):02x}")


def _shown(line: str) -> str:
    """Return the name of the command: its values may be secret, also where they break V.250."""
    # Only here: what a program writes is hardly ever refused, and loading this takes time.
    from at.protocol.redaction.command_redaction import without_secrets

    return repr(re.sub(r"(=|(?<=\?)).*", "", without_secrets(line), count=1, flags=re.DOTALL)[:24])
