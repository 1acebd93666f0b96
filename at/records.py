"""Values as JSON: one way from any dataclass of this package to plain dicts and lists."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Record:
    """A value that a modem gave. Raw codes are fields; `derived` names the properties beside them.

    So rsrp stays the modem's index, and the property rsrp_dbm stands beside it in JSON, too.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields that stay out of JSON: the bytes that a signature covers."""

    def beside(self) -> dict[str, Any]:
        """Return what stands beside the fields in JSON."""
        return {name: getattr(self, name) for name in self.derived}


def as_json(value: Any) -> Any:
    """Return a dataclass as a dict of plain JSON types, and what it holds likewise."""
    if is_dataclass(value) and not isinstance(value, type):
        hidden = value.hidden if isinstance(value, Record) else frozenset()
        names = [field.name for field in fields(value) if field.name not in hidden]
        found = {name: as_json(getattr(value, name)) for name in names}
        if isinstance(value, Record):
            found |= {name: as_json(item) for name, item in value.beside().items()}
        return found
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    return value
