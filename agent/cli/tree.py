"""The command tree as a table; the module of a command is imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agent.cli import VERSION_LINE
from agent.cli.framework.command import SuggestingGroup

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """A command: MODULE or MODULE:NAME below agent.cli, and its line in the help of its group.

    Without a NAME it is `command`.
    """

    module: str
    short_help: str

    def load(self) -> click.Command:
        """Import the module of the command and return the command."""
        module, _, name = self.module.partition(":")
        command: click.Command = getattr(
            importlib.import_module(f"agent.cli.{module}"), name or "command"
        )
        return command


class LazyGroup(SuggestingGroup):
    """A group over a table of commands and groups that are imported when they are called."""

    def __init__(self, *args: Any, table: Mapping[str, Entry | LazyGroup], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command of the table, None where it has none of that name."""
        entry = self.table.get(cmd_name)
        if not isinstance(entry, Entry):
            return entry
        command = entry.load()
        command.name = cmd_name  # that of its function stood in the man page
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, entry.short_help or "") for name, entry in self.table.items()]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table without importing anything."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # `--help` must not pay for it

        return [
            CompletionItem(name, help=entry.short_help)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]


# The help stands here so that `--help` and completion import none of the modules.
MODEM = LazyGroup(
    name="modem",
    short_help="Check it, turn it on and off, speak AT to it, decode, record; the virtual modem.",
    help="Check the modem, turn it on and off, speak AT to it, decode, record, replay; the virtual "
    "modem.",
    epilog="Example: cellagent modem at --port /dev/ttyACM0 AT+CGMR",
    table={
        "check": Entry(
            "modem.check", "Is it alive, what is it, may it be used, is it on the network?"
        ),
        "why": Entry("modem.why", "Why is it not on the network? Live, or from a log."),
        "on": Entry("modem.power:on", "Turn it on and wait for the network, or say why not."),
        "off": Entry("modem.power:off", "Turn it off; it keeps what it learned of the cells."),
        "reset": Entry("modem.power:reset", "Restart it, and put back what it was set to."),
        "at": Entry("modem.at", "Send AT commands and print their answers."),
        "term": Entry("modem.term", "A terminal that marks answers, notices and log lines."),
        "signal": Entry("modem.signal", "Signal levels of the serving cell; --watch follows them."),
        "jwt": Entry("modem.jwt", "A token signed by the modem (AT%JWT)."),
        "decode": Entry("modem.decode", "Captured bytes of a modem to one JSON object per thing."),
        "record": Entry("modem.record", "Record a session as a transcript."),
        "replay": Entry("modem.replay", "Play a transcript as a modem."),
        "import": Entry("modem.import_log", "Make a transcript from a terminal's log."),
        "virtual": Entry("modem.virtual", "A virtual nRF91 on a PTY or a TCP port."),
    },
)

PROVISION = LazyGroup(
    name="provision",
    short_help="Bring new kits into service; the bench and its ledger.",
    help="Bring new kits into service: keys, certificates, registration, proof; and the ledger.",
    epilog="Example: cellagent provision run --all --expect 16",
    table={
        "plan": Entry("provision.plan", "What would be done to each board, before anything is."),
        "run": Entry("provision.run", "Do it: many boards at once, each step kept in the ledger."),
        "status": Entry(
            "provision.status", "The state of every board in the ledger, or the steps of one."
        ),
        "report": Entry(
            "provision.report", "Yield, first-pass yield, cycle times, failures by reason."
        ),
        "export": Entry(
            "provision.export", "The ledger as CSV or JSON, for people and for services."
        ),
        "migrate": Entry("provision.migrate", "Bring the ledger of an older version up to date."),
        "ca": LazyGroup(
            name="ca",
            short_help="Make the CA that signs the certificates of a bench's boards.",
            help="Make the CA that signs the certificates of a bench's boards.",
            epilog="Example: cellagent provision ca create ~/bench-ca",
            table={"create": Entry("provision.ca:create", "Make its key and its certificate.")},
        ),
    },
)

COMMANDS: Mapping[str, Entry | LazyGroup] = {
    "ports": Entry("ports", "Kits, their ports, which one answers AT, and why the others do not."),
    "modem": MODEM,
    "console": Entry(
        "console.command", "The kit's logs, live; chunks and core dumps are taken out and counted."
    ),
    "scan": Entry("scan", "Scan the cells and the Wi-Fi around the kit."),
    "locate": Entry("locate", "Where the kit is."),
    "assist": Entry("assist", "A-GNSS and P-GPS assistance data."),
    "device": Entry("device.command", "Devices at the device cloud."),
    "fota": Entry("fota.command", "The pending update of the kit: check, pull, install, report."),
    "report": Entry(
        "observability.report",
        "Send events, core dumps, chunks and files to the observability service.",
    ),
    "outbox": Entry("observability.outbox", "What waits for delivery."),
    "observe": Entry("observability.observe", "Resources of the observability service."),
    "capture": Entry(
        "capture.command", "Read what a kit printed, offline: chunks, messages, core dumps."
    ),
    "provision": PROVISION,
    "cloud": Entry("cloud", "The stand-in for both services, on loopback."),
    "config": Entry("config", "Profiles and where each value comes from."),
    "login": Entry("login", "Ask for the profile's secrets, try them, and keep them."),
    "doctor": Entry(
        "doctor.command", "From the profile to the cloud: what is well, what not, what next."
    ),
    "run": Entry("run", "The agent: everything for one kit or many, for months."),
    "status": Entry("status", "What the running agent does and how its kits are."),
    "page": Entry("page", "The live page of the agent and the bench, in a browser."),
    "hold": Entry("hold", "Make the running agent let go of a kit, while a command runs."),
    "reload": Entry("reload", "Make the running agent read its profile again."),
    "demo": Entry(
        "demo", "All that the agent does, in twenty seconds, with no kit and no account."
    ),
    "completion": Entry("completion", "Shell completion for bash, zsh, fish and PowerShell."),
}


@click.command(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(VERSION_LINE, message="%(version)s")
def root() -> None:
    """Drive an nRF91 kit: its modem, position, updates, crashes and credentials.

    Start with `cellagent demo` (no kit needed) or `cellagent ports` (a kit on USB).
    """
