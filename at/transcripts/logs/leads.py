r"""What tools set before and around the lines of a log of any shape: a row of `LEADS` each. Pure.

A time, a level, the name of a logger or of a port, a channel of RTT.
"""

import re

from at.protocol import kit_log
from at.transcripts.logs.shapes import BEGINS, IN, LEFT, OUT, PROMPT, RIGHT

KIT_LOG = re.compile(rf"({kit_log.TIME})?{kit_log.LEVEL}(?!\[\d{{9}})")
"""How a log line of the kit's own firmware begins: its time is the kit's, not the terminal's."""

KIT_MARK = re.compile(
    rf"{KIT_LOG.pattern}(?:[\w.]+?(?:: |\.(?=modem_chat_)))+?"
    r"(?=(?:AT)?[<>] |sending: AT|modem_chat_\w*receive\w+: |TX: AT|RX: "
    r"|OUT: \[|HANDLE |match cmd \[)"
)
"""What stands before the mark of a direction, if the kit's own firmware wrote it to its log."""

_TIME = r"(?P<hours>\d{1,2}):(?P<minutes>\d\d):(?P<seconds>\d\d)"
_TIME_OF_LOG = rf"{_TIME}(?:\.(?P<fraction>\d{{1,6}}))?"
CLOCK = re.compile(
    r"\s*[\[(]?(?:(?:[A-Z][a-z]{2} )?"
    r"(?:\d{4}(?P<dash>[-/]?)\d\d(?P=dash)\d\d|\d{1,2}[./]\d{1,2}[./]\d{4})[T ,_]+)?"
    rf"{_TIME}"
    r"(?:[.,:](?P<fraction>\d{1,9})(?:,(?P<micros>\d{3}))?)?(?: ?(?P<half>[AP])M\b)?\s*"
    r"(?:Z(?: \d\d[OE][ +])?|[+-]\d\d:?\d\d)?"
    r"(?:\d+\.\d{6}(?=\]))?[\])]?:?\s*"  # grabserial's, the time since the line before
    r"(?:-(?: (?![\w.]+ - )|$))?"
)
"""Date and time, or time alone, in brackets or not; a fraction after a point, comma or colon.

Dates begin with the year, or end with it as in Germany and America; hours may be of half a day.

GitLab names the stream behind it.
"""
_MARK = (
    rf"\[?[TR]X\b|(?:{RIGHT}|{LEFT}) ?b?['\"]|AT[<>] "
    rf"|(?<!timed )(?:{OUT}|{IN})(?:\s*: ?b?['\"]?(?:{BEGINS})| b['\"])"
)
"""What stands before what was sent or received, whatever stands before it."""
LEADS = (
    CLOCK,
    KIT_MARK,
    re.compile(r"\s*\[\s*(?P<plain>\d{1,10}\.\d{1,15})(?: \d+\.\d+)?\]\s*"),
    # Seconds or milliseconds since the start.
    re.compile(r"[@+(]?(?P<plain>\d{1,9}\.\d{1,9}) ?s?\)?:?\s+(?=[<>] )"),
    re.compile(r"[@+(]?(?P<millis>\d{1,9}) ?ms\)?:?\s+(?=[<>] )"),
    re.compile(r"\s*\d{1,2}> ?"),  # RTT
    re.compile(
        r"(?:> )+(?=> )|(?:> ?)+(?=(?:[A-Z][a-z]{2} )?\[?\d{1,4}[-:/.]\d\d)"
    ),  # of a mail that was quoted
    re.compile(r"(?:\[(?P<millis>\d{1,10})\] )?### AT: ?(?=AT)"),  # of sketches with TinyGSM
    re.compile(rf"(?>(?:{PROMPT}\s*)+)(?={kit_log.ANY_BEGIN})"),
    # Python's logging: the level, the name of the logger; with twister's, the mark of its harness.
    re.compile(
        rf"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?!(?i:{OUT}|{IN}):)[\w.]+:"
        r"(?:(?<=\.device_adapter:) #: ?)?"
    ),
    re.compile(  # of an ESP32
        r"[EWIDV] \((?P<millis>\d{1,10})\) (?:(?=[\w.-]+: \[?[TR]X\b|[<>] )|command_lib: "
        rf"|[\w.-]+: (?=(?:{RIGHT}|{LEFT}) ))"
    ),
    re.compile(r"(?:DEBUG +- |D: |PYTEST: )+(?:DEVICE|DEBUG:[\w.]+:#): ?"),  # twister's
    # Of the Arduino core and of ESPHome for an ESP32: the level, the file or the tag and its line.
    re.compile(
        r"(?:\[ *(?P<millis>\d{1,10})\])?\[[CDEIVW]+\]\[[\w. -]+:\d+\](?:\[[\w.-]+\])?:?\s+"
        r"(?:[\w:~]+\(\): )?"
    ),
    re.compile(  # of Mbed OS
        r"(?:\[\d+m)?(?:\[(?P<millis>\d{1,13})ms\]\s*)?\[(?:DBG |INFO|WARN|ERR )\]\[CELL\]: "
    ),
    re.compile(r"(?P<millis>\d{6,10}) \[ncp\.at\] TRACE: (?=[<>] )"),  # of Particle's Device OS
    re.compile(r"(?:[a-z]+,)+[a-z]+ [\w-]+: (?=(?:sent|rcvd) )"),  # of RouterOS: the topics
    re.compile(r"\s*(?P<plain>\d{1,7}\.\d{3}) (?=AT (?:send|read) )"),  # before Particle's
    re.compile(r"[EWID]: (?=\S)"),  # of Zephyr's log at its smallest
    re.compile(r"<(?:info|debug)> \w+: (?=[<>] )"),  # of the nRF5 SDK
    re.compile(r"WvDial(?: Modem)?<[^<>]{1,6}>: "),
    # The port.
    re.compile(r"(?P<bracket>[\[(])?(?P<kit>/dev/[\w./-]+|COM\d{1,3})(?(bracket)[\])]):?\s+(?=\S)"),
    re.compile(r"(?P<plain>\d{1,10}\.\d{1,9})\s+(?=(?:TRACE|DEBUG|INFO|WARN|ERROR)\b)"),
    re.compile(r"(?:(?P<plain>\d{1,10}\.\d{1,9})\|)?(?:[\w .-]*\|){1,6}(?=[TR]X:)"),
    re.compile(
        r"(?!error: \d+$)"  # which is all that a tool says
        r"\s*(?:\[ *)?(?:TRACE|DEBUG|VERBOSE|INFO|NOTICE|WARN(?:ING)?|ERROR)(?: *\])?"
        r"(?:[\s:]|-+(?![->]))+(?!//|#\s)(?=\S)",  # behind an answer ERROR may stand a remark
        re.IGNORECASE,
    ),
    re.compile(r"[\w.-]+:[\w-]+\.py:\d+ +"),  # pytest's
    re.compile(r"<\w{3,7}>\s+(?=\[\d{9,10}\.)"),  # ModemManager's level
    # The system's log: of its priority, its date, the host and the program.
    re.compile(r"<\d{1,3}>(?:1 )?(?=\d{4}-|[A-Z][a-z]{2} )"),
    re.compile(rf"[A-Z][a-z]{{2}} +\d{{1,2}} {_TIME_OF_LOG} (?:[\w.-]+ [\w.-]+(?:\[\d+\])?: )?"),
    re.compile(r"(?:[\w.-]+ ){0,2}[\w./-]+\[\d+\]: |[\w.-]+ [\w./-]+ (?:\d+|-) \S+ - "),
    re.compile(
        rf"\[?[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} +\d{{1,2}} {_TIME_OF_LOG} \d{{4}}\]?:? ?"
    ),  # Tera Term, C's ctime
    re.compile(  # the same, as dmesg -T, in another language
        r"\[[^\W\d_]{1,5}\.? (?:[^\W\d_]{1,5}\.?|\d{1,2}\w) +\d{1,2} "
        rf"{_TIME_OF_LOG} \d{{4}}\] ?"
    ),
    re.compile(  # month and day, as in German
        r"\[\d{1,2}\.\d{1,2} (?P<hours>\d\d)\.(?P<minutes>\d\d)\.(?P<seconds>\d\d)"
        r"\.(?P<fraction>\d{3})\] ?"
    ),
    re.compile(rf"\[\d{{1,3}} {_TIME_OF_LOG}\] ?"),  # Tera Term's, days and hours since it began
    re.compile(
        r"(?P<bracket>\[)?(?:(?P<microseconds>1\d{15})|(?P<millis>1\d{12})"
        r"|(?P<plain>1\d{9}(?:\.\d{1,9})?))(?(bracket)\]):? +"
    ),
    # What runs containers and jobs sets before what they print.
    re.compile(r"(?P<kit>[\w.-]+) +\| "),
    re.compile(r"\[pod/(?P<kit>[^\]]+)\] "),
    re.compile(r"(?:stdout|stderr) [FP] "),
    re.compile(r"[^\t]+\t[^\t]+\t(?=\d{4}-\d\d-)"),
    re.compile(r"- [\w.]+ - |\w+(?:::\w+)*\] "),  # Python's logging, Rust's: the logger's name
    re.compile(r"\| [A-Z]+ *\| [\w.<>]+:[\w<>]+:\d+ - "),  # loguru's: level, function and line
    re.compile(rf"[\w.-]+ +(?=(?:DEBUG|INFO): +(?:{RIGHT}|{LEFT}) )"),  # before its level
    re.compile(rf"\d\d-\d\d {_TIME_OF_LOG} +\d+ +\d+ [VDIWE] [\w.-]+ *: "),  # Android's
    re.compile(r"[VDIWEF]/[\w.-]+ *\( *\d+\): "),  # and in brief
    # The path of a module of Rust, or a file of Go and its line.
    re.compile(rf"(?:\w+(?:::\w+)+:|[\w./-]+\.go:\d+)\s+(?=(?:{RIGHT}|{LEFT}|[<>]) )"),
    re.compile(r"(?P<kit>[A-Za-z][\w-]*): (?=[<>] )"),  # oFono's, the name of the channel
    # The name that a program's own prints have in brackets before an arrow.
    re.compile(
        r"(?P<square>\[)?(?(square)|\()[A-Za-z][\w .-]{1,20}(?(square)\]|\))\s+"
        rf"(?=(?:{LEFT}|<)\s|(?:{RIGHT}|>)\s+(?:at )?AT)"
    ),
    re.compile(r", \w[\w.-]*: "),  # smstools', behind the level: the name of the modem
    re.compile(r"\[\d+\] \[\d+\] [A-Z]+: AT2\[[^\]]{1,60}\]: "),  # Kannel's
    # The number of a line or of a step, and the sign of a list.
    re.compile(rf"\s*(?:\d{{1,5}}[.)]\s+|[(\[]\d{{1,5}}[)\]]\s+|\d{{1,5}}(?::|\t)\s*(?={BEGINS}))"),
    re.compile(rf"\s*[-*•]\s+(?={BEGINS})"),
    # Whatever else a logger sets before the mark of a direction: levels, files, names, threads.
    re.compile(
        rf"(?>(?!{_MARK}|AT[\s+%#*^&])"
        r"(?:\[[^\]<>\"]{1,60}\](?:(?=\[)|:?\s+)"
        r"|(?:\([^()<>\"]{1,40}\):?|[\w.:/()-]{1,60}\]?|-|\|)\s+)){1,6}"
        rf"(?={_MARK})",
        re.IGNORECASE,
    ),
)

