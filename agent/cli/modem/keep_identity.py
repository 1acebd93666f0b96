"""The option of the commands that write transcripts: whether they keep the device's identity."""

from collections.abc import Callable
from typing import TypeVar

import click

from agent.errors import UsageError

F = TypeVar("F", bound=Callable[..., object])


def keep_identity_option(command: F) -> F:
    """Add `--keep-identity`, passed as `keep_identity`, and `--redact identity`, which it was."""
    former = click.option(
        "--redact",
        type=click.Choice(["identity"]),
        expose_value=False,
        callback=_refuse_both,
        help="No effect: identity is redacted unless --keep-identity is given.",
    )
    return click.option(
        "--keep-identity",
        is_flag=True,
        is_eager=True,  # known when --redact is looked at
        help="Keep IMEI, IMSI, ICCID, UUID and device ids as they are.",
    )(former(command))


def _refuse_both(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None and context.params.get("keep_identity"):
        raise UsageError("--redact identity and --keep-identity contradict each other")
