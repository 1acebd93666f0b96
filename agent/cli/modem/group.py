"""`cellagent modem`: a table of commands, each imported when it is called."""

from agent.cli.main import LazyGroup

command = LazyGroup(
    name="modem",
    help="Check the modem, speak AT to it, decode, record, replay; the virtual modem.",
    epilog="Example: cellagent modem at --port /dev/ttyACM0 AT+CGMR",
    table={
        "check": ("modem.check", "Is it alive, what is it, may it be used, is it on the network?"),
        "at": ("modem.at", "Send AT commands and print their answers."),
        "term": ("modem.term", "A terminal that tells answers, notices and log lines apart."),
        "signal": ("modem.signal", "How well the modem hears its cell; --watch follows it."),
        "jwt": ("modem.jwt", "A token signed by the modem (AT%JWT)."),
        "decode": ("modem.decode", "Captured bytes of a modem to one JSON object per thing."),
        "record": ("modem.record", "Record a session as a transcript."),
        "replay": ("modem.replay", "Play a transcript as a modem."),
        "import": ("modem.importer", "Make a transcript from a terminal's log."),
        "virtual": ("modem.virtual", "A virtual nRF91 on a PTY or a TCP port."),
    },
)
