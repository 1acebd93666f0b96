"""What a line of a log holds: a command, named answers and notices, a result. Pure.

People paste lines with all kinds of things around them, so a line is searched, not matched.
"""

import re
from collections.abc import Iterator
from string import digits

from at.commands.catalog import readers_of
from at.protocol import notices
from at.protocol.command import read_command
from at.protocol.errors import AtError, ParseError
from at.protocol.values import as_json

_SENT = re.compile(
    r"(?<![\w+%#])AT[+%#*^&][A-Z](?>[A-Z0-9_]*)(?!\s*:)"
    r"(?:=\?|\?|=(?:[^\s\"<`]*(?:\"[^\"]*\"?)?)*)?"
    r"|(?<![\w+%#])ATD[TP]?\*99[*\d]*#",  # to a data connection
    re.IGNORECASE,
)
_BARE_AT = re.compile(r"(?:[>\]\"'$:]\s*|^)AT(?:E[01]|I|Z|&F)?[\"'<\]]?(?:$|<|\\[rn])")
_NAMED = re.compile(r"(?<![\w+%#])(?:AT)?([+%#][A-Z][A-Z0-9_]{1,20}):(?!\s*-)", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\+CM(?P<kind>[ES]) ERROR: *(?P<told>\d+|[A-Za-z][A-Za-z0-9 -]*)"
    r"|\bCM(?P<bare>[ES]) ERROR:? *(?:\((?=[A-Z]))?(?P<behind>\d+|(?<=\()[A-Z][A-Z0-9 ]*)",
    re.IGNORECASE,
)
_RETURNED = re.compile(
    r"(?!.*(?:\bbytes\b|trace|\bsize|\boffset|\blen))"
    r"(?=.*(?:modem|lte_lc|\bAT(?:\b|[+%#])|\bSIM\b|ICCID|\bAPN\b|\bpdn|\bsms\b))"
    r".*\b(?:(?:err(?:or)?(?: code)?|returned|re[tcs]|rc|rv)\W{1,4}|fail[^:\d]{0,60}[:,] ?)"
    r"(?P<value>\d{5,6}|0x0{0,3}[123]0[0-9a-f]{3})\b",
    re.IGNORECASE,
)
_KINDS_RETURNED = {1: "ERROR", 2: "+CME ERROR", 3: "+CMS ERROR"}
_WORDS = (
    re.compile(r"\W*(OK|ERROR)\W*$"),
    re.compile(r".*(?:\bAT<|<<|\bRX:?|<-|→)\W{0,20}(OK|ERROR)(?=$|\W)"),
)
_WORD_BEHIND = re.compile(r".*\s(OK|ERROR)\W*$", re.DOTALL)
_HIDDEN = re.compile(r'"[0-9A-F]*[X*?]+[0-9A-FX*?]*"', re.IGNORECASE)
"""A value that the one who keeps the log made unreadable."""
_TAIL = re.compile(
    r"\s{2,}.*|,?\s+[a-z]{2}.*|,?\s*\.\.\..*|\s*(?:<|\\r|\\n|[}\]|]|[␍␊]|\bOK\b|\bERROR\b).*",
    re.DOTALL,
)

