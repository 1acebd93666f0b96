"""Notices (unsolicited result codes): their base type, their parsers, their subscribers.

A module of at.commands declares its notices beside its commands and registers a parser by name:

    at.protocol.notices.register("+CSCON", parse_connection_notice)

A notice of a value that stands in its parameters needs only a reader of them:

    at.protocol.notices.register_readers(SimNotice, {"%XSIM": read_sim_state})

A parser takes the line and the text of the last command of the same name that the modem accepted
("AT%NCELLMEAS=3,5", None if there was none), because the shape of some notices depends on it. It
returns a subclass of `Notice` or raises ParseError: then subscribers get a `Malformed` notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from at.protocol.errors import ParseError
from at.protocol.values import Fields, name_before_colon, read_row

T = TypeVar("T")
V = TypeVar("V")


class Notice(Struct, frozen=True):
    """An unsolicited line of the modem; `name` is what precedes its colon ("+CEREG")."""

    name: str
    line: str


class Malformed(Notice, frozen=True):
    """A notice that breaks its grammar; no part of it is used. `error` says what is wrong."""

    error: str


Parser = Callable[[str, str | None], Notice]
_parsers: dict[str, Parser] = {}


def register(name: str, parser: Parser) -> None:
    """Register the parser of the notices called `name` ("+CEREG"). The last one holds."""
    _parsers[name] = parser


def register_readers(
    notice: Callable[[str, str, V], Notice], readers: Mapping[str, Callable[[Fields], V]]
) -> None:
    """Register readers of parameters by the name of their notices, which hold what is read.

    A reader need not check that the line ends.
    """

    def parser(line: str, _context: str | None) -> Notice:
        name = name_before_colon(line)
        return notice(name, line, read_row(line, name, readers[name]))

    for name in readers:
        register(name, parser)


def is_known(name: str) -> bool:
    """Return whether a parser reads the notices called `name`."""
    return name in _parsers


def parse(name: str, line: str, context: str | None = None) -> Notice:
    """Return the typed notice of `line`; a plain `Notice` where no parser knows its name."""
    parser = _parsers.get(name)
    if parser is None:
        return Notice(name, line)
    try:
        return parser(line, context)
    except ParseError as error:
        return Malformed(name, line, str(error))


class Dispatcher:
    """Delivers each notice to the queues subscribed to its name or type."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[BoundedQueue[Notice]]] = {}
        self._by_type: list[tuple[type[Notice], BoundedQueue[Notice]]] = []

    def add(self, queue: BoundedQueue[Notice], *keys: type[Notice] | str) -> None:
        """Subscribe `queue` to the names and types in `keys`; none means all notices."""
        for key in keys or (Notice,):
            if isinstance(key, str):
                self._by_name.setdefault(key, []).append(queue)
            else:
                self._by_type.append((key, queue))

    def remove(self, queue: BoundedQueue[Notice]) -> None:
        """Unsubscribe `queue`."""
        for name, queues in self._by_name.items():
            self._by_name[name] = [one for one in queues if one is not queue]
        self._by_type = [one for one in self._by_type if one[1] is not queue]

    def dispatch(self, name: str, line: str, context: str | None) -> None:
        """Parse a notice, if anyone may want it, and put it once into each subscribed queue."""
        named = self._by_name.get(name, [])
        if not named and not self._by_type:
            return
        notice = parse(name, line, context)
        typed = [queue for kind, queue in self._by_type if isinstance(notice, kind)]
        for queue in dict.fromkeys(named + typed):
            queue.put(notice)


class BoundedQueue(Generic[T]):
    """At most `limit` items: a new one replaces the oldest, which counts as dropped.

    `wake` is called after each item that finds the queue empty.
    """

    def __init__(self, limit: int, wake: Callable[[], None] = lambda: None) -> None:
        self.limit = limit
        self.dropped = 0
        self.wake = wake
        self._items: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Append `item`."""
        items = self._items
        if len(items) >= self.limit:
            items.popleft()
            self.dropped += 1
        items.append(item)
        if len(items) == 1:
            self.wake()

    def get(self) -> T:
        """Remove and return the oldest item. Raises IndexError if there is none."""
        return self._items.popleft()
