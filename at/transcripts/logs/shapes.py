r"""The shapes of logs that people keep of a modem: a new shape is a row of `SHAPES`. Pure.

A kind of log that is not read is a row of `FOREIGN`, so that it is refused by its name. What may
stand before the lines of any shape is in `leads`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from at.protocol.dialect import TRAITS, Dialect

# Atomic, as wherever a group is repeated here: with a ++ behind one, Python before 3.11.5, such as
# Debian 12's, takes a letter too many.
PROMPT = rf"(?>(?:{TRAITS[Dialect.SHELL].prompt.decode()})+)"
_LINUX = r"(?:[\w.-]{1,40}@[\w.-]{1,60}:[^\s:]{0,60}[#$]|\$(?= )|(?:PS )?[A-Z]:\\[^<>|]{0,60}>)"
"""The prompt of Linux or Windows, whose programs pass a command on, or a manual's of any shell."""
_OWN = r"[A-Za-z][\w.()-]{0,39} ?[>#$]"
"""A prompt that somebody chose, of a shell or of a program."""
_NAMED = r"[+%#*^!][A-Z][A-Z0-9_]*:"
_NAMED_END = r"(?:[<\[{](?:CR|LF|LN|NL|0[AD]h?)[>\]}]|[␍␊␤])"
"""A line end that a tool shows by its name, or by its byte in hex."""
COMMAND = re.compile(
    rf"AT(?:$|{_NAMED_END}|\\[rn]"
    r"|\s*[+%#&*^$!][A-Z0-9](?!\S*: command not found|[^\s\"]* (?-i:[a-z]{2,})[ ,.])|"
    r"[EQV][01]|[IZHOAXLM]\d?(?:$|;)|D[TPI]?[\d*#+]|\s*S\d{1,3}[=?])",
    re.IGNORECASE,
)
"""How a command begins."""
SHELL_ECHO = re.compile(r"slm AT")
"""How a line begins that the shell of Serial Modem's host prints of a command again."""
NAMED_ANSWER = re.compile(_NAMED)
"""How an answer or a notice with a name begins."""


class Rest(Enum):
    """What a line without a mark is."""

    LOG = auto()
    RECEIVED = auto()
    BY_LOOK = auto()
    """Sent if it begins like a command, else received."""
    LITERALS = auto()
    """What its literals of Python say, each by its direction or its look; without one, a log."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape: each pattern matches a whole line and holds what went over the port in `text`.

    `noise` are lines of the tool or the shell itself. A mark of received lines alone is that of
    both sides, which are told by their look.
    """

    name: str
    sent: re.Pattern[str] | None = None
    received: re.Pattern[str] | None = None
    noise: re.Pattern[str] | None = None
    rest: Rest = Rest.LOG


@dataclass(frozen=True, slots=True)
class Foreign:
    """A kind of log that is not read."""

    name: str
    line: re.Pattern[str]


def _whole(line: str) -> re.Pattern[str]:
    return re.compile(line, re.IGNORECASE | re.DOTALL)


def _after(mark: str) -> re.Pattern[str]:
    """Return the pattern of a mark and what follows, which some tools write in quotes."""
    quote = r"(?P<quote>'|\"(?=AT|[+%#\\<]|OK|ERROR)|)"
    text = r"(?P<text>(?:.*?\S)??|(?<=['\"]).*?)"  # else each of many blanks might be the last ones
    return _whole(rf"(?:{mark})\s?{quote}{text}(?P=quote)\s*")


