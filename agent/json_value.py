"""The type of a value that may be any JSON, and what an object of such values holds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    JSONValue: TypeAlias = (
        "str | int | float | bool | list[JSONValue] | dict[str, JSONValue] | None"
    )
    """A decoded JSON value whose form is not ours to know: what a service, a file or a user sent.

    For what is passed on or looked into with `isinstance`: `dict[str, JSONValue]` is any object.
    A form that we do know is a msgspec struct; a value that only goes to an encoder is `object`, a
    set of named ones `Mapping[str, object]`.
    """
else:
    JSONValue = Any  # msgspec decodes no alias that names itself


def text_in(fields: Mapping[str, JSONValue], name: str) -> str:
    """Return a text of an object, "" where it is absent, null or something else."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def object_in(fields: Mapping[str, JSONValue], name: str) -> dict[str, JSONValue]:
    """Return an object in an object, {} where it is absent, null or something else."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}
