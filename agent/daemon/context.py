"""Which kit and which concern a line of the log is about."""

from __future__ import annotations

import contextlib
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_kit: ContextVar[str] = ContextVar("kit", default="")
_concern: ContextVar[str] = ContextVar("concern", default="")


@contextlib.contextmanager
def about(kit: str, concern: str) -> Iterator[None]:
    """Mark what is logged within, by whomever, as being about this kit and concern."""
    kit_before, concern_before = _kit.set(kit), _concern.set(concern)
    try:
        yield
    finally:
        _concern.reset(concern_before)
        _kit.reset(kit_before)


def mark(record: logging.LogRecord) -> bool:
    """Put kit and concern into a record that does not name them itself; a logging filter."""
    record.kit = getattr(record, "kit", None) or _kit.get()
    record.concern = getattr(record, "concern", None) or _concern.get()
    return True