_NAME = r"(?:-?>\s)?[A-Z]\w{1,15}:?\s*"
"""What a program calls the modem or the port, perhaps behind its monitor's own mark."""
OUT = r"TX|(?:SENT|SEND(?:ING)?)(?: (?:AT )?(?:COMMAND|CMD))?|WRITE|WRITING|WROTE|OUT"
IN = (
    r"RX|RECEIVED?(?: (?:RESPONSE|URC))?|RECV|RECEIVING"
    r"|READ(?:ING|_UNTIL|LINE)?|RESPONSE(?: TO AT[^:]{0,400})?|IN"
    r"|NOTIFICATION(?=: \[['\"])"
    r"|MODEM_CHAT_\w+_(?:RECEIVED_COMMAND|COMMAND_RECEIVED)"
)
"""Words of a direction, as the host sees it."""
_HOST, _MODEM = "HOST|PC|MCU|DTE", "MODEM|DEVICE|DEV|DUT|DCE"
_ASKS, _ANSWERS = "(?:AT )?(?:COMMAND|CMD)|REQUEST|REQ", "(?:AT )?RESPONSE|RESP|RSP|REPLY|ANSWER"
RIGHT = r"-+>|=+>|>>+|→|➤"
LEFT = r"<-+|<=+|<<+|←"
BEGINS = r"AT(?! \w)|[+%#^][A-Z]|OK\b|ERROR\b"


def _word(words: str) -> re.Pattern[str]:
    """Return the pattern of a direction's word and what follows; an arrow before it says no more.

    Without a sign behind it, a word of plain English needs something of a modem there.
    """
    signs = (
        rf"\s*(?:\](?: -(?=\s)|:)?|:|{RIGHT}|{LEFT}|[<>])|(?<=[TR]X)\s+|\s+(?=b['\\\"]|{BEGINS})"
    )
    number = r"(?:\s*\(\s*(?:timeout\s)?\d+(?:\.\d+)?\))?"  # its length, or its time limit
    return _after(rf"(?:(?:{RIGHT}|{LEFT}|[<>])\s*)?\[?(?:AT )?(?:{words}){number}(?:{signs})")


def _over(one: str, other: str) -> str:
    return rf"(?:{one})\s*-+>\s*(?:{other})|{one}"


