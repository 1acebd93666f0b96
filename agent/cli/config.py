"""`cellagent config`: profiles, and where each value comes from."""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from agent.cli.framework.candidates import complete_key, complete_profile, complete_value
from agent.cli.framework.command import (
    AgentCommand,
    AgentGroup,
    emit,
    emit_or_say,
    note,
    note_reload,
    say,
)
from agent.cli.framework.listing import ListWriter
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import TableWriter
from agent.errors import AgentError, UsageError
from agent.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.config.secrets import Origin

    Values = Sequence[tuple[str, object, Origin]]
    """Each value of a profile with its key, and where it comes from."""


@click.group(cls=AgentGroup, name="config")
def command() -> None:
    """Profiles and where each value comes from.

    Flags take precedence over the environment, that over the file, that over the built-in profile
    (standin, public, custom) that a profile starts from.
    """


@command.command(epilog="Example: cellagent config show --profile public")
@click.argument("key", required=False, metavar="[KEY]", shell_complete=complete_key)
@click.option("--all", "everything", is_flag=True, help="Show what has its default value, too.")
def show(session: Session, key: str | None, everything: bool) -> None:
    """Show each value and where it came from; of secrets only where.

    With KEY, or the start of one ("hosts", "kit.port"), only what it names.
    """
    from agent.config.parse import key_type, leaves
    from agent.config.secrets import SECRETS

    configuration = session.loaded
    if configuration.origins["kit.port"].kind in {"flag", "environment"}:
        configuration = session.configuration  # `kit` is the one that was named
    values = [
        (name, _without_secrets(value), configuration.origins[name])
        for name, value in leaves(configuration.profile)
        if key is None or name == key or name.startswith(f"{key}.")
    ]
    secrets = {
        name: configuration.secrets.origin(name) for name in SECRETS if key is None or name == key
    }
    if key is not None and not values and not secrets:
        key_type(key)
    if session.json:
        _emit_values(values, secrets)
        return
    if key is None:
        chosen = configuration.name_origin
        say(f"profile {configuration.name} ({chosen.where or chosen.kind})")
        say(f"file {configuration.file}{'' if configuration.file.exists() else ' (none yet)'}")
        say()
    rows = list(_rows(values, secrets, everything=everything or key is not None))
    if not rows:
        say("each value is the default: `cellagent config show --all` lists them")
        return
    table = TableWriter("key", "value", "from")
    for row in rows:
        table.add(*row)
    table.flush()


def _emit_values(values: Values, secrets: Mapping[str, Origin | None]) -> None:
    for name, value, origin in values:
        emit({"key": name, "value": value, "from": origin.kind, "where": origin.where or None})
    for name, source in secrets.items():
        kind, where = (source.kind, source.where) if source is not None else (None, None)
        emit({"secret": name, "set": source is not None, "from": kind, "where": where})


