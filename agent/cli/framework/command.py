"""The base of every command: common options, output for people and programs, exit codes."""

import contextlib
import errno
import gc
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, TextIO, TypeVar

import click

from agent.cli import EXIT_HUNG_UP, EXIT_INTERRUPTED
from agent.cli.framework.candidates import complete_kit, complete_profile
from agent.cli.framework.safe_text import printable
from agent.cli.framework.session import Session
from agent.redact import redact

F = TypeVar("F", bound=Callable[..., object])


def _store(ctx: click.Context, option: click.Parameter, value: object) -> None:
    if value:
        setattr(ctx.ensure_object(Session), str(option.name), value)


click.IntRange.name = "integer"  # in help and messages, where click's name asks for a range
_WHOLE = 1000
_LASTS_S = 1.0
_OBJECTS = 2000
"""A command that lasts so long collects garbage after so many new objects, as Python 3.14 does."""
_common = partial(click.Option, expose_value=False, callback=_store)


def _store_port(ctx: click.Context, option: click.Parameter, ports: tuple[str, ...]) -> None:
    if len(set(ports)) > 1:  # the last would be spoken to, and the others left out in silence
        import shlex  # only a failure pays for it

        from agent.errors import UsageError

        raise UsageError(
            f"--port names {len(set(ports))} kits: {', '.join(ports)}",
            hint=f"`--port {shlex.quote(ports[0])}`",
        )
    _store(ctx, option, ports[-1] if ports else None)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return what adds these options, in this order, to each command that has them all."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class _WholeExample(click.Command):
    """A command whose help has its example on one line: two would be pasted as two commands."""

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example; the terminal alone may break it."""
        if self.epilog:
            formatter.write(f"\n  {self.epilog}\n")


class AgentCommand(_WholeExample):
    """A command with `--json`, `--profile`, `--port` and `-v`.

    Its function gets the Session before its own arguments. A coroutine that it returns is run to
    its end, for the exit code; None is 0.
    """

    offers: ClassVar[Collection[str]] = ("profile_name", "port")
    """Those of the options that its help shows: every command takes all of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            _common(["--json"], is_flag=True, help="One JSON object a line on standard output."),
            _common(
                ["--profile", "profile_name"],
                metavar="NAME",
                shell_complete=complete_profile,
                help="The profile of the configuration to use.",
                hidden="profile_name" not in self.offers,
            ),
            _common(
                ["--port"],
                multiple=True,
                callback=_store_port,
                metavar="PORT",
                shell_complete=complete_kit,
                help="/dev/ttyACM0, COM3, serial:NUMBER, tcp://HOST:PORT, virtual:, replay:FILE "
                "or a kit's name.",
                hidden="port" not in self.offers,
            ),
            _common(["-v", "--verbose", "verbosity"], count=True, help="Say more; -vv still more."),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; its errors name the command, so that its example can be shown."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as wrong:
            wrong.ctx = wrong.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> None:
        """Send the log to standard error, then run the command."""
        from agent.cli.framework.logs import log_to_stderr

        session = ctx.ensure_object(Session)
        log_to_stderr(session.verbosity)
        assert self.callback is not None
        try:
            try:
                work = ctx.invoke(self.callback, session, **ctx.params)
                if isinstance(work, Coroutine):
                    run(work)
            finally:
                _flush_output()
        except BrokenPipeError:
            # The reader of our output went away (`| head`): not an error. Caught here, since click
            # itself would make a failure of it.
            discard_output()


class ProfileCommand(AgentCommand):
    """A command that asks no kit."""

    offers = ("profile_name",)


class OfflineCommand(AgentCommand):
    """A command that reads neither profile nor port."""

    offers = ()


def agent_command(
    example: str, cls: type[AgentCommand] = AgentCommand
) -> Callable[[Callable[..., object]], AgentCommand]:
    """Return the decorator of a command that is in no group; its help ends in the example."""
    return click.command(cls=cls, epilog=f"Example: {example}")


_OTHER_WORDS = {"get": ("show",), "ls": ("list",), "rm": ("unset", "delete")}
"""What other tools call it, where the word most like it would do another thing."""