# Of two shapes that explain a log equally well, the first one is taken.
SHAPES = (
    Shape("bare", rest=Rest.BY_LOOK),
    Shape("modem >> / modem <<", _after(_NAME + ">>"), _after(_NAME + "<<")),
    Shape("modem << / modem >>", _after(rf"{_NAME}<<|\(<<\)"), _after(rf"{_NAME}>>|\(>>\)")),  # YAT
    # Particle's older Device OS.
    Shape(
        'AT send 3 "AT"',
        _whole(r'AT send +\d+ "(?P<text>.*)"'),
        _whole(r'AT read +\S+ +\d+ "(?P<text>.*)"'),
    ),
    Shape("w: AT / r: OK", _after(r"w:\s"), _after(r"r:(?=\s|$)"), rest=Rest.RECEIVED),
    Shape("AT> / AT<", _after("AT>(?!>)"), _after("AT<(?!<)")),
    Shape(
        "AT -> / AT <-", _after("AT ->"), _after("AT <-"), _whole(r"└─ .*(?P<text>)"), Rest.BY_LOOK
    ),
    Shape("b'AT\\r'", rest=Rest.LITERALS),
    Shape("TX: / RX:", _word(OUT), _word(IN)),
    Shape("RX: AT / TX: OK", _word(IN), _word(OUT)),  # as the modem's end has it
    Shape("RX: AT, RX: OK", received=_word(IN), rest=Rest.BY_LOOK),  # with its echo
    Shape("Host: / Modem:", _word(_over(_HOST, _MODEM)), _word(_over(_MODEM, _HOST))),
    Shape("sent AT / rcvd OK", _after(r"sent\s"), _after(r"rcvd\s")),  # RouterOS
    # Zephyr's older drivers, which log of an answer its name alone.
    Shape(
        "OUT: [AT] / HANDLE OK",
        _whole(r"OUT: \[(?P<text>.*)\]"),
        _whole(r"(?:HANDLE |match cmd \[)(?P<text>.*?)\]? \(len:\d+\)"),
    ),
    Shape("Command: / Response:", _word(_ASKS), _word(_ANSWERS)),
    Shape("-> / <-", _after(RIGHT), _after(LEFT)),
    Shape("<- / ->", _after(LEFT), _after(RIGHT)),
    Shape("> / <", _after(r">\s"), _after(r"<\s")),
    Shape("< / >", _after(r"<\s(?=AT)"), _after(r">\s")),
    Shape("[AT+X] / {+X}", _whole(r"\[(?P<text>AT.*?)\]?"), _whole(r"\{(?P<text>.*?)\}?")),
    Shape("> AT", _after(rf"(?:>|{RIGHT})\s?(?=AT)"), rest=Rest.RECEIVED),
    # A mail's quotes, too: of what was sent and received alike.
    Shape("-> AT, -> OK", received=_after(r"(?:-?|>[> ]*)>(?!\S)|-?>|→"), rest=Rest.BY_LOOK),
    Shape("AT, <- OK", received=_after(rf"(?:{LEFT}|{RIGHT}|<)(?!\S| *AT)"), rest=Rest.BY_LOOK),
    Shape(
        "uart:~$ at AT+X",
        _whole(
            # A log line of the kit may have taken the prompt's place.
            rf"(?:{PROMPT}|{_LINUX}|(?=(?:> )?at AT(?:[+%#]|$)))\s*(?:> )?"
            r"(?:[\w./-]+[\s=]+){0,5}(?P<quote>['\"]?)"
            r"(?P<text>AT[^\w\s].*?|AT)(?P=quote)\s*"
        ),
        _whole(rf"{PROMPT}(?P<text>{_NAMED}.*)"),
        _whole(rf"(?:{PROMPT}|{_LINUX}|(?=slm AT))(?P<text>.*)"),
        Rest.RECEIVED,
    ),
    Shape(
        '---- Sent utf8 encoded message: "AT" ----',  # Visual Studio Code's Serial Monitor
        _whole(r'---- Sent \w+ encoded message: "(?P<text>.*?)(?<!\\[rn])(?>(?:\\[rn])*)" ----'),
        noise=_whole(r"---- (?:Open|Clos|Connect|Reopen)\w+ .*(?P<text>)"),
        rest=Rest.RECEIVED,
    ),
    Shape(
        "command_lib: Token: {AT+X}",
        _whole(r"(?:generic_command command |Token: \{)(?P<text>AT.*?)\}?"),
        # A response goes on below its first line.
        _whole(
            r"(?:Token: \{|Response:(?: |$)"
            rf"|(?=(?-i:{BEGINS})|CONNECT|NO CARRIER))(?P<text>.*?)\}}?"
        ),
    ),
    Shape(
        "发→◇AT / 收←◆OK",
        _whole(r"发→◇(?P<text>.*?)□?"),
        _whole(r"收←◆(?P<text>.*)"),
        _whole(r"(?P<text>)□"),
        Rest.RECEIVED,
    ),
    Shape(
        "send (AT^M)",
        _whole(r"send \((?:\\\w)*(?P<text>.*?)(?:\^M)*\)"),
        _whole(
            r"(?!(?:abort on|timeout set|expect|report|clear|sent|rcvd|using|script|serial|pppd) "
            r"|-- |alarm$|failed|(?-i:Connect))(?P<text>.*)"
        ),
        _whole("(?P<text>.*)"),
    ),
    # What a program does, in any language.
    Shape(
        "sending: AT+X",
        _after(
            r"(?!Sending AT command to set system mode)"  # of lte_lc, which logs no answer
            rf"[^\W\d_][\w -]{{1,60}}(?:[:\uff1a](?=\s?(?:{COMMAND.pattern}))"
            r"|(?<=ing)(?= AT[+%#*^&]\S*$))"
        ),
        rest=Rest.BY_LOOK,
    ),
    Shape(
        "kit> AT",
        _whole(
            rf"{_OWN}\s+(?:[a-z][\w./-]*\s+){{0,2}}(?P<quote>['\"]?)"
            r"(?P<text>AT[^\w\s].*?|AT)(?P=quote)\s*"
        ),
        _whole(rf"{_OWN}\s+(?P<text>(?-i:{BEGINS}).*)"),
        _whole(rf"(?P<text>{_OWN})"),
        Rest.RECEIVED,
    ),
    Shape(
        "--> 'AT<CR>'",
        _whole(r"(?:.*\s)?--> '(?P<text>.*)'\s*"),
        _whole(r"(?:.*\s)?<-- '(?P<text>.*)'\s*"),
    ),
)

