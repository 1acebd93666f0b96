"""Charts as SVG: a signal over time, a position on a plan. Drawn here, shown without any script.

Lines are stretched with their picture, texts are not: an inner picture has the lines, in which 100
units are the whole height.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.daemon.snapshot import MEASURED, LastPosition, Place, Reading
from agent.page.markup import Html, tag
from agent.page.words import metres, number

HOUR = timedelta(hours=1)
_GAP = timedelta(seconds=150)
"""Readings are a minute apart: what is further apart is no line."""
_BANDS = ((-80, "excellent"), (-90, "good"), (-100, "acceptable"), (-110, "poor"))
_WORST = "very poor"


@dataclass(frozen=True, slots=True)
class Scale:
    """One signal: its field of a reading, its name and unit, its range and its limit."""

    field: str
    name: str
    unit: str
    low: float
    high: float
    limit: float
    """Below it the signal is weak, as the table of `modem why` has it."""

    def value(self, reading: Reading | None) -> float | None:
        """Return the value of a reading, None where it has none."""
        value: float | None = None if reading is None else getattr(reading, self.field)
        return value

    def y(self, value: float) -> float:
        """Return the height of a value from the top, in percent."""
        inside = min(self.high, max(self.low, value))
        return round(100 * (self.high - inside) / (self.high - self.low), 1)


RSRP = Scale("rsrp_dbm", *MEASURED["rsrp_dbm"], -135, -70, -115)
SNR = Scale("snr_db", *MEASURED["snr_db"], -10, 25, -3)


def quality(rsrp_dbm: float | None) -> str:
    """Return the word for a level: a word, no norm."""
    if rsrp_dbm is None:
        return "not heard"
    return next((word for least, word in _BANDS if rsrp_dbm >= least), _WORST)


def cursor(at: datetime | None, until: datetime) -> Html | None:
    """Return the line of a moment in a chart of the hour up to `until`; None outside of it."""
    if at is None or not timedelta() <= until - at <= HOUR:
        return None
    x = f"{100 - 100 * (until - at) / HOUR:.2f}%"
    return tag("line", class_="cursor", x1=x, x2=x, y1=0, y2="100%")


def signal(
    scale: Scale,
    history: Sequence[Reading],
    until: datetime,
    *,
    axis: bool = False,
    at: datetime | None = None,
) -> Html:
    """Return a signal over the hour up to `until`; with `axis` its bands and hours are named.

    `at` is a moment that is marked.
    """
    values = [value for each in history if (value := scale.value(each)) is not None]
    now = values[-1] if values else None
    told = (
        f"{number(min(values))} to {number(max(values))}, newest {number(now)} {scale.unit}"
        if values
        else "nothing heard"
    )
    limit = f"{scale.y(scale.limit)}%"
    lines = [tag("polyline", class_="ln", points=points) for points in _runs(scale, history, until)]
    return tag(
        "svg",
        _bands(scale, named=axis),
        tag("line", class_="lim", x1=0, x2="100%", y1=limit, y2=limit),
        tag(
            "svg",
            *lines,
            width="100%",
            height="100%",
            viewBox=f"0 0 {HOUR.total_seconds():.0f} 100",
            preserveAspectRatio="none",
        ),
        cursor(at, until),
        _times(until) if axis and scale is RSRP else None,
        class_=f"ch {scale.name.lower()}{' tall' if axis else ''}",
        role="img",
        aria_label=f"{scale.name} over the last hour: {told}",
    )


def _bands(scale: Scale, *, named: bool) -> list[Html]:
    if scale is not RSRP:
        return [tag("rect", class_="q2", width="100%", height="100%")]
    tops = [scale.high, *(least for least, _ in _BANDS)]
    bottoms = [*tops[1:], scale.low]
    words = [*(f"{word} {number(least)}" for least, word in _BANDS), _WORST]
    drawn = []
    for rank, (top, bottom, word) in enumerate(zip(tops, bottoms, words, strict=True), 1):
        y, end = scale.y(top), scale.y(bottom)
        size = f"{end - y:.1f}%"
        drawn.append(tag("rect", class_=f"q{rank}", y=f"{y}%", width="100%", height=size))
        if named:
            lower = "2.8em" if bottom < scale.limit < top else "1.2em"
            drawn.append(tag("text", word, x="0.5em", y=f"{y}%", dy=lower))
    if named:
        weak = f"weak below {number(scale.limit)}"
        above = f"{scale.y(scale.limit)}%"
        drawn.append(tag("text", weak, x="99.5%", y=above, dy="-0.3em", text_anchor="end"))
    return drawn


def _times(until: datetime) -> list[Html]:
    drawn = []
    for minutes in (45, 30, 15):
        at = until - timedelta(minutes=minutes)
        x = f"{100 - 100 * minutes / 60:.0f}%"
        drawn.append(tag("line", class_="grid", x1=x, x2=x, y1=0, y2="100%"))
        drawn.append(tag("text", f"{at:%H:%M}", x=x, y="97%", dx="0.3em"))
    return drawn


def _runs(scale: Scale, history: Sequence[Reading], until: datetime) -> list[str]:
    """Return the points of each line; a gap between readings is a gap between lines."""
    runs: list[list[str]] = []
    before: datetime | None = None
    for reading in history:
        value = scale.value(reading)
        x = (reading.at - until + HOUR).total_seconds()
        if value is None or x < 0:
            before = None
            continue
        if before is None or reading.at - before > _GAP:
            runs.append([])
        before = reading.at
        runs[-1].append(f"{x:.0f},{scale.y(value)}")
    # A lone point is a line of no length: its round ends are seen.
    return [" ".join(run if len(run) > 1 else run * 2) for run in runs]


_PRINTED = {
    "ln": 'fill="none" stroke="#1a56b0" stroke-width="2" vector-effect="non-scaling-stroke" '
    'stroke-linecap="round"',
    "lim": 'stroke="#b3261e" stroke-dasharray="6 4"',
    "grid": 'stroke="#c4c7cc"',
    "q1": 'fill="#dff1e3"',
    "q2": 'fill="#eaf3ea"',
    "q3": 'fill="#f4f2e4"',
    "q4": 'fill="#f8eadd"',
    "q5": 'fill="#f7e0dd"',
}
"""What a class of a chart is drawn with where no style sheet is at hand."""


def signal_file(history: Sequence[Reading], until: datetime) -> str:
    """Return the signals of the hour up to `until` as an SVG that stands by itself."""
    drawn: list[Html] = []
    for scale in (RSRP, SNR):
        top = len(drawn) * 120
        title = f"{scale.name}, {scale.unit}, the hour up to {until:%Y-%m-%d %H:%M} UTC"
        drawn.append(tag("text", title, x=8, y=top + 18))
        chart = signal(scale, history, until, axis=True)
        drawn.append(tag("svg", chart, x=8, y=top + 28, width=944, height=200))
    white = tag("rect", width="100%", height="100%", fill="#ffffff")
    whole = tag(
        "svg", white, drawn, xmlns="http://www.w3.org/2000/svg", width=960, height=480,
        font_family="sans-serif", font_size=13, fill="#1b1b1f",
    )  # fmt: skip
    text = str(whole)
    for name, attributes in _PRINTED.items():
        text = text.replace(f'class="{name}"', attributes)
    return text


_METRES_PER_DEGREE = 111_320.0


def plan(position: LastPosition | None, track: Sequence[Place] = ()) -> Html:
    """Return a position in metres, north up, with its uncertainty and the way that it came."""
    if position is None or position.lat is None or position.lon is None:
        none = tag("text", "no position", x="50%", y="50%", text_anchor="middle")
        return tag("svg", none, class_="ch plan", role="img", aria_label="No position yet")
    east_north = _around(position.lat, position.lon)
    way = [east_north(each.lat, each.lon) for each in track]
    reach = max([position.uncertainty or 0.0, *(max(abs(x), abs(y)) for x, y in way), 5.0])
    half = 1.4 * reach
    step = _round_step(half / 2)
    ticks = [n * step for n in range(-int(half / step), int(half / step) + 1)]
    grid = "".join(f"M{x:g} {-half:g}V{half:g}M{-half:g} {x:g}H{half:g}" for x in ticks)
    around = None if position.uncertainty is None else f"±{metres(position.uncertainty)}"
    inner = tag(
        "svg",
        tag("path", class_="grid", d=grid),
        tag("circle", class_="unc", cx=0, cy=0, r=position.uncertainty or 0),
        tag("polyline", class_="ln thin way", points=" ".join(f"{x:.1f},{-y:.1f}" for x, y in way)),
        tag("path", class_="dot", d="M0 0h0"),
        viewBox=f"{-half:g} {-half:g} {2 * half:g} {2 * half:g}",
    )
    return tag(
        "svg",
        inner,
        tag("text", metres(step), x=4, y="96%"),
        around and tag("text", around, x="96%", y="14%", text_anchor="end"),
        class_="ch plan",
        role="img",
        aria_label=f"Position by {position.method}, {around or 'uncertainty not known'}",
    )


def _around(lat0: float, lon0: float) -> Callable[[float, float], tuple[float, float]]:
    """Return what turns a place into metres east and north of one: on a plane, for a plan."""
    per_degree_east = _METRES_PER_DEGREE * math.cos(math.radians(lat0))

    def east_north(lat: float, lon: float) -> tuple[float, float]:
        degrees_east = (lon - lon0 + 180) % 360 - 180
        return degrees_east * per_degree_east, (lat - lat0) * _METRES_PER_DEGREE

    return east_north


def _round_step(length: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is no longer."""
    power: float = 10 ** math.floor(math.log10(length))
    return next(step for step in (5 * power, 2 * power, power) if step <= length)