class SuggestingGroup(_WholeExample, click.Group):
    """A group that answers a mistyped command with the nearest one, ready to be pasted."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command. Raises UsageError with the nearest name; else as click does."""
        word, rest = args[0], args[1:]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            from difflib import get_close_matches  # only a mistype pays for it

            from agent.cli.framework.hints import NEAR

            known = self.list_commands(ctx)
            other = [name for name in _OTHER_WORDS.get(word, ()) if name in known]
            near = other or get_close_matches(word, known, n=1, cutoff=NEAR)
            option = f"--{word}"  # `help modem`, `version`
            is_option = any(option in each.opts for each in self.get_params(ctx))
            if near or is_option:
                import shlex

                from agent.errors import UsageError

                meant = [*rest, option] if is_option else [near[0], *rest]
                line = shlex.join([*ctx.command_path.split(), *meant])
                raise UsageError(
                    f"there is no command `{ctx.command_path} {word}`",
                    hint=f"did you mean `{line}`?",
                )
        return super().resolve_command(ctx, args)


class AgentGroup(SuggestingGroup):
    """A group whose commands are `AgentCommand`s unless they say otherwise."""

    command_class = AgentCommand
    group_class = type  # groups in this group are of its class, too

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, to the end of the sentence: click would cut it."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(_WHOLE)) for name, each in found if each]
            )


class ProfileGroup(AgentGroup):
    """A group whose commands ask no kit."""

    command_class = ProfileCommand


class OfflineGroup(AgentGroup):
    """A group whose commands read neither profile nor port."""

    command_class = OfflineCommand


def emit(value: object) -> None:
    """Write one JSON object as a line on standard output."""
    sys.stdout.write(json_line(value))
    sys.stdout.flush()


def json_line(value: object) -> str:
    """Return one JSON object as a line."""
    import json  # `--help` and completion must not pay for it

    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _flush_output() -> None:
    """Write what is left: what cannot be written fails now, not at the exit.

    A reader that went away takes nothing from how the command has ended: its exit code, its error.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output(stream: TextIO | None = None) -> None:
    """Discard what is written to standard output, or `stream`, from now on: nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def say(text: str = "", *, whole: bool = False) -> None:
    """Write a line for people on standard output; control characters are made visible.

    A terminal gets it in lines that fit, or `whole`: what a modem said is not broken.
    """
    sys.stdout.write(f"{printable(text)}\n" if whole else _for_people(text, sys.stdout))


def _for_people(text: str, stream: TextIO) -> str:
    shown = printable(text)
    if stream.isatty():
        from agent.cli.framework.terminal import folded  # a pipe must not pay for it

        shown = folded(shown, stream)
    return f"{shown}\n"


def emit_or_say(session: Session, value: object, *lines: str) -> None:
    """Write `value` as a JSON object with --json, else the lines for people."""
    if session.json:
        emit(value)
    else:
        for line in lines:
            say(line)
        sys.stdout.flush()  # to a pipe, too: what comes next may be a wait


def note(text: str) -> None:
    """Write progress or a warning on standard error, without the secrets it may hold.

    Where nobody can read it, nothing else ends for that.
    """
    try:
        sys.stderr.write(_for_people(redact(text), sys.stderr))
        sys.stderr.flush()
    except OSError:
        discard_output(sys.stderr)


def note_reload(profile: str) -> None:
    """Tell that an agent of the profile, if one runs, has what it read before."""
    import shlex

    from agent.daemon.control.socket import control_socket_of
    from agent.files.paths import state_dir
    from agent.files.trusted_places import UntrustedPlace

    with contextlib.suppress(UntrustedPlace):
        if control_socket_of(state_dir(), profile).is_listening():
            reload = shlex.join(["cellagent", "reload", "--profile", profile])
            note(f"the agent that runs goes on as before: `{reload}` has it read this")


