"""Lists of a service: the items as they come, whole or one page."""

from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import click

from agent.cli.framework.command import emit, note
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import TableWriter
from agent.json_value import JSONValue

PER_PAGE = click.option(
    "--per-page", type=click.IntRange(1, 100), metavar="N", help="One page of at most N."
)


T = TypeVar("T")


async def first(items: AsyncIterator[T], limit: int | None) -> AsyncIterator[T]:
    """Yield no more than `limit` items, without asking for another; None: all of them."""
    left = limit
    async for item in items:
        yield item
        left = left and left - 1
        if left == 0:
            return


class ListWriter:
    """Writes each item of a list: a row of a table, or with --json the item itself."""

    def __init__(self, session: Session, *columns: str) -> None:
        self._table = None if session.json else TableWriter(*columns)

    def add(self, item: Mapping[str, JSONValue], *cells: object) -> None:
        """Write an item; `cells` are its row."""
        if self._table is None:
            emit(item)
        else:
            self._table.add(*cells)

    def end(self) -> None:
        """Write the rows that wait."""
        if self._table is not None:
            self._table.flush()

    def end_page(self, paging: Mapping[str, object], position: str) -> None:
        """End one page: say which it was, with --json as an object `paging`."""
        self.end()
        if self._table is None:
            emit({"paging": paging})
        else:
            note(position)