def _rows(
    values: Values, secrets: Mapping[str, Origin | None], *, everything: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of a table; only with `everything` also of what is not set."""
    for name, value, origin in values:
        if everything or origin.kind != "default":
            # The file is named above; a key stands in it under its own name, or is told by its
            # older one.
            is_named = origin.where.endswith(f".{name}")
            yield name, _text(value), "file" if is_named else origin.where or origin.kind
    for name, source in secrets.items():
        if source is not None:
            yield name, "(set)", _of_secret(source)
        elif everything:
            yield name, "(not set)", ""


def _of_secret(source: Origin) -> str:
    """Return where a secret is; a variable, by its name, says of itself what it is."""
    return {
        "file": "secrets file",
        "keyring": f"keyring, {source.where}",
        "credentials": f"systemd's credential {source.where}",
    }.get(source.kind, source.where)


@command.command(name="list", epilog="Example: cellagent config list")
def list_(session: Session) -> None:
    """List the profiles, of the file and built in; a * marks the one in use."""
    from agent.config.load import base_of, profile_names, profile_table, read_config
    from agent.config.load import profile_name as name_in_use
    from agent.files.paths import config_file

    file = config_file()
    document = read_config(file)
    chosen = name_in_use(session.profile_name, document)
    out = ListWriter(session, "", "profile", "starts from", "from")
    for name in profile_names(document):
        own = profile_table(name, document, file)
        base = base_of(name, own, file)
        kind = "built-in" if own is None else "file"
        out.add(
            {"profile": name, "in_use": name == chosen, "base": base, "from": kind},
            *("*" if name == chosen else "", name, "" if own is None else base, kind),
        )
    out.end()
    if not session.json:
        say(f"\n`cellagent config use NAME` chooses; the file is {file}")


@command.command(epilog="Example: cellagent config use public")
@click.argument("name", shell_complete=complete_profile)
def use(session: Session, name: str) -> None:
    """Use this profile wherever none is named."""
    from agent.config.load import load
    from agent.config.write import set_default_profile

    load(name)  # it is there, and can be used
    set_default_profile(name)
    emit_or_say(session, {"profile": name}, f"profile {name} is used where none is named")
    _note_other_profile(name)


def _note_other_profile(name: str) -> None:
    """Say which profile is used in place of the one that was made the default, if one is."""
    if (other := os.environ.get("CELLAGENT_PROFILE", name)) != name:
        note(f"CELLAGENT_PROFILE={other} takes precedence while it is set")


@command.command(epilog="Example: cellagent config unset kit.port")
@click.argument("key", shell_complete=complete_key)
def unset(session: Session, key: str) -> None:
    """Remove a value, or a secret, from the file: the built-in value or the default holds again."""
    from agent.config.load import load, profile_name
    from agent.config.secrets import SECRETS
    from agent.config.write import drop_secret, unset_value

    name = profile_name(session.profile_name)
    remove = drop_secret if key in SECRETS else unset_value
    if not remove(key, profile=name):
        raise UsageError(
            f"profile {name} does not set {key} in its file",
            hint=f"`{shlex.join(['cellagent', 'config', 'show', key, '--profile', name])}` tells "
            "where it comes from",
        )
    emit_or_say(session, {"profile": name, "unset": key}, f"{key} is no longer set in {name}")
    with suppress(AgentError):  # what is wrong beside it is unset next
        now = load(name)
        origin = now.secrets.origin(key) if key in SECRETS else now.origins.get(key)
        if origin is not None and origin.kind not in {"built-in", "default"}:
            note(f"{origin.where or origin.kind} gives it now")
    note_reload(name)


class _SetCommand(AgentCommand):
    """A command whose VALUE may be below zero, as each limit of an RSRP is: it is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does once a negative number is set behind `--`."""
        below = [] if "--" in args else [word for word in args if re.match(r"-\d", word)]
        if below:
            args = [*(word for word in args if word not in below), "--", *below]
        return super().parse_args(ctx, args)


@command.command(
    name="set",
    cls=_SetCommand,
    epilog="Example: cellagent config set hosts.api https://api.example",
)
@click.argument("key", shell_complete=complete_key)
@click.argument("value", required=False, shell_complete=complete_value)
def set_(session: Session, key: str, value: str | None) -> None:
    """Set one value of the profile in the file, keeping its comments.

    KEY is dotted, as `config show` prints it; a list is written with commas. `profile NAME`
    chooses the profile that is used when none is named. A secret (api_key, project_key, ...)
    takes no VALUE: it is read from standard input and stored in the 0600 secrets file.
    """
    from agent.config.load import profile_name, profile_names, profile_table, read_config
    from agent.config.secrets import SECRETS
    from agent.config.write import set_default_profile, set_secret, set_value
    from agent.files.paths import config_file

    if value is None and "=" in key:
        key, value = key.split("=", 1)
    if key == "profile" and value is not None:
        set_default_profile(value)
        if value not in profile_names(read_config(config_file())):
            note(f"there is no profile {value} yet: `cellagent config set KEY VALUE` makes it")
        emit_or_say(session, {"key": key, "value": value}, f"{key} = {value}")
        _note_other_profile(value)
        return
    file = config_file()
    document = read_config(file)
    name = profile_name(session.profile_name, document)
    own = profile_table(name, document, file)
    if key in SECRETS and value is None:
        path = set_secret(key, _from_standard_input(key), profile=name)
        if session.json:
            emit({"secret": key, "file": str(path)})
        else:
            note(f"{key} is kept in {path}")
    elif value is None:
        raise UsageError(f"{key} needs a value")
    else:
        written = _without_secrets(set_value(key, value, profile=name))
        emit_or_say(session, {"key": key, "value": written}, f"{key} = {_text(written)}")
    if first := _preceding(key, name, own or {}):
        note(f"{first} takes precedence over it while it is set")
    note_reload(name)


def _preceding(key: str, profile: str, own: Mapping[str, object]) -> str:
    """Return what takes precedence over a value or a secret in the file, "" where nothing does.

    `own` is the profile's table in the file.
    """
    from agent.config.profile import OLDER_SECTIONS
    from agent.config.secrets import SECRETS, Secrets
    from agent.files.paths import config_file, secrets_file

    if key in SECRETS:
        with suppress(AgentError):  # one that cannot be used is told by what needs it
            secrets = Secrets(profile, secrets_file(config_file()), environ=os.environ)
            origin = secrets.preceding(key)
            return origin.where if origin is not None else ""
    if key == "kit.port" and os.environ.get("CELLAGENT_PORT"):
        return "CELLAGENT_PORT"
    section, _, last = key.rpartition(".")
    kit = own.get("kit")
    is_older = OLDER_SECTIONS.get(last) == section and isinstance(kit, dict) and last in kit
    return f"kit.{last}" if is_older else ""


@command.command(epilog="Example: cellagent config path")
def path(session: Session) -> None:
    """Print where the configuration, the secrets and the state are."""
    from agent.files.paths import config_file, secrets_file, state_dir

    file = config_file()
    paths = {"config": file, "secrets": secrets_file(file), "state": state_dir()}
    if session.json:
        emit({name: str(each) for name, each in paths.items()})
        return
    for name, each in paths.items():
        say(f"{name:8} {each}{'' if each.exists() else ' (none yet)'}")


def _from_standard_input(name: str) -> str:
    if sys.stdin.isatty():
        from agent.cli.framework.silent_terminal import typed_secret

        value = typed_secret(f"{name}: ")
    else:
        value = sys.stdin.read(64 * 1024)
    value = value.rstrip("\r\n")
    if not value:
        raise UsageError(f"nothing came on standard input for {name}")
    return value


def _without_secrets(value: object) -> object:
    """Return a value to be shown: a proxy's URL, or a word of a program, may have a password."""
    if isinstance(value, tuple | list):
        return [_without_secrets(each) for each in value]
    return redact(value) if isinstance(value, str) else value


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