# What a tool writes for a line end. Within quotes, \r and \n are a shell's own.
_SPELT_END = re.compile(
    r"(?P<path>\b[A-Z]:\\(?![rn](?:\\|$))[^\s\"<>|]*)"  # \n begins a folder's name there
    rf"|{_NAMED_END}+|(?-i:\\r|\\n|[\r\n])+"
    r"|(?-i:^(?>(?:(?:CR)+LF)+)"  # RealTerm's
    r"|(?<!CR)(?<!CRLF)(?>(?:(?:CR)+LF)+)(?=$|[+%#]|AT|OK|ERROR))",
    re.IGNORECASE,
)
GLUED = re.compile(r"(?:OK|ERROR|[^\"]*\.{3} ?)(?=(?i:AT)(?:[+%#]|$))")
"""A final result whose line end was lost before the next command; a program's print before it."""
PRINTED = re.compile(r"[^\"]*?[a-z\d.!:](?=AT[+%#*^][A-Z]{2})")
"""A program's print that has no line end, and stands before what it sent."""
LOST_END = re.compile(
    r"(?:(?<=\bOK)|(?<=\bERROR)|(?<=ERROR: \d)|(?<=ERROR: \d\d)|(?<=ERROR: \d\d\d))\s+"
    r"(?=[^\"]{0,40}?AT[+%#]|\w+:~\$|[+%#][A-Z]\w*: )"
    # Nothing is left of it.
    r"|(?<=[\d\"?])(?=[+%#][A-Z]{3,20}(?: ERROR)?: |(?:OK|ERROR)(?:$|[+%#]))"
    r"|(?:(?<=\dOK)|(?<=[\"?]OK))(?=[+%#][A-Z]{3,20}: )"
)
"""What is left of a line end, before a command or a notice, where a forum or a mail lost them."""
REMARK = re.compile(
    r"((?:AT(?:[+%#&*^]\w|\b)|[+%#*^][A-Z]\w*(?: ERROR)?:|(?:OK|ERROR)\b)(?:[^\"]|\"[^\"]*\")*?)"
    r"(?<!\s)(?>\s+)(?://|#\s|<-+\s|[←【]"
    r"|\[[A-Z][^\[\]\"]*\](?: dt=\w+)?$).*",
    re.IGNORECASE | re.DOTALL,
)
"""A command or an answer, and what somebody or firmware wrote behind it."""
# Several words of one exchange on a line: command, answer, final result.
WORDS = (
    # Their answers have no name.
    re.compile(r"(AT\+(?:CGM[IMR]|CGSN|CIMI))\s+(\S.*)", re.IGNORECASE),
    re.compile(
        rf"(AT[^\s\"]*(?:\"[^\"]*\"[^\s\"]*)*)\s+(?:(?:[-=]>|:)\s*)?({_NAMED}.*)",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(
        rf"(AT\S.*?|AT|{_NAMED}\s*\S.*?|mfw[-_]\S+|nRF9\S+|\d{{15}}|Nordic \w+ ASA)(?<!\s)(?>\s+)"
        r"(?:->\s*)?"
        r"(OK|ERROR|\+CM[ES] ERROR:\s?\d+)\s*",
        re.IGNORECASE | re.DOTALL,
    ),
)
IN_ONE_LINE = re.compile(
    r"(ATI\d?(?=;\w{2})|(?=.*;(?:OK|ERROR)$)AT[^\";]*(?:;[+%#*^]\w+(?:[=?][^\";:]*)?(?=;))*);(.+)",
    re.IGNORECASE,
)
"""An exchange with a semicolon for each line end; commands that one line joins have them, too."""
ANSWERED = re.compile(
    rf"(AT(?:[^\"]|\"[^\"]*\")*?)[,;|]?(?<!\s)(?>\s+)(?:{_ANSWERS}|{IN}):\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
"""A command, and on the same line the mark of its answer."""

_PAIR = "[0-9a-f]{2}"
HEX_DUMP = Foreign(
    "a dump in hex",
    re.compile(  # in pairs; or in words behind an offset, as xxd and hexdump write it
        rf"(?:\S+[:\s]\s*)?(?:(?:{_PAIR} {{1,2}}){{3}}|(?:{_PAIR}:){{3}}|(?:{_PAIR}-){{3}})"
        rf"|(?:{_PAIR}){{3}}[0-9a-f]{{1,2}}:? +(?:{_PAIR}{_PAIR} ){{2}}",
        re.IGNORECASE,
    ),
)
FOREIGN = (
    Foreign(
        "Particle Device OS",
        re.compile(r"\s*\d{6,10} \[[\w.]+\] (?:TRACE|INFO|WARN|ERROR|LOG|PANIC)"),
    ),
    Foreign(
        "Mbed OS",
        re.compile(
            r"(?:\[\d+m)?(?:\[\d+ms\]\s*)?\[(?:DBG |INFO|WARN|ERR )\]\[\w{1,8} *\]|\+\+ MbedOS "
        ),
    ),
    Foreign("ESP-IDF", re.compile(r"(?:[EWID] \(\d+\) [\w.-]+: )|I \([\d:.]+\) \w+: ")),
    Foreign("Zephyr shell", re.compile(rf"(?:\S+ )?{PROMPT}")),
    Foreign(
        "Arduino",
        re.compile(
            r"\d\d:\d\d:\d\d\.\d{3} -> |ets [A-Z][a-z]{2} +\d+ \d{4}|rst:0x[0-9a-f]+ |"
            r"\[\d+\] ### |### TinyGSM|"
            r"(?:Setup|Setup done|Starting(?! bootl)|Initiali[sz]ing|Connecting)\b.*(?:\.\.\.|!)$",
            re.IGNORECASE,
        ),
    ),
    Foreign("JSON", re.compile(r'\s*[{\[]\s*(?:"|$)')),
    Foreign(
        "a table without a heading time,direction,data",
        # But for a receiver's sentences (NMEA 0183), which a kit prints beside its log.
        re.compile(r"\s*\|.*\|\s*$|(?!\$[A-Z]{5},)(?:[^,;\s]*[,;](?=\S)){2}|[^\t]+\t"),
    ),
    HEX_DUMP,
    Foreign(
        "HTML or XML",
        re.compile(r"\s*<(?:!doctype|\?xml|/?(?:html|head|body|div|p|pre)\b)", re.IGNORECASE),
    ),
    Foreign("binary data", re.compile(r"[^\x00-\x1f]*[\x00-\x06\x0e-\x1a\x1c-\x1f]")),
)


def first_line(text: str) -> str:
    """Return the first line of a text whose line ends are spelt out."""
    begin = 0
    for end in spelt_ends(text):
        if end.start() > begin:
            return text[begin : end.start()]
        begin = end.end()
    return text[begin:]


def spelt_ends(text: str) -> Iterator[re.Match[str]]:
    """Yield the line ends that are spelt out in a text."""
    return (found for found in _SPELT_END.finditer(text) if not found["path"])


def ends_spelt(text: str) -> bool:
    """Return whether a line's end is spelt out where a text ends."""
    return any(found.end() == len(text) for found in spelt_ends(text))
