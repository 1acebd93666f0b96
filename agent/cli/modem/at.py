"""`cellagent modem at`: send AT commands, print their answers."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, get_args

import click

from agent.cli.framework.command import agent_command, emit, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.typed_input import InputLines
from agent.errors import UsageError, exit_code_of
from at.protocol.dialect import DialectName, TerminatorName
from at.protocol.encoding import check_line
from at.protocol.error_codes import code_name, rejection
from at.protocol.line.answer_or_notice import command_name
from at.protocol.line.framing import DroppedLine
from at.protocol.line.items import Answer, Unknown
from at.protocol.redaction.command_redaction import MARKER, without_secrets
from at.protocol.timeouts import timeout_of

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from at.decode import Check
    from at.protocol.errors import CommandRejected
    from at.protocol.line.items import Item
    from at.tokens.attestation import Signed

_SIGNED = {"%KEYGEN", "%ATTESTTOKEN"}
# Their arguments are keys: the process list and the shell's history would keep them.
_KEYS = frozenset({"key", "psk-identity"})


@agent_command("cellagent modem at --port /dev/ttyACM0 AT+CGMR 'AT+CEREG?'")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.01),
    help="Seconds for each answer; the command's own by default.",
)
@click.option("--baud", type=click.IntRange(min=1), help="Speed of the line.")
@click.option(
    "--dialect",
    type=click.Choice(get_args(DialectName)),
    help="How the firmware speaks AT; the profile's, or found out, by default.",
)
@click.option(
    "--terminator",
    type=click.Choice(get_args(TerminatorName)),
    default="auto",
    help="How the firmware wants a line to end; found out by default.",
)
@click.argument("commands", nargs=-1, required=True, metavar="CMD...")
async def command(
    session: Session,
    timeout_s: float | None,
    baud: int | None,
    dialect: str | None,
    terminator: str,
    commands: tuple[str, ...],
) -> int:
    """Send AT commands in order and print their answers; stop at the first that fails.

    CMD `-` reads commands from standard input, one a line; a text in quotes may run over lines.
    Credentials are accepted from there only.
    """
    for line in commands:
        if line != "-":
            # Before the first one is sent: half of what was meant would be done.
            check_line(_without_shell(line), multiline="\n" in line)
        if line != "-" and _KEYS & {name for name, _ in MARKER.findall(without_secrets(line))}:
            raise UsageError(
                "a credential does not belong on the command line, where others can read it",
                hint="`cellagent modem at - < FILE`, with the command in FILE",
            )
    async with session.modem(baud=baud, dialect=dialect, terminator=terminator) as modem:
        beside = modem.lines()
        beside.take()  # what came before the first command
        async for line in _lines(commands):
            try:
                answer = await modem.execute(
                    line, timeout_s=timeout_s or timeout_of(line), multiline="\n" in line
                )
            finally:
                _note_strays(beside.take())
            show_answer(session, line, answer)
            if not answer.ok:
                error = rejection(line, answer)
                if not session.json:
                    hint = (_quotes_taken(line) if line in commands else "") or error.hint
                    explain(error, pasteable_hint(hint, str(error), session))
                return exit_code_of(error)
    return 0


_PARAMETER = re.compile(r"\d\d/\d\d/\d\d,[^,]*|[^,]+")  # of a time the comma is no end
_NUMBER = re.compile(r"-?\d+")


def _quotes_taken(line: str) -> str:
    """Return the hint for a command whose texts have no quotes: a shell takes them; "" for none."""
    name, _, given = line.partition("=")
    if '"' in given or given.startswith("?") or without_secrets(line) != line:
        return ""
    quoted = _PARAMETER.sub(
        lambda each: each[0] if _NUMBER.fullmatch(each[0]) else f'"{each[0]}"', given
    )
    meant = shlex.join(["cellagent", "modem", "at", f"{name}={quoted}"])
    return f"a text needs its quotes, which the shell takes: `{meant}`" if quoted != given else ""


def _note_strays(items: Iterable[Item]) -> None:
    """Show what may be a damaged line of the answer: without it, an empty one would be believed."""
    for item in items:
        if type(item) is Unknown:
            note(f"  not understood as part of the answer: {item.text}")
        elif type(item) is DroppedLine:
            note(f"  left out of the answer, a line that is too long: {item.head}...")


async def _lines(commands: Iterable[str]) -> AsyncIterator[str]:
    for line in commands:
        if line == "-":
            async for text in commands_in(InputLines()):
                yield _without_shell(text)
        else:
            yield _without_shell(line)


def _without_shell(line: str) -> str:
    """Return a command as typed at a kit's own shell, `at AT+CFUN?`, without the shell's word."""
    return re.sub(r"(?i)^at\s+(?=at)", "", line)


async def commands_in(lines: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Yield the AT commands of a text: one a line, but a string in quotes may span lines.

    Empty lines and lines that begin with # are left out.
    """
    whole = ""
    async for line in lines:
        whole += line.decode("utf-8", "surrogateescape")
        if whole.count('"') % 2:
            continue
        text, whole = whole.strip("\r\n"), ""
        if text.strip() and not text.startswith("#"):
            yield text
    if whole.strip():
        yield whole.strip("\r\n")


def show_answer(session: Session, line: str, answer: Answer) -> None:
    """Show the answer to `line`: its lines and how it ended; with --json as one object.

    Raises UntrustedSignature, once it is shown, if the modem signed it with a key that the
    profile does not name, and ConfigError.
    """
    signed: list[Signed] = []

    def check(one: Signed) -> Signed:
        signed.append(session.identity_keys.check(one))
        return signed[-1]

    if session.json:
        emit(_as_json(line, answer, check))
    else:
        _show_lines(answer)
        sys.stdout.flush()  # to a pipe, too: who typed the line may wait for its answer
        if command_name(line) in _SIGNED:  # else the families of commands are not imported
            _decoded(line, answer, check)
    for one in signed:
        session.identity_keys.require(one, f"the answer to {line.partition('=')[0].strip()}")
        if not session.json:
            note(f"signature: {'verified' if one.verified else one.reason}")


def explain(error: CommandRejected, hint: str) -> None:
    """Tell a person what the number of an error means, and what to try."""
    if error.code is not None:
        note(f"  {code_name(error.final, error.code)}")
    if hint:
        note(f"  try: {hint}")


def _show_lines(answer: Answer) -> None:
    for text in answer.lines:
        say(text, whole=True)
    final = answer.final or ""
    if answer.code is not None or answer.text:
        final += f": {answer.code or answer.text}"
    say(final, whole=True)


def _as_json(line: str, answer: Answer, check: Check) -> dict[str, object]:
    """Return an answer in the shape of `modem decode`."""
    from at.decode import answer_object

    value, error = _decoded(line, answer, check)
    if not answer.ok:
        error = str(rejection(line, answer))
    return answer_object(answer, without_secrets(line), value, error)


def _decoded(line: str, answer: Answer, check: Check) -> tuple[object, str | None]:
    from at.decode import answer_value

    return answer_value(answer, line, check)