_NO_ERROR = re.compile(
    r"\b(?:err(?:or)?s?(?: code)?|errno|rc|ret)\b\W{0,3}\b0\b|\breturned 0\b(?=\W*(?:$|success))"
    r"|\b(?:no|0|zero|without(?: any)?) (?:err(?:or)?|fail(?:ure)?|failed|lost|time-?out)s?\b"
    r"|\bdisconnected:? 0\b|\bMQTT_EVT_DISCONNECT\W{1,3}result\W{1,3}0\b"
    r"|cannot connect to proxy: .*"  # of libqmi, which then starts one
    # of pppd, which then makes one up; of ModemManager, of which one is enough
    r"|could not determine remote IP address: default.*|\bDNS #\d+: failed .*"
    r"|could not parse dns str\b.*"  # of Nordic's modem_info, for a context without a second server
    r"|\bpin not connected\b"  # of ubxlib, which tells what it was given
    r"|\bmodem_cellular\w*: event timeout\b"  # of Zephyr, whose next step is then due
    # of nRF Cloud's predictions for GPS, which are then asked for anew
    r"|_pgps: (?:Data expired|Find prediction|prediction (?:idx|num)|Ignoring packet).*"
    r"|\bprocessing P-GPS data.*",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    r"\btime-?outs?(?: (?:is|set(?: to)?|of|in))?(?: ?[=:])? ?\d+"
    r"|(?<!too )\b(?:rs(?:si|rp|rq)|si?nr|temp(?:erature)?|lo?ng?(?:itude)?|alt(?:itude)?)\b"
    r"\W{0,4}\d+(?:\.\d+)?"
    r"|\blat(?:itude)?\b\W{0,4}\d+\b(?!\.\d{3})(?:\.\d+)?"  # a whole one is a position
    r"|\"(?!\w*(?:err|code|stat|rc|re[st]))\w+\": ?-\d+"
    r"|\[ ?-?\d+(?:\.\d+)?(?:, ?-?\d+(?:\.\d+)?)+ ?\]"
    r"|-(?!4c\b)\d+ ?(?:[°%]|(?:C|F|m[AVW]|uA)\b)",  # -4c is an error of Mbed TLS
    re.IGNORECASE,
)
SAYS_RECEIVED = re.compile(
    r"\b(?:rx|recv|received|response)\b(?!\W*(?:time|none|null|nothing|empty|error|fail|0\b))\W{1,40}\w"
    r"|: command not found",
    re.IGNORECASE,
)
"""A line that speaks of what was received, in whatever form, or is a shell's answer."""
_NONE = "\u00b7"
"""What the table finds where a line said that there was no error."""


_ENDS = re.compile(
    r"(?<![\w+%#])(?:AT(?P<ends>H\d?\b|#S(?:H=|GACT=\d+,0)|#X(?:CLOSE|(?:TCPCLI|MQTTCON)=0)|\+(?:CNACT=(?:0$|\d+,0)"
    r"|Q(?:I|SSL|MT)CLOSE|QIDEACT|QMTDISC|QPOWD|CIP(?:SHUT|CLOSE)|CACLOSE|CMQTT(?:DISC|STOP)"
    r"|NETCLOSE|SAPBR=0|CG(?:ACT|ATT)=0|S[MH]DISC|UMQTTC=0|USOCL|CPOWD|COPS=2|CFUN=[04]\b)"
    r"|D[^*]+;|#SD=)|AT(?:D|[+#]\w*(?:ACT|OPEN|CONN?|START|TCPCLI|SOCO|CFUN)=|\+SAPBR=1))"
    r"|^(?P<ring>RING)\b"
    r"|\b(?P<done>Finished, closing socket)\b|\bBringing network interface up\b"  # Nordic's samples
    r"|\bNetwork connectivity established\b|\*{3} Booting "
    r"|\brequires device to (?:(?P<off>de)?activate) network\b"  # of nrf_provisioning's samples
    r"|(?:^|~\$ )(?:net iface|ppp|att_network) (?:(?P<down>down|disconnect)|up|connect)\b",
    re.IGNORECASE,
)
"""What ends a connection or has one that ends of itself, such as a call; else, what opens one."""
_ENDED = re.compile(
    r"\+APP PDP: .*|\+QMTSTAT: .*|\+(?:QIURC|CIPCLOSE|IPCLOSE|SAPBR)\b.*|\+CGEV: .*DEACT.*"
    r"|\bNO CARRIER\b|#X(?:TCPCLI|MQTTEVT): .*|\+CPIN: NOT READY|\bIPv[46] connectivity lost\b"
    r"|\batt_network disconnect\b|\bnetwork: Not registered\b.*|\bNetwork connectivity lost\b",
    re.IGNORECASE,
)


def asked_to_end(text: str) -> bool | None:
    """Return whether a line asks for an end, False if it opens anew, None if it does neither."""
    found = _ENDS.search(text)
    return None if found is None else any(found.groupdict().values())


def without_harmless(text: str, *, ended: bool) -> str:
    """Return a line without what is no trouble in it: no error, a limit of time, a measurement.

    `ended`: an end was asked for, and what tells of it is none, either.
    """
    told = _ENDED.sub(_NONE, text) if ended else text
    return _MEASURED.sub(" ", _NO_ERROR.sub(_NONE, told))


def command_in(text: str) -> tuple[str, str]:
    """Return the command of a line, "" for none, and what stands behind it."""
    if sent := _SENT.search(text):
        return sent[0], text[sent.end() :]
    return ("AT", "") if _BARE_AT.search(text) else ("", text)