def show_defect(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Write the traceback of a defect of ours, without the secrets that its message may hold."""
    import traceback

    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, at))))


def run(work: Coroutine[None, None, int | None]) -> None:
    """Run a command's coroutine to its end and exit with the code that it returns."""
    import asyncio  # `--help` of a command must not pay for it

    from agent.cli.framework.event_loop import CommandLoop
    from agent.cli.framework.signals import cancel_on_signal, signals_wake_the_loop

    async def awake() -> int | None:
        asyncio.get_running_loop().call_later(_LASTS_S, gc.set_threshold, _OBJECTS)
        with signals_wake_the_loop():
            return await cancel_on_signal(work)

    begun = awake()
    try:
        with asyncio.Runner(loop_factory=CommandLoop) as runner:
            code = runner.run(begun)
    finally:  # Ctrl-C may come before either of them began
        begun.close()
        work.close()
    if code:
        raise SystemExit(code)


def run_command_line(root: click.Command) -> int:
    """Run `root` on the arguments of the process; return the exit code. No traceback leaves it."""
    as_json = "--json" in sys.argv[1:]
    session, output = Session(), sys.stdout
    try:
        root.main(prog_name="cellagent", standalone_mode=False, obj=session)
    except SystemExit as stop:
        if sys.stdout is not output:  # click has replaced it: the reader of a help went away
            return 0
        return stop.code if isinstance(stop.code, int) else 1
    except (KeyboardInterrupt, click.Abort) as stop:
        # A question that click asked: it was answered with no, or not at all.
        unanswered = isinstance(stop, click.Abort) and stop.__cause__ is None
        message = "not done: the answer was not yes" if unanswered else "stopped by Ctrl-C"
        hint = session.goes_on
        if hint:
            from agent.cli.framework.hints import pasteable_hint

            hint = pasteable_hint(hint, message, session)
        return _fail(as_json, EXIT_INTERRUPTED, "interrupted", message, hint)
    except click.exceptions.NoArgsIsHelpError as bare:  # a group alone is answered with its help
        note(bare.format_message())
        return bare.exit_code
    except click.ClickException as wrong:
        from agent.cli.framework.hints import usage_hint
        from agent.errors import UsageError

        hint = usage_hint(wrong) if isinstance(wrong, click.UsageError) else ""
        mistyped = isinstance(wrong, click.NoSuchOption | click.NoSuchCommand)
        # What click takes for near is not; the hint has what is, as a whole command.
        message = wrong.message if mistyped else wrong.format_message()
        return _fail(as_json, UsageError.exit_code, UsageError.kind, message, hint)
    except Exception as error:
        from agent.cli.framework.hints import named, pasteable_hint  # only a failure pays for it

        failure = _describe(error)
        if failure is None:
            raise
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            discard_output()
            as_json = False  # it would not arrive
        code, kind, message, hint = failure
        hint = pasteable_hint(hint, message, session)
        return _fail(as_json, code, kind, named(message, session), hint)
    return 0


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def _describe(error: Exception) -> tuple[int, str, str, str] | None:
    """Return exit code, kind, message and hint; None for an exception that is a defect of ours."""
    from agent.cli.framework.hints import hold_hint, usual_hint
    from agent.errors import AgentError, UsageError, exit_code_of  # only a failure pays for it
    from at.protocol.errors import AtError, PortBusy

    if isinstance(error, AgentError | AtError):
        hint = hold_hint() if isinstance(error, PortBusy) else ""
        return exit_code_of(error), error.kind, str(error), hint or error.hint or usual_hint(error)
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _FULL):
        return (
            EXIT_HUNG_UP if _terminal_has_gone(error) else exit_code_of(error),
            "file",
            f"{error.filename or 'output'}: {error.strerror}",
            usual_hint(error),
        )
    if isinstance(error, FileNotFoundError) and error.strerror == os.strerror(errno.ENOENT):
        gone = "the folder that this was started in is gone"  # os.getcwd names nothing
        hint = '`cd "$PWD"` enters one of its name, `cd ~` another'
        return exit_code_of(error), "file", gone, hint
    if isinstance(error, FileNotFoundError):  # of tempfile, which names all the folders it tried
        hint = "`df -h` shows which disk is full; TMPDIR names another folder"
        return exit_code_of(error), "file", str(error.strerror), hint
    if isinstance(error, UnicodeEncodeError):
        # A path may have any bytes; what is sent, or kept as text, may not.
        for word in sys.argv[1:]:
            if re.search("[\ud800-\udfff]", word):
                wrong = f"{word!r} is no text in UTF-8"
                return UsageError.exit_code, UsageError.kind, wrong, "write it in UTF-8"
    return None


def _terminal_has_gone(error: OSError) -> bool:
    """Tell whether output failed since its terminal was closed: as SIGHUP, which may come later."""
    if error.errno != errno.EIO or error.filename is not None:
        return False
    return stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)


def _fail(as_json: bool, code: int, kind: str, message: str, hint: str) -> int:
    if as_json:
        failure = {"exit": code, "kind": kind, "message": redact(message), "try": redact(hint)}
        try:
            emit({"error": failure})
            return code
        except OSError:
            discard_output()  # it goes nowhere, or the disk is full: standard error hears of it
    note(f"cellagent: {message}")
    if hint:
        note(f"  try: {hint}")
    return code