_COLOURS = r"(?:\s|\x1b\[[\d;]*m)*"
_AROUND = (
    r"```\w*|Script (?:started|done)(?: on|,) .*|(?:=~)+= PuTTY log .*",
    r"--- Miniterm on .* ---",
    # PlatformIO's, and those of a task in Visual Studio Code.
    r"--- (?:Terminal on|Available filters|More details at|Quit:|forcing [DR]T[RS]) .*",
    r" *[*>] +(?:Executing task|Terminal will be reused).*",
    r"Welcome to minicom .*|OPTIONS: .*|Port /\S+, .*|(?:Press )?CTRL-A Z for help.*",
    r"connected to /dev/\S+|Escape character: .*|Type the escape character to get .*",  # microcom
    r"\[(?:tio )?[\d:. T-]+\] (?:tio v?\d.*|Press ctrl-t q to quit|Connected(?: to /dev/\S+)?)",
    r"picocom v\d.*|Type \[C-a\] \[C-h\] to see .*|Terminal ready|Thanks for using picocom",
    # picocom's settings: their colons are a column.
    r"(?=.{15}:)(?:port|baudrate|parity|escape|local echo|no(?:init|reset|lock)|hangup) is *:.*",
    r"(?=.{15}:)(?:(?:databits|stopbits) are|flowcontrol|initstring) *:.*",
    r"(?=.{15}:)(?:(?:send|receive)_cmd|[ioe]map|logfile|exit(?:_after)?) is *:.*",
)
FENCE = re.compile(f"{_COLOURS}(?:{'|'.join(_AROUND)}){_COLOURS}")
"""What a forum, an issue or a terminal sets around a log: no line of it."""
PLACE = re.compile(r"(?<!\s)(?>\s+)\((?:[\w-]+ )?[\w./-]+\.(?:c|cpp|py|rs):\d+\)$")
"""The line of a program, which pytest and defmt's tools write behind what it logs."""
