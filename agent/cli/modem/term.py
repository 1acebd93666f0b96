"""`cellagent modem term`: a terminal that marks answers, notices and log lines."""

import asyncio
import re
import shlex
import sys

import click

from agent.cli.framework.command import agent_command, emit, note, say
from agent.cli.framework.line_editor import edited_lines, typed_so_far
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.safe_text import drawing, printable
from agent.cli.framework.session import Session
from agent.cli.framework.typed_input import InputLines
from agent.errors import with_hint
from agent.tasks import cancel_and_wait
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.counts import counted
from at.protocol.line.items import Echo, Item
from at.protocol.notices import Notice
from at.transport.base import labelled


@agent_command("cellagent modem term --port /dev/ttyACM0")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.01),
    default=60.0,
    show_default=True,
    help="Seconds for each answer.",
)
@click.option("--baud", type=click.IntRange(min=1), help="Speed of the line.")
async def command(session: Session, timeout_s: float, baud: int | None) -> None:
    """Type AT commands and see their answers; << marks notices, .. marks log lines.

    Ends with Ctrl-D or exit. What is typed while a command runs is sent after it, so no byte is
    lost. Up brings the line before, Ctrl-R looks for one; none is kept once it has ended.
    """
    async with session.modem(baud=baud) as modem:
        note(
            f"{labelled(modem.name)} {modem.dialect.value}, line end {modem.terminator.value}. "
            "Ctrl-D ends."
        )
        with modem.notices() as notices, modem.lines() as lines, edited_lines() as typed:
            watchers = [
                asyncio.create_task(_show_notices(session, notices)),
                asyncio.create_task(_show_lines(session, lines)),
            ]
            typing = asyncio.create_task(_type(session, modem, typed, timeout_s))
            try:
                await asyncio.wait([typing, *watchers], return_when=asyncio.FIRST_COMPLETED)
                if typed_so_far() and not typing.done():
                    say()  # what ends it is no part of the line
                for task in (typing, *watchers):
                    if task.done():
                        task.result()  # the loss of the link, if that ended it
                await asyncio.sleep(0)
            finally:
                await cancel_and_wait(typing, *watchers)
            if notices.dropped or lines.dropped:
                dropped = counted(notices.dropped + lines.dropped, "lines")
                note(f"not shown, as they came too fast: {dropped}")


async def _type(session: Session, modem: Modem, typed: InputLines, timeout_s: float) -> None:
    from agent.cli.framework.hints import pasteable_hint
    from agent.cli.modem.at import explain, show_answer
    from agent.config.identity_keys import UntrustedSignature
    from at.protocol.error_codes import rejection
    from at.protocol.errors import CommandTimeout, UnsafeArgument

    whole = ""
    async for raw in typed:
        whole += raw.decode("utf-8", "replace")
        line = whole.strip("\r\n")
        if line.strip() in {"exit", "quit"}:
            return
        if not line.strip():
            whole = ""
            continue
        if whole.count('"') % 2:
            if sys.stdin.isatty() and b'"' in raw:
                note('  the text in quotes goes on in the next line; a " ends it')
            continue
        whole = ""
        try:
            answer = await modem.execute(line, timeout_s=timeout_s, multiline="\n" in line)
        except (CommandTimeout, UnsafeArgument) as error:
            note(with_hint(str(error), error.hint))
            continue
        try:
            show_answer(session, line, answer)
        except UntrustedSignature as error:
            note(with_hint(str(error), error.hint))
        if not answer.ok and not session.json:
            refused = rejection(line, answer)
            explain(refused, pasteable_hint(_as_typed_here(refused.hint), str(refused), session))


def _as_typed_here(hint: str) -> str:
    """Return a hint with AT commands in place of ours, for which the port is in use."""

    def typed(found: re.Match[str]) -> str:
        lines = shlex.split(found[1]) if found[1] else [_SAME[found[2]]]
        return ", ".join(f"`{line}`" for line in lines)

    return re.sub("`cellagent modem (?:at ([^`]+)|(off --flight|off|on))`", typed, hint)


_SAME = {"off --flight": "AT+CFUN=4", "off": "AT+CFUN=0", "on": "AT+CFUN=1"}


async def _show_notices(session: Session, notices: Stream[Notice]) -> None:
    async for notice in notices:
        if session.json:
            emit({"type": "notice", "name": notice.name, "line": notice.line})
        else:
            _say_above(f"<< {notice.line}")


async def _show_lines(session: Session, lines: Stream[Item]) -> None:
    async for item in lines:
        text = getattr(item, "text", getattr(item, "head", ""))
        if session.json:
            emit({"type": type(item).__name__.lower(), "line": text})
        elif not isinstance(item, Echo):
            _say_above(f".. {text}")


def _say_above(text: str) -> None:
    """Say a line in the place of the one that is being typed, which is shown again below it."""
    typed = printable(typed_so_far())
    if typed:
        drawing(sys.stdout).write("\r")
    say(text.ljust(len(typed)))
    sys.stdout.write(typed)
    sys.stdout.flush()
