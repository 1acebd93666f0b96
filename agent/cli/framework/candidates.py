"""What the Tab key offers for a word: each list is made only when a shell asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, get_args

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Return what a shell asks for the words that go on from what is typed: those of `names`."""
    return lambda _ctx, _of, typed: [name for name in names() if name.startswith(typed)]


def _profiles() -> list[str]:
    from agent.config.load import profile_names, read_config
    from agent.files.paths import config_file

    return profile_names(read_config(config_file()))


def _keys() -> list[str]:
    from agent.config.parse import all_keys
    from agent.config.secrets import SECRETS

    return [*all_keys(), *SECRETS]


def _kits(ctx: click.Context) -> Iterable[str]:
    from agent.cli.framework.session import Session
    from agent.errors import AgentError

    with suppress(AgentError):
        return ctx.ensure_object(Session).loaded.profile.kits  # of the --profile before it
    return ()


def _system_ports() -> list[str]:
    from at.ports.usb import system_ports

    return [port.device for port in system_ports()]


complete_profile = completing(_profiles)
complete_key = completing(_keys)


def complete_kit(
    ctx: click.Context, _of: click.Parameter, typed: str
) -> list[str] | list[CompletionItem]:
    """Return the kits and serial ports that go on from what is typed; else ask for files."""
    return _going_on([*_kits(ctx), *_system_ports()], typed)


def complete_value(
    ctx: click.Context, _of: click.Parameter, typed: str
) -> list[str] | list[CompletionItem]:
    """Return the words that the value of the key before may be; else ask for files."""
    from agent.config.parse import key_type
    from agent.errors import ConfigError

    key = ctx.params.get("key") or ""
    if key.endswith("port"):
        return _going_on(_system_ports(), typed)
    words: tuple[object, ...] = ()
    with suppress(ConfigError):
        kind = key_type(key)
        words = ("true", "false") if kind is bool else get_args(kind)
    return _going_on([word for word in words if isinstance(word, str)], typed)


def _going_on(names: list[str], typed: str) -> list[str] | list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = [name for name in names if name.startswith(typed)]
    return found or [CompletionItem(typed, type="file")]  # the link to a virtual kit is one
