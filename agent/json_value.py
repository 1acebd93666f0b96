"""The type of a value that may be any JSON."""

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
