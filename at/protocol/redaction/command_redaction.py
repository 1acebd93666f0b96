"""Hides the secret parameters of AT commands and answers wherever a text quotes them. Pure.

A name of `secret_parameters` is found in any spelling: case, blanks, behind another command, in a
shell's quotes, behind a log's prefix, escaped (`escaped_text`). Its parameters are read by V.250; a
secret one becomes `{redacted:NAME}` within its quotes, and everything else stays. What does not
parse, or was cut, loses all that follows the name.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from at.protocol.redaction.escaped_text import cleaned_in_each_spelling
from at.protocol.redaction.rules import Hidden, Parameter, Rule
from at.protocol.redaction.secret_parameters import (
    ANSWER,
    NOT_DAMAGED,
    QUERY,
    SET,
    TELLING,
    rule_of,
)

MARKER = re.compile(r"\{redacted:([a-z-]+)(?::([0-9]{1,9}))?\}")
"""What stands for a secret: its name, and how many bytes it had where nothing else tells."""

_BLANKS = re.compile(r"[ \t]*")
# What an nRF93M1 fetched: JSON, with the address of a file that its query opens.
_FETCHED = re.compile(r"%COAP:[^\r\n]*", re.IGNORECASE)
_ADDRESS_QUERY = re.compile(r"\?[^\"]+")
_URL_SECRET = re.compile(r"://(?=[^/?#]*@)|\?|(?<=/)(?=[^/]*=[^/]*$)")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*?)(-----END \1-----|[\r\n]{0,2}\Z)", re.DOTALL
)
# A chunk of observability data, which may hold a core dump: Serial Modem leaves it out, too.
_CHUNK = re.compile(r"\bMC:[A-Za-z0-9+/]{4,}={0,2}(:?)")
# A Wi-Fi network's name and password, which its shell takes in any order, by options or places.
_WIFI = re.compile(
    r"\b(wifi (?:connect|cred add|ap enable)|wifi_cred add) +(?=[\"'-]|\S+ +[0-9])[^\r\n\0]+"
)
# A part of a key, a key or a certificate, which Zephyr's shell for them stores.
_CREDENTIAL = re.compile(
    r"(\bcred (?:buf +(?!(?:clear|load)\b)|add +(?:[^\s{]+ +){4}))[^\s{][^\r\n\0]*"
)

_SIGN = re.compile("[+%#^$*!]")
_QUOTE_OR_END = re.compile(r"[\"\r\n]|\0+")
_LINE_ENDS = "\r\n\0"
# A NUL ends a line if another one begins behind it; else noise put it there.
_FRESH = re.compile(r"\0*(?:$|[\r\n]|AT|[+%#][A-Za-z]|OK|ERROR|>)", re.IGNORECASE)
_CLOSERS = {"'": "'", '"': '"', "`": "`", "(": ")", "[": "]", "{": "}", "<": ">"}
_BEHIND_CLOSER = re.compile(r"$|\s|[,.;:)\]}>`]{1,3}(?:\s|$)")
# Another command, none, or the next words of a message.
_NEXT = re.compile(r";[ \t]*(?:$|[+%#*^$&!@\r\n\0]|[A-Za-z][0-9]*(?=[ ;\r\n\0]|$)|[a-z]{2,}[ :])")
# What makes of a name neither a word of a message nor a command or answer.
_NEITHER = re.compile(r"[~\[({\\<*+@!|&^$%#]|[\"'`][A-Za-z0-9]|[^\w\s]{1,3}=")
# The parameters of an answer whose colon a noisy line lost or damaged.
_WITHOUT_COLON = re.compile(
    r"(?:[^\w\s]|[\x00-\x1f])?[ \t]*[0-9]{1,3},[ \t]*[0-9\"]|>[ \t]*\"", re.ASCII
)
# What may be a name with a byte damaged; the longest has 20 bytes.
_WORDS = re.compile(r"[^ \r\n\"=:,'`(){}\[\]<>](?:[^ \r\n\"=:,'`(){}<>\[]|\[(?![0-9])){2,25}")
# What such a word has: the loss of a sign leaves its letters.
_SUSPECT = re.compile(r"[+%#]|[A-Z]{2}")
_SUSPECT_OR_AT = re.compile(rf"{_SUSPECT.pattern}|(?<![a-z])at[a-z]")
_LONGEST_WORD = 26
_BETWEEN = " \r\n\"=:,'`(){}<>"
_WORD_END = re.compile(f"[{_BETWEEN}]")
_NO_NAME_END = re.compile(r"[^A-Z]+\Z")
_VALUE = re.compile(r"[0-9\"]")
_ANY = "\1"
_LONG_NAMES = tuple(name for name in SET if len(name) > 12)
_WORD = re.compile(r"\b[a-z]{2,}\b")
# In a sentence, too; but noise may have put all of it before the sign of what is set.
_FORM_END = (
    r"(?=[ \t]*(?:$|[\r\n\0;])|(?:\\[rn])+(?:[\"']|$)"  # as a shell's or a program's text spells it
    r"|[,.)\]}>'`]{1,3}(?:\s(?![^\w\r\n]*=)|$)|\"(?:[\r\n]|$))"
)
_TEST_FORM = re.compile(r"=[ \t]*\?" + _FORM_END)
_READ_FORM = re.compile(r"\?" + _FORM_END)
_RANGES = re.compile(r":[ \t]*\([0-9,\- \t]*\)", re.ASCII)  # of an answer to a test command
_WORD_FOR_VALUE = re.compile(r"<[A-Za-z][A-Za-z_ -]*>")  # of a manual or a hint
_IN_HINTS = frozenset({(("pin", "PIN"),), (("user", "USER"), ("password", "PASSWORD"))})
"""What stands for all secrets of a command to be pasted; a PIN has 4 to 8 digits (TS 31.101)."""
_SENTENCE = 80
"""Characters before a command in which a backtick may have begun what is to be pasted."""
# Of an address too, and of a cipher suite.
_NUMBER = re.compile(r"-?[0-9]*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|0[xX][0-9A-Fa-f]{4}", re.ASCII)


def without_secrets(text: str) -> str:
    """Return a line, a message or a whole log without the secrets of its commands and answers."""
    return cleaned_in_each_spelling(text, without_secrets_as_it_stands)


@cache
def _names() -> re.Pattern[str]:
    """Return the pattern of a name in any spelling; only a text that has a sign pays for it."""
    # The longest first, so that +CPINR is never +CPIN and a rest.
    names = sorted({*SET, *ANSWER}, key=len, reverse=True)
    spelled = "|".join(r"[ \t]*".join(map(re.escape, name)) for name in names)
    return re.compile(
        rf"(?=[+%#^$*!;A])(?P<prefix>AT[ \t]*|;)?"
        rf"(?P<name>{spelled}|(?P<telling>{TELLING}))(?![A-Za-z0-9_])[ \t]*",
        re.IGNORECASE | re.ASCII,
    )


def without_secrets_as_it_stands(text: str) -> str:
    """Return a text without the secrets that it shows without any other reading."""
    if "PRIVATE KEY-----" in text:  # in quotes or without them, of a command or of none
        text = _PRIVATE_KEY.sub(r"-----BEGIN \1-----{redacted:key}\3", text)
    if "://" in text and "%" in text:
        text = _FETCHED.sub(_without_queries, text)
    if "MC:" in text:
        text = _CHUNK.sub(r"MC:{redacted:chunk}\1", text)
    if "wifi" in text:
        text = _WIFI.sub(r"\1 {redacted:password}", text)
    if "cred " in text:
        text = _CREDENTIAL.sub(r"\1{redacted:key}", text)
    match = _names().search(text) if _SIGN.search(text) else None
    if match is None:
        return _without_damaged(text)
    pieces: list[str] = []
    done, closer = 0, ""
    while match is not None:
        if match["prefix"] != ";":  # else it is in the quotes of the command before it
            closer = _CLOSERS.get(text[match.start() - 1 : match.start()], "")
            before = text[max(0, match.start() - _SENTENCE) : match.start()]
            if not closer and before.count("`") % 2:
                closer = "`"
        shown, end = _shown(text, match, closer)
        pieces += (text[done : match.end()], shown)
        done = end
        match = _names().search(text, done)
    return _without_damaged("".join(pieces) + text[done:])


def _without_damaged(text: str) -> str:
    """Return a text without what follows a name that one byte makes no secret command's any more.

    Noise on the line turns, loses or doubles a byte: +CGAUT: for +CGAUTH:.
    """
    pieces: list[str] = []
    done = 0
    looked_at = 0
    for match in _suspects(text):
        shown = _damaged_name(match.group())
        if shown is None or match.start() < looked_at:
            continue
        # Behind a line that a log line cut stands its stamp.
        if text[match.end() : match.end() + 6].upper().startswith((" ERROR", "[")):
            continue
        at = match.start() + shown
        if _READ_FORM.match(text, at):
            continue
        looked_at = _end_of_line(text, at, "")
        if _VALUE.search(text, at, looked_at) and not MARKER.match(text, at):
            pieces += (text[done:at], "{redacted:rest}")
            done = looked_at
    return "".join(pieces) + text[done:]


def _suspects(text: str) -> Iterator[re.Match[str]]:
    """Yield the words that may be a damaged name."""
    looked_at = 0
    for sign in (_SUSPECT_OR_AT if "at" in text else _SUSPECT).finditer(text):
        begin = sign.start()
        if begin < looked_at:
            continue
        earliest = max(looked_at, begin - _LONGEST_WORD)
        while begin > earliest and text[begin - 1] not in _BETWEEN:
            begin -= 1
        end = _WORD_END.search(text, sign.start())
        looked_at = len(text) if end is None else end.start()
        yield from _WORDS.finditer(text, begin, looked_at)


@lru_cache(1024)
def _damaged_name(word: str) -> int | None:
    """Return how much of a word is the name of a secret command but for one byte; None if none."""
    if word.islower() and word[0] not in "a+%#":
        return None
    word = word.encode("latin-1", "replace").upper().decode("latin-1")  # no letter becomes two
    start = 2 if word[:2] == "AT" else len(word) - len(word.lstrip(";"))
    name = word[start:]
    whole = _NO_NAME_END.sub("", name)
    if whole in SET or whole in ANSWER:
        return None if name == whole else start + len(whole)  # the sign behind it is damaged
    if whole in NOT_DAMAGED:
        return None
    for long in _LONG_NAMES:
        if name.startswith(long):  # text without quotes follows, and the sign was lost
            return start + len(long)
    for one in {name, whole}:
        if one in _near() or any(
            f"{one[:at]}{_ANY}{one[at + 1 :]}" in _near() for at in range(len(one))
        ):
            return start + len(one)
    return None


@cache
def _near() -> frozenset[str]:
    """Return the names of all secret commands with one byte lost, turned or put between."""
    near: set[str] = set()
    for name in {*SET, *ANSWER}:
        for at in range(len(name)):
            rest = name[at + 1 :]
            near |= {name[:at] + rest, name[:at] + _ANY + rest, name[:at] + _ANY + name[at:]}
        near.add(name + _ANY)
    return frozenset(near)


def _shown(text: str, match: re.Match[str], closer: str) -> tuple[str, int]:
    """Return what is shown of the text behind a name, and where what it replaces ends."""
    name = re.sub(r"[ \t]", "", match["name"]).upper()
    at, sign = match.end(), text[match.end() : match.end() + 1]
    if sign == "=" and (name in SET or match["telling"]):
        if test := _TEST_FORM.match(text, at):
            return test.group(), test.end()
        return _parameters_shown(text, at, rule_of(name), closer, ";")
    if match["prefix"] and name in SET:
        if read := _READ_FORM.match(text, at):
            return read.group(), read.end()
        closed = sign == closer and _BEHIND_CLOSER.match(text, at + 1)
        if (
            not sign
            or sign in _LINE_ENDS
            or closed
            or _NEXT.match(text, at)
            or MARKER.match(text, at)
        ):
            return "", at
        return "{redacted:rest}", _end_of_line(text, at, closer)
    if sign == ":" and name in ANSWER:
        if _RANGES.match(text, at):
            return "", at
        return _parameters_shown(text, at, ANSWER[name], "", "")
    if _NEITHER.match(text, at) or (name in ANSWER and _WITHOUT_COLON.match(text, at)):
        return "{redacted:rest}", _end_of_line(text, at, closer)
    return "", at


def _parameters_shown(
    text: str, at: int, rule: Rule, closer: str, separator: str
) -> tuple[str, int]:
    """Return the parameters from the sign at `at` on, without the secret ones, and their end."""
    found = _parameters(text, at + 1, closer, _LINE_ENDS + separator + closer)
    if found is not None and not separator and _is_prose(found[0]):
        return "", at
    hidden = None if found is None else rule(found[0])
    if found is None or hidden is None or not _numbers_elsewhere(found[0], hidden):
        return "{redacted:rest}", _end_of_line(text, at, closer)
    parameters, end = found
    secrets = tuple((name, parameters[i].text) for i, name in hidden.items() if i < len(parameters))
    if secrets in _IN_HINTS:
        return text[at:end], end
    shown, done = "", at
    for index, item in enumerate(parameters):
        start = _secret_start(item, hidden.get(index, ""))
        if start < item.end:
            shown += text[done:start] + f"{{redacted:{hidden[index]}}}"
            done = item.end
    return shown + text[done:end], end


def _secret_start(item: Parameter, name: str) -> int:
    """Return where the secret part of a parameter begins, its end if there is none."""
    if not name or MARKER.fullmatch(item.text) or _is_word_for_value(item):
        return item.end
    if name != QUERY:
        return item.start
    found = _URL_SECRET.search(item.text)
    return item.end if found is None else item.start + found.end()


def _is_word_for_value(item: Parameter) -> bool:
    return not item.quoted and _WORD_FOR_VALUE.fullmatch(item.text) is not None


def _without_queries(line: re.Match[str]) -> str:
    text = line.group()
    return _ADDRESS_QUERY.sub("?{redacted:query}", text) if "://" in text else text


@cache
def _without_quotes(ends: str) -> re.Pattern[str]:
    """Return the pattern of a parameter, which ends at each of these characters."""
    return re.compile(f'[^,"{re.escape(ends)}]*')


def _parameters(text: str, at: int, closer: str, ends: str) -> tuple[list[Parameter], int] | None:
    """Return the parameters from `at` on and where the command ends; None if they break V.250."""
    parameters: list[Parameter] = []
    bare = _without_quotes(ends)
    while True:
        at = _skip_blanks(text, at)
        sign = text[at : at + 1]
        if sign == '"' and closer != '"':
            close = text.find('"', at + 1)
            if close < 0:
                return None
            item = Parameter(text[at + 1 : close], True, at + 1, close)
            at = close + 1
        elif marker := MARKER.match(text, at):
            item = Parameter(marker.group(), False, at, marker.end())
            at = marker.end()
        else:
            value = bare.match(text, at)
            assert value is not None
            written = value.group().rstrip(" \t")
            item = Parameter(written, False, at, at + len(written))
            at = value.end()
        parameters.append(item)
        at = _skip_blanks(text, at)
        sign = text[at : at + 1]
        if sign == ",":
            at += 1
        elif sign and sign == closer:
            closed = item.text and text[at - 1] != "\\" and _BEHIND_CLOSER.match(text, at + 1)
            return (parameters, at) if closed else None
        elif sign == ";" and ";" in ends:
            return (parameters, at) if _NEXT.match(text, at) else None
        elif not sign or sign in ends or MARKER.fullmatch(item.text):
            return (parameters, at) if sign != "\0" or _FRESH.match(text, at + 1) else None
        else:
            return None


def _numbers_elsewhere(parameters: list[Parameter], hidden: Hidden) -> bool:
    """Return whether what is shown without quotes is numbers, as V.250 has it."""
    return all(
        item.quoted
        or index in hidden
        or _NUMBER.fullmatch(item.text)
        or _is_word_for_value(item)
        or MARKER.fullmatch(item.text)
        for index, item in enumerate(parameters)
    )


def _is_prose(parameters: list[Parameter]) -> bool:
    """Return whether a message stands behind the name, such as the reason of an error."""
    words = _WORD.findall(parameters[0].text)
    return len(words) > 2 and not any(item.quoted for item in parameters)


def _skip_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()


def _end_of_line(text: str, at: int, closer: str) -> int:
    """Return where the line ends: at the first line end outside quotes, else at the text's end.

    A quote before the command may be a shell's, which ends with the line, or a stray one.
    """
    in_shell = closer == '"'
    quoted = in_shell
    for match in _QUOTE_OR_END.finditer(text, at):
        if match.group() == '"':
            quoted = not quoted
        elif quoted or (in_shell and text[match.start() - 1] != '"'):
            continue
        elif match.group()[0] != "\0" or _FRESH.match(text, match.end()):
            return match.start()
    return len(text)
