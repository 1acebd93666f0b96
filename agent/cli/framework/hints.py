"""Hints that can be pasted: with profile and port, and the command that failed as it was meant.

What raises an error knows no command line. It writes an option in backticks, `--port virtual:`, or
asks whether another word was meant, and here the command becomes whole.
"""

import errno
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain, takewhile

import click

from agent.cli.framework.session import Session
from at.protocol.error_codes import HINT_WITHOUT_CODE

_TO_THE_PROFILE = re.compile(
    r"(?<=`)cellagent (?:config (?:set|unset)|login)(?![^`]*--profile)[^`]*"
)
_OPTION = re.compile(r"`(--[^`]+)`")
_KEY_FIRST = re.compile(r"([a-z_]+\.[a-z_.]+[a-z_])(?=:? )")
NEAR = 0.7
"""How like each other two words are where one is a mistype of the other, as difflib counts."""
_MOST_PATHS = 3
_ABSENT = re.compile(r"'(.+)'(?: does not exist|: No such file)")
_AT_LINE = re.compile(r"(?:AT)?[+%#][A-Z]", re.IGNORECASE)
_MEANT = re.compile(r"did you mean '([^']+)'\?")


def pasteable_hint(
    hint: str,
    message: str,
    session: Session,
    ports: Sequence[str] = (),
    others: Collection[str] = (),
) -> str:
    """Return a hint whose commands are whole, with profile and port as this one was given them.

    `ports` are those of the kits that are meant, where there are several, and `others` those of the
    others: the command that was typed for all of them becomes one for these alone. A hint that
    sends people to the profile names it in any case. The word for which `message` and hint name
    another is corrected in the command that was typed.
    """
    from agent.config.hints import of_kit, pasteable
    from agent.config.kits import name_of

    kind, _, file = (session.port or "").partition(":")
    if kind == "replay" and hint == HINT_WITHOUT_CODE:
        hint += f"; or the recording lacks it: `grep '> ' {shlex.quote(file)}` shows what it has"
    if "configuration" in vars(session) and (name := name_of(session.profile)):
        hint = of_kit(hint, name)
    hint = _meant_kit(message, session) or hint
    port = ports[0] if len(ports) == 1 else ""
    hint = pasteable(hint or _of_the_key(message), "", port)
    kits = _ports_of_kits(session)
    hint = _OPTION.sub(lambda found: _typed_with(found[1], ports, others, kits), hint)
    hint = _MEANT.sub(lambda found: _meant(found[1], message) or found[0], hint)
    if "loaded" in vars(session):
        hint = _TO_THE_PROFILE.sub(rf"\g<0> --profile {shlex.quote(session.loaded.name)}", hint)
    # What was typed of them is told to be theirs: --port may be that of another one.
    port = "" if ports else session.port or ""
    return pasteable(named(hint, session), session.profile_name or "", port)


def _meant_kit(message: str, session: Session) -> str:
    """Return the hint for a port that is not there, where the profile has a kit of such a name."""
    # A board of provision is an argument.
    words = (session.port, os.environ.get("CELLAGENT_PORT"), *sys.argv)
    typed = [word for word in words if word and f"there is no port {word}" in message]
    absent = max(typed, key=len, default="")
    near = get_close_matches(absent, _ports_of_kits(session), n=1, cutoff=NEAR)
    return f"did you mean {near[0]!r}?" if near else ""


def _ports_of_kits(session: Session) -> dict[str, str]:
    """Return the ports of the profile's kits by their names, none of a profile that is not read."""
    kits = session.loaded.profile.kits if "loaded" in vars(session) else {}
    return {name: kit.port for name, kit in kits.items()}


def _of_the_key(message: str) -> str:
    """Return the hint for a message that begins with a key of the profile, "" for any other."""
    from agent.config.parse import all_keys

    key = _KEY_FIRST.match(message)
    if key is None or key[1] not in all_keys():
        return ""
    return f"`cellagent config set {key[1]} VALUE`, or `cellagent config unset {key[1]}`"