def result_in(text: str, *, behind: bool) -> tuple[str, str] | None:
    """Return the word and the code of a line that ends an answer, None for another line.

    The word is "OK", "ERROR" or, of an error with a code, "+CME ERROR" or "+CMS ERROR".

    `behind`: other things of the exchange stand before it on the line.
    """
    if (error := numbered_in(text)) is not None:
        return error
    patterns = (*_WORDS, _WORD_BEHIND) if behind else _WORDS
    match = next(filter(None, (pattern.match(text.strip()) for pattern in patterns)), None)
    return (match[1], "") if match else None


def numbered_in(text: str) -> tuple[str, str] | None:
    """Return the word of an error, and its number or words, anywhere on a line."""
    error = _NUMBERED.search(text)
    if error is None:
        return None
    kind = error["kind"] or error["bare"]
    return f"+CM{kind.upper()} ERROR", (error["told"] or error["behind"]).strip()


def returned_in(text: str) -> tuple[str, str] | None:
    """Return the error that Nordic's modem library returned: its kind << 16 | its code."""
    returned = _RETURNED.match(text)
    kind, code = divmod(int(returned["value"], 0), 1 << 16) if returned else (0, 0)
    if kind not in _KINDS_RETURNED or code >= (1 if kind == 1 else 1000):
        return None
    return _KINDS_RETURNED[kind], str(code) if kind > 1 else ""


def values_of(name: str, body: str) -> dict[str, object] | None:
    """Return the fields of a named answer or notice, None if it breaks each grammar of its name.

    What is whole but of no use has an "error" alone.
    """
    found = (_fields(name, f"{name}: {one}") for one in _candidates(body))
    return next((fields for fields in found if fields is not None), None)


def split_command(command: str) -> tuple[str, str, str]:
    """Return the name, the mark and the parameters of a command, "" for what it has not."""
    if command[:3].upper() == "ATD":
        return "D", "", ""
    parts = read_command(command)
    return ("", "", "") if parts is None else (parts.name, parts.form.value, parts.arguments)


def named_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the named answers and notices of a line, each with what stands behind the colon."""
    found = list(_NAMED.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    for match, end in zip(found, ends, strict=False):
        if match[1].upper().startswith("+CM"):
            continue  # an error is no answer
        body = text[match.end() : end].strip()
        before = text[match.start() - 1 : match.start()]
        if before in {'"', "'", "`"}:  # JSON's, a program's with escaped quotes, or Markdown's
            body = re.split(rf"(?<!\\){before}", body)[0].replace(f"\\{before}", before)
        elif before == "[":
            body = body.removeprefix("]").lstrip()
        yield match[1].upper(), body


def _candidates(body: str) -> Iterator[str]:
    """Yield what may be the fields of a line, the longest first; logs write all kinds of ends."""
    body = _HIDDEN.sub('""', body)
    yield body
    if (cut := _TAIL.sub("", body)) != body:
        yield cut
    word, _, behind = body.partition(" ")
    word = word.rstrip(".;")
    is_field = behind.lstrip()[:1] in {*digits, '"'}  # of an answer whose commas were lost
    if word not in {body, cut} and not word.endswith(",") and word and not is_field:
        yield word


def _fields(name: str, line: str) -> dict[str, object] | None:
    """Return the fields of an answer or a notice, None if it breaks every grammar of its name."""
    for reader in readers_of(name):
        try:
            return _flat(as_json(reader.parse([line])))
        except ParseError:
            continue
        except AtError as wrong:  # it is whole, and its content is of no use
            return {"error": type(wrong).__name__}
    if notices.is_known(name):
        notice = notices.parse(name, line)
        if not isinstance(notice, notices.Malformed):
            return _flat(as_json(getattr(notice, "value", None)))
    return None


def _flat(value: object) -> dict[str, object]:
    """Return the fields of a record; those of its first item, if it is a list of records."""
    if not isinstance(value, dict):
        return {}
    flat: dict[str, object] = {}
    for name, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict) and name != "networks":
            flat |= item[0]
        elif isinstance(item, list) and name != "networks":
            flat[name] = ", ".join(map(str, item))
        else:
            flat[name] = item
    return flat


def bands_of(text: str) -> set[int]:
    """Return the bands of a lock: bits in quotes, the last of which is band 1, or a list."""
    bands: set[int] = set()
    for quoted in re.findall(r'"([0-9, ]*)"', text):
        if re.fullmatch("[01]{4,}", quoted):
            bands |= {place + 1 for place, bit in enumerate(reversed(quoted)) if bit == "1"}
        else:
            bands |= {int(band) for band in quoted.replace(" ", "").split(",") if band}
    return bands
