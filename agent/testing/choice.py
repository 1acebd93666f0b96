"""Where a test's kit comes from, as a switch says it: no test names it. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum

from agent.errors import UsageError

VIRTUAL = "virtual"


class NotRecorded(UsageError):
    """A test that is a replay has no recording."""


class RecordMode(Enum):
    """What is recorded and what is replayed; the words are those of cassettes of HTTP."""

    LIVE = "live"
    """Nothing: the test has its kit."""
    NONE = "none"
    """Every test is a replay; one without a recording fails."""
    ONCE = "once"
    """A test without a recording is recorded, the others are replays."""
    NEW = "new"
    """As `once`, and a test whose recording no longer fits is recorded anew."""
    ALL = "all"
    """Every test is recorded anew."""


@dataclass(frozen=True, slots=True)
class KitEntry:
    """One kit that tests may have: "virtual", or a real one by its port, with what it is."""

    port: str = VIRTUAL
    console: str = ""
    """The port of its console, "" where that is not known."""
    model: str = ""
    firmware: str = ""
    slot: str = ""
    dialect: str = ""
    power: str = ""
    """A command that switches its power; `{action}` in it becomes on, off or cycle."""

    @property
    def is_virtual(self) -> bool:
        """Whether it is made for the test."""
        return self.port == VIRTUAL

    def __str__(self) -> str:
        return f"{self.port} ({_said(self) or 'nothing is said of it'})"


@dataclass(frozen=True, slots=True)
class KitWish:
    """What a test wants of its kit, as its marks say. "" is any."""

    model: str = ""
    firmware: str = ""
    slot: str = ""
    dialect: str = ""
    registered: bool = True
    """A virtual kit has registered already; False: it boots as a fresh one does."""
    real_time: bool = False
    """A replay takes the time that it takes: the test waits for what the loop does not know."""
    faults: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _said(self) or "any"


@dataclass(frozen=True, slots=True)
class KitChoice:
    """The kits, and what is recorded of them."""

    kits: tuple[KitEntry, ...] = (KitEntry(),)
    mode: RecordMode = RecordMode.LIVE


_MODES = {"replay": RecordMode.NONE, "record": RecordMode.ALL}
_PORT = re.compile(r".*[/\\:]|COM[0-9]+$", re.IGNORECASE)
"""The name of a port on any system: a path, COM3, serial:NUMBER, tcp://HOST:PORT."""


def kit_choice(words: Sequence[str], mode: str = "") -> KitChoice:
    """Return the choice that the words of `--cellagent-kit` make. Raises UsageError.

    A word is `virtual`, `replay`, `record`, or a port with what is known of its kit:
    "/dev/ttyACM0,console=/dev/ttyACM1,slot=3".
    """
    given = [_MODES[word] for word in words if word in _MODES]
    kits = tuple(_entry(word) for word in words if word not in _MODES)
    chosen = given[-1] if given else RecordMode.LIVE
    if mode:
        try:
            chosen = RecordMode(mode)
        except ValueError:
            known = ", ".join(m.value for m in RecordMode)
            raise UsageError(
                f"no such mode of recording: {mode!r}", hint=f"one of {known}"
            ) from None
    return KitChoice(kits or (KitEntry(),), chosen)


_TRAITS = tuple(f.name for f in fields(KitEntry))[1:]
_COMPARED = tuple(f.name for f in fields(KitWish) if f.name in _TRAITS)


def _entry(word: str) -> KitEntry:
    head, _, power = word.partition(",power=")  # a command may have commas of its own
    port, *rest = head.split(",")
    traits = {"power": power}
    try:
        shlex.split(power)
    except ValueError as error:
        raise UsageError(
            f"the power command `{power}` cannot be split into words: {error}",
            hint="close its quotes",
        ) from error
    for part in rest:
        name, equals, value = part.partition("=")
        if name not in _TRAITS or not equals:
            raise UsageError(
                f"{part!r} says nothing of a kit, in {word!r}",
                hint=f"write PORT,NAME=VALUE with one of {', '.join(_TRAITS)}",
            )
        traits[name] = value
    if port in _MODES:
        kit = VIRTUAL + word.removeprefix(port)
        raise UsageError(
            f"{port} takes no more, in {word!r}",
            hint=f"`pytest --cellagent-kit={port} --cellagent-kit={shlex.quote(kit)}`",
        )
    if port != VIRTUAL and not _PORT.match(port):
        from agent.config.nearest import nearest  # only a slip pays for it

        raise UsageError(
            f"{port!r} is neither virtual, replay or record nor a port, in {word!r}",
            hint=nearest(port, [VIRTUAL, *_MODES]),
        )
    return KitEntry(port, **traits)


_FLAGS = frozenset({"registered", "real_time"})
_WISHES = tuple(f.name for f in fields(KitWish) if f.name != "faults")


def kit_wish(marks: Sequence[Mapping[str, object]], faults: Sequence[str]) -> KitWish:
    """Return the wish of a test's `kit` marks, the nearest first. Raises UsageError."""
    wish: dict[str, object] = {}
    for mark in reversed(marks):
        for name, value in mark.items():
            if name not in _WISHES:
                raise UsageError(
                    f"the mark kit knows no {name!r}", hint=f"it takes {', '.join(_WISHES)}"
                )
            wish[name] = bool(value) if name in _FLAGS else str(value)
    return KitWish(**wish, faults=tuple(faults))  # type: ignore[arg-type]


def _said(of: KitEntry | KitWish) -> str:
    traits = ((name, getattr(of, name)) for name in _COMPARED)
    return ", ".join(f"{name}={value}" for name, value in traits if value)


def fits(entry: KitEntry, wish: KitWish) -> bool:
    """Return whether a kit is what a test wants, as far as it is said. Of versions, parts fit."""
    if entry.is_virtual:
        return True
    # 1.3 is part of mfw_nrf9160_1.3.10, and 1.3.1 is not.
    firmware = rf"(?<![\d.]){re.escape(wish.firmware)}(?!\d)" if wish.firmware else ""
    return (
        wish.model.lower() in entry.model.lower()
        and re.search(firmware, entry.firmware, re.IGNORECASE) is not None
        and wish.slot in {"", entry.slot}
        and wish.dialect in {"", entry.dialect}
    )