def named(text: str, session: Session) -> str:
    """Return a text with the name of the profile that it speaks of."""
    if "loaded" in vars(session):  # what does not read the profile has nothing to say of it
        return re.sub(r"\bthe profile\b", lambda _: f"profile {session.loaded.name}", text)
    return text


def usage_hint(wrong: click.UsageError) -> str:
    """Return the hint for a command that click refused: as it was meant, or an example of it."""
    if wrong.ctx is None:
        return ""
    if isinstance(wrong, click.NoSuchOption):
        return _option_hint(wrong, wrong.ctx)
    if isinstance(wrong, click.BadParameter):
        if path := _ABSENT.search(wrong.message):
            param = wrong.param
            reads_input = isinstance(param, click.Argument) and "|-" in str(param.metavar)
            if reads_input and _AT_LINE.match(path[1]) and path[1] in sys.argv:
                at = sys.argv.index(path[1])
                line = list(takewhile(lambda word: word[:1] != "-", sys.argv[at:]))
                meant = ["cellagent", *sys.argv[1:at], "-", *sys.argv[at + len(line) :]]
                echo = f"echo {shlex.quote(' '.join(line))} | {shlex.join(meant)}"
                return f"a line comes on standard input: `{echo}`"
            return _in_quotes(path[1]) or usual_hint(FileNotFoundError(errno.ENOENT, "", path[1]))
        if isinstance(kind := wrong.param and wrong.param.type, click.Choice):
            # The message of an option that was left out quotes no word.
            given = "".join(wrong.message.split("'")[1:2])
            if near := get_close_matches(given, kind.choices, n=1):
                return _meant(near[0], wrong.message)
    command = wrong.ctx.command
    if isinstance(command, click.Group):
        return _meant_elsewhere(wrong, wrong.ctx) or _commands_of(command, wrong.ctx)
    example = _example_of(command)
    return f"as in `{example}`" if example else f"see `{wrong.ctx.command_path} --help`"


def _option_hint(wrong: click.NoSuchOption, ctx: click.Context) -> str:
    """Return the hint for an option that a command does not have."""
    if key := _key_of_the_option(wrong):
        return f"that is set in the profile: `cellagent config set {key} VALUE`"
    if line := _without_the_name(wrong):
        return f"did you mean `{line}`?"
    if near := _near_options(wrong.option_name, ctx):
        return _meant(near[0], wrong.message)
    if isinstance(ctx.command, click.Group):
        line = _options_last()
        more = f": `{line}`" if line else f"; {_commands_of(ctx.command, ctx)}"
        return f"options come after the command{more}"
    has, example = f"it has: {', '.join(_options(ctx))}", _example_of(ctx.command)
    forgotten = " -- " in example and "--" not in sys.argv
    return f"{has}; those of your own command come after --: `{example}`" if forgotten else has


def _commands_of(group: click.Group, ctx: click.Context) -> str:
    return f"it has: {', '.join(group.list_commands(ctx))}"


def _example_of(command: click.Command) -> str:
    return (command.epilog or "").removeprefix("Example: ")


def _in_quotes(begin: str) -> str:
    """Return the command with that path in quotes whose blanks divided it, "" where none is so."""
    typed = sys.argv[1:]
    at = typed.index(begin) if begin in typed else len(typed)
    for end in range(at + 2, len(typed) + 1):
        whole = " ".join(typed[at:end])
        if os.path.exists(whole):  # noqa: PTH110 - Path raises for what is too long for a name
            line = shlex.join(["cellagent", *typed[:at], whole, *typed[end:]])
            return f"did you mean `{line}`?"
    return ""


def _options(ctx: click.Context) -> list[str]:
    """Return the long options of this command that its help shows."""
    shown = (each for each in ctx.command.params if isinstance(each, click.Option))
    return [each.opts[-1] for each in shown if not each.hidden and each.opts[-1].startswith("--")]


