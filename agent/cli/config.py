"""`cellagent config`: profiles, and where each value comes from."""

from __future__ import annotations

import sys

import click

from agent.cli.framework.command import AgentGroup, emit, emit_or_say, note, say
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import TableWriter
from agent.errors import UsageError


@click.group(cls=AgentGroup, name="config")
def command() -> None:
    """Profiles and where each value comes from.

    Flags take precedence over the environment, that over the file, that over the built-in profile
    (standin, public, custom) that a profile starts from.
    """


@command.command(epilog="Example: cellagent config show --profile public")
@click.argument("key", required=False, metavar="[KEY]")
@click.option("--all", "everything", is_flag=True, help="Show what has its default value, too.")
def show(session: Session, key: str | None, everything: bool) -> None:
    """Show each value and where it came from; of secrets only where.

    With KEY, or the start of one ("hosts", "kit.port"), only what it names.
    """
    from agent.config.parse import key_type, leaves
    from agent.config.secrets import SECRETS

    configuration = session.loaded
    values = [
        (name, value, configuration.origins[name])
        for name, value in leaves(configuration.profile)
        if key is None or name == key or name.startswith(f"{key}.")
    ]
    secrets = {
        name: configuration.secrets.origin(name) for name in SECRETS if key is None or name == key
    }
    if key is not None and not values and not secrets:
        key_type(key)
    if session.json:
        for name, value, origin in values:
            emit({"key": name, "value": value, "from": origin.kind, "where": origin.where or None})
        for name, source in secrets.items():
            kind, where = (source.kind, source.where) if source is not None else (None, None)
            emit({"secret": name, "set": source is not None, "from": kind, "where": where})
        return
    if key is None:
        chosen = configuration.name_origin
        say(f"profile {configuration.name} ({chosen.where or chosen.kind})")
        say(f"file {configuration.file}{'' if configuration.file.exists() else ' (none yet)'}")
        say()
    table = TableWriter("key", "value", "from")
    for name, value, origin in values:
        if everything or key is not None or origin.kind != "default":
            # The file is named above; a key stands in it under its own name.
            shown = "file" if origin.kind == "file" else origin.where or origin.kind
            table.add(name, _text(value), shown)
    for name, source in secrets.items():
        if source is not None:
            shown = "secrets file" if source.kind == "file" else source.where
            table.add(name, "(set)", shown)
        elif everything or key is not None:
            table.add(name, "(not set)", None)
    table.flush()


@command.command(name="set", epilog="Example: cellagent config set hosts.api https://api.example")
@click.argument("key")
@click.argument("value", required=False)
def set_(session: Session, key: str, value: str | None) -> None:
    """Set one value of the profile in the file, keeping its comments.

    KEY is dotted, as `config show` prints it; a list is written with commas. `profile NAME`
    chooses the profile that is used when none is named. A secret (api_key, project_key, ...)
    takes no VALUE: it is read from standard input and stored in the 0600 secrets file.
    """
    from agent.config.load import profile_name
    from agent.config.secrets import SECRETS
    from agent.config.write import set_default_profile, set_secret, set_value

    if key == "profile" and value is not None:
        set_default_profile(value)
        written: object = value
    elif key in SECRETS:
        if value is not None:
            raise UsageError(
                f"{key} is a secret: it is no argument of a command",
                hint=f"`cellagent config set {key}` reads it from standard input",
            )
        path = set_secret(
            key, _from_standard_input(key), profile=profile_name(session.profile_name)
        )
        if session.json:
            emit({"secret": key, "file": str(path)})
        else:
            note(f"{key} is kept in {path}")
        return
    elif value is None:
        raise UsageError(f"{key} needs a value")
    else:
        written = set_value(key, value, profile=profile_name(session.profile_name))
    emit_or_say(session, {"key": key, "value": written}, f"{key} = {_text(written)}")


@command.command(epilog="Example: cellagent config path")
def path(session: Session) -> None:
    """Print where the configuration, the secrets and the state are."""
    from agent.config.paths import config_file, secrets_file, state_dir

    file = config_file()
    paths = {"config": file, "secrets": secrets_file(file), "state": state_dir()}
    if session.json:
        emit({name: str(each) for name, each in paths.items()})
        return
    for name, each in paths.items():
        say(f"{name:8} {each}{'' if each.exists() else ' (none yet)'}")


def _from_standard_input(name: str) -> str:
    if sys.stdin.isatty():
        import getpass

        value = getpass.getpass(f"{name}: ")
    else:
        value = sys.stdin.read(64 * 1024)
    value = value.rstrip("\r\n")
    if not value:
        raise UsageError(f"nothing came on standard input for {name}")
    return value


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
