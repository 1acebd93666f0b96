"""Values in the words of the page: numbers with units, times, ages, shapes of states."""

from datetime import UTC, datetime

from agent.daemon.snapshot import State
from agent.daemon.states import duration
from agent.page.markup import Html, tag

CLASS_OF = {
    State.TROUBLE: "bad",
    State.ATTENTION: "attn",
    State.UNKNOWN: "unk",
    State.WORKING: "work",
    State.WELL: "ok",
}
"""The class that colours a state; its icon has the same name."""


def icon(name: str) -> Html:
    """Return the shape of a state. A word stands beside it."""
    return tag("svg", tag("use", href=f"#i-{name}"), class_="i", aria_hidden="true")


def state_word(state: State, words: str | None = None) -> Html:
    """Return a state as shape and word, in its colour."""
    kind = CLASS_OF[state]
    return tag("span", icon(kind), words or state.value.capitalize(), class_=f"st {kind}")


def command(text: str) -> Html:
    """Return a command, which is copied by a click or a key."""
    return tag("code", text, class_="command", role="button", tabindex="0")


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with a minus sign; – for one that is not known."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def metres(length: float) -> str:
    """Return a length in metres, in kilometres from ten of them on."""
    return f"{length:.0f} m" if length < 10_000 else f"{length / 1000:.0f} km"


def moment(at: datetime, *, local: bool = False, date: datetime | None = None) -> Html:
    """Return a clock time, in UTC or here; with its day where that is not the day of `date`."""
    shown = at.astimezone() if local else at.astimezone(UTC)
    other_day = date is not None and shown.date() != date.astimezone(shown.tzinfo).date()
    form = "%d %b %H:%M" if other_day else "%H:%M:%S"
    return tag("time", shown.strftime(form), datetime=iso(at))


def iso(at: datetime) -> str:
    """Return a time as ISO 8601 in UTC, as exports and attributes have it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def age(since: datetime, now: datetime) -> Html:
    """Return how long ago a time is; the browser counts on."""
    return tag("time", duration((now - since).total_seconds()), datetime=iso(since), class_="age")