def _key_of_the_option(wrong: click.NoSuchOption) -> str:
    """Return the key of the profile that this group of commands reads under this name, or ""."""
    from agent.config.parse import all_keys

    group, word = sys.argv[1], wrong.option_name.lstrip("-").replace("-", "_")
    named = (key.partition(".") for key in all_keys())
    return next((f"{of}.{key}" for of, _, key in named if of.startswith(group) and key == word), "")


def _without_the_name(wrong: click.NoSuchOption) -> str:
    """Return the command that was typed without the name of an argument, which has none, or ""."""
    assert wrong.ctx is not None
    option = wrong.option_name
    usage = " ".join(wrong.ctx.command.collect_usage_pieces(wrong.ctx))  # as in [LOG|-]
    if option.lstrip("-").upper() not in re.findall(r"[A-Z-]+", usage.replace("[OPTIONS]", "")):
        return ""
    words = [word.removeprefix(f"{option}=") for word in sys.argv[1:] if word != option]
    return shlex.join(["cellagent", *words])


def _near_options(typed: str, ctx: click.Context) -> list[str]:
    """Return the option that was meant: click compares the dashes, too, which all have."""
    options = [each for each in ctx.command.get_params(ctx) if isinstance(each, click.Option)]
    near = {name.lstrip("-"): name for each in options for name in each.opts}
    word = typed.lstrip("-")
    starts = [name for name in near if typed.startswith("--") and word and name.startswith(word)]
    return [near[name] for name in starts[:1] or get_close_matches(word, near, 1, cutoff=NEAR)]


def _meant_elsewhere(wrong: click.UsageError, ctx: click.Context) -> str:
    """Return the commands of other groups that have the name that was typed, or nearly so."""
    if not isinstance(wrong, click.NoSuchCommand):
        return ""
    paths: dict[str, list[list[str]]] = {}
    for path in sorted(_paths(ctx.find_root(), []), key=len):
        paths.setdefault(path[-1], []).append(path)
    near = get_close_matches(wrong.command_name, paths, n=1, cutoff=NEAR)
    found = paths[near[0]] if near else []
    if not 1 <= len(found) <= _MOST_PATHS:
        return ""
    group = ctx.command_path.split()[1:]
    rest = sys.argv[1 + len(group) + 1 :]
    lines = [shlex.join(["cellagent", *path, *rest]) for path in found]
    return f"did you mean {' or '.join(f'`{line}`' for line in lines)}?"


def _paths(ctx: click.Context, above: list[str]) -> Iterator[list[str]]:
    """Yield the words of each command below this group, and of each group."""
    assert isinstance(ctx.command, click.Group)
    for name in ctx.command.list_commands(ctx):
        yield [*above, name]
        command = ctx.command.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from _paths(click.Context(command, ctx, name), [*above, name])


_COMMON = {"--json": 0, "--verbose": 0, "-v": 0, "-vv": 0, "--profile": 1, "--port": 1}
"""The options that every command has, with the number of words that follow each."""


def _options_last() -> str:
    """Return the command that was typed, its common options at its end; "" if they are there."""
    words, dashes, rest = _parted(sys.argv[1:])
    moved, kept = _without(_COMMON, words)
    line = [*kept, *moved, *dashes, *rest]
    return shlex.join(["cellagent", *line]) if kept and line != sys.argv[1:] else ""


