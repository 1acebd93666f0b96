"""One measured row of bench/ or soak/, and what their modules share."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured. `goal`: the most that `value` may be; None where it is a control."""

    what: str
    value: float
    unit: str
    goal: float | None = None
    control: str = ""
    """What it was measured against, with its own value."""
    skipped: str = ""
    """Why it was not measured."""
    fault: str = ""
    """Which of soak/faults.toml it is about; `value` is then how much it lost."""
    injected: int = 0
    """How often that was injected, where no other row counts the same."""
    points: tuple[tuple[float, float], ...] = ()
    """What was measured at each size, where it is a curve that `value` sums up."""
    peer: tuple[str, float] | None = None
    """A released tool or library that does the same, and its own value."""

    @property
    def ok(self) -> bool:
        return self.goal is None or bool(self.skipped) or self.value <= self.goal


def median_us(once: Callable[[], object], count: int) -> float:
    """Return the median time of `once` in microseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter_ns()
        once()
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / 1000


def counted(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items; say on a terminal how many of them have been worked on."""
    for number, item in enumerate(items):
        progress(what, number, len(items))
        yield item
    progress(what, len(items), len(items))


def progress(what: str, done: int, total: int) -> None:
    """Say on a terminal how much is done; the line is wiped when all is."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K" + (f"  {what}: {done} of {total}" if done < total else ""))
        sys.stderr.flush()