def _without(
    options: Mapping[str, int], words: list[str], others: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return these options, with the words that follow each, and `others`; and the words left.

    The value of another option of the running command is none of `others`.
    """
    taken: list[str] = []
    left: list[str] = []
    valued = _valued()
    while words:
        name, equals, _ = words[0].partition("=")
        count = 1 + (0 if equals else options.get(name, int(name in valued)))
        (taken if name in options or name in others else left).extend(words[:count])
        words = words[count:]
    return taken, left


def _valued() -> set[str]:
    """Return the options of the running command that a value follows, whatever it is."""
    ctx = click.get_current_context(silent=True)
    options = (each for each in ctx.command.params if isinstance(each, click.Option)) if ctx else ()
    valued = (each.opts for each in options if not (each.is_flag or each.count))
    return {*chain(*valued)} - _GOES_ON.keys()  # --page may have one


_REPEATED = frozenset({"--relabel", "--replace", "--take-over"})
"""The options of our hints that may be given more than once: what was typed of them stays."""


_OF_SEVERAL = {"--all": 0, "--expect": 1, "--port": 1}
"""The options that choose or count several kits, with the number of words that follow each."""


_GOES_ON = {"--watch": 0, "--scan": 0, "--page": 0, "--page-control": 0}
"""The options of a bench that goes on: what is allowed to one kit is not for all that follow it."""


def _typed_with(
    options: str, ports: Sequence[str], others: Collection[str], kits: Mapping[str, str]
) -> str:
    """Return the command that was typed, with options that it lacks or has with another value.

    `kits` are the ports by the names that may have been typed in their place.
    """
    words, dashes, rest = _parted(sys.argv[1:])
    others = {*others, *(name for name, port in kits.items() if port in others)}
    if ports and not options.startswith("--relabel"):  # whose label is scanned
        for page in [at for at, word in enumerate(words[:-1]) if word == "--page"]:
            if not words[page + 1].startswith("-"):  # its value, which it need not have
                del words[page + 1]
        words = _without(_GOES_ON, words)[1]
    if others or (len(ports) == 1 and "--all" in words):
        words, rest = _without(_OF_SEVERAL, words, others)[1], _without({}, rest, others)[1]
        boards = _without(dict.fromkeys(_valued(), 1), words)[1]
        typed = [kits.get(word, word) for word in (*boards, *rest)]
        rest += [port for port in ports if port not in typed]
    for name, *values in _each(shlex.split(options)):
        if name not in _REPEATED:
            words = _without({name: len(values)}, words)[1]
        elif [name, *values] in (words[at : at + 1 + len(values)] for at in range(len(words))):
            continue
        words += [name, *values]
    return f"`{shlex.join(['cellagent', *words, *dashes, *rest])}`"


def _each(words: list[str]) -> Iterator[list[str]]:
    """Yield each option of these words, with its values."""
    starts = [at for at, word in enumerate(words) if word.startswith("--")]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield words[start:end]


def _parted(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


def _meant(right: str, message: str) -> str:
    """Return the command that was typed with the word corrected that `message` names, "" if none.

    Of several that it names it is the one most like the right one.
    """
    typed = sys.argv[1:]
    wrong = {
        part: at
        for at, word in enumerate(typed)
        for part in (word, *word.split("=", 1))
        if part and re.search(rf"(?<![\w./-]){re.escape(part)}(?![\w/-])", message)
    }
    for part in get_close_matches(right, wrong, n=1, cutoff=0.0):
        typed[wrong[part]] = typed[wrong[part]].replace(part, right)
        return f"did you mean `{shlex.join(['cellagent', *typed])}`?"
    return ""


def usual_hint(error: Exception) -> str:
    """Return the hint for an error that brings none of its own, "" where nothing helps."""
    from agent.errors import AgentError
    from agent.files.private_files import disk_hint, path_hint
    from agent.retry import asked_wait
    from at.protocol.errors import LinkLost

    if isinstance(error, LinkLost):
        return "is it still plugged in? `cellagent ports` lists what is"
    if isinstance(error, AgentError) and error.usual_hint:
        return error.usual_hint
    if wait := asked_wait(error, datetime.now(UTC)):
        return wait
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError):
        return ""
    return disk_hint(cause) or path_hint(cause)


def hold_hint() -> str:
    """Return the hint for a port that the running agent may hold, "" where none runs."""
    from agent.daemon.control.socket import control_sockets
    from agent.files.paths import state_dir
    from agent.files.trusted_places import UntrustedPlace

    try:
        runs = any(each.is_listening() for each in control_sockets(state_dir()))
    except UntrustedPlace:
        runs = False
    if not runs:
        return ""
    return (
        "if `cellagent run` has it: try again, or `cellagent hold -- COMMAND` lets COMMAND have it"
    )
