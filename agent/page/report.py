"""What the bench has made, from the ledger: yield, cycle times, failures, and the newest runs."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from agent.page.bench_feed import PERIODS, Records
from agent.page.markup import Child, Html, table, tag
from agent.page.view import Painted, View
from agent.page.words import command, icon, iso, moment
from agent.provisioning.exports import neutral
from agent.provisioning.ledger import RunRecord
from agent.provisioning.report import Report, Times, percent
from at.protocol.counts import counted

_SHOWN = 100
_MOST_BINS = 12
_COLUMNS = (
    *("began_at", "ended_at", "station", "slot", "uuid", "imei", "device_id", "label"),
    *("operator", "lot", "product", "outcome", "step", "reason_code", "reason"),
)


def report_view(records: Records | None, period: str, now: datetime, painted: Painted) -> View:
    """Return the report of a period; `records` None while the ledger is read."""
    parts = {"period": _periods(period)}
    if records is None:
        parts["nothing"] = tag("p", "The ledger is being read.", id="nothing", class_="muted")
        return View("Report", parts, {"heading": ["period"], "columns": ["nothing"]})
    made = records.made
    if not records.runs:
        parts["nothing"] = _nothing(period)
        return View("No run yet", parts, {"heading": ["period"], "columns": ["nothing"]})
    headline = f"{counted(made.total.passed, 'boards')} of {made.total.boards} passed"
    paints = {
        "head": partial(tag, "h1", headline, id="head"),
        "numbers": partial(_numbers, made),
        "hours": partial(_hours, made),
        "failures": partial(_failures, made),
        "cycles": partial(_cycles, made.total.cycle),
        "steps": partial(_steps, made),
        "runs": partial(_runs, records.runs, now),
    }
    parts |= {
        name: painted.part(f"{period} {name}", (records, now.date()), paint)
        for name, paint in paints.items()
    }
    lists = {
        "heading": ["head", "period", "numbers"],
        "halves": ["hours", "failures", "cycles", "steps"],
        "whole": ["runs"],
    }
    return View(headline, parts, lists)


def numbers(made: Report) -> Iterator[Html]:
    """Yield what is counted of the boards of a report, as terms and values."""
    total = made.total
    rows = {
        "Boards": str(total.boards),
        "Yield": _percent(total.yield_),
        "95 % interval": _range(total.yield_range),
        "First pass": _percent(total.first_pass_yield),
        "Cycle, median": _time(total.cycle.median),
        "95 of 100 within": _time(total.cycle.p95),
    }
    for name, value in rows.items():
        yield tag("div", tag("dt", name), tag("dd", value))


def _numbers(made: Report) -> Html:
    return tag("dl", numbers(made), id="numbers", class_="panel pace")


def _periods(period: str) -> Html:
    links = [
        tag("a", name, href=f"/report?period={name}", aria_current=name == period and "true")
        for name in PERIODS
    ]
    file = tag("a", "Download the runs as CSV", href=f"/report/runs.csv?period={period}",
               download=True)  # fmt: skip
    return tag("p", links, file, id="period", class_="periods")


def _nothing(period: str) -> Html:
    words = "No run is recorded yet. Begin one: " if period == "all" else "No run in this period. "
    act = command("cellagent provision run --all")
    if period != "all":
        act = tag("a", "Show all", href="/report?period=all")
    return tag("p", words, act, id="nothing")


def _hours(made: Report) -> Html:
    most = max((each.boards for each in made.groups.values()), default=1)
    rows = []
    for name, counts in sorted(made.groups.items(), reverse=True):
        hour = datetime.fromisoformat(name) if name else None
        bars = (
            tag("rect", class_="f-edge", width=_share(counts.passed, most), height="100%"),
            tag("rect", class_="f-bad", x=_share(counts.passed, most),
                width=_share(counts.failed, most), height="100%"),
        )  # fmt: skip
        rows.append(
            (
                f"{hour:%d %b %H:%M}" if hour else "not known",
                str(counts.boards),
                str(counts.failed),
                _percent(counts.yield_),
                tag("svg", bars, class_="ch bar", aria_hidden="true"),
            )
        )
    return _panel("hours", "By the hour", ("Hour", "Boards", "Failed", "Yield", ""), rows)


def _failures(made: Report) -> Html:
    most = max((each.attempts for each in made.failures.values()), default=1)
    rows = [
        (
            tag("span", icon("bad"), reason or "not known", class_="st bad"),
            str(each.attempts),
            str(each.boards),
            str(each.passed_later),
            _bar(each.attempts, most, "f-bad"),
        )
        for reason, each in made.failures.items()
    ]
    heading = ("Failed for", "Attempts", "Boards", "Passed later", "")
    return _panel("failures", "Failures", heading, rows, "No attempt failed in this period.")


def _range(shares: tuple[float, float] | None) -> str:
    return "–" if shares is None else f"{percent(shares[0])} to {percent(shares[1])}"


def _cycles(cycle: Times) -> Html:
    """Return how many boards took how long, in a dozen steps at most."""
    wide = round_up(max(cycle.seconds, default=0.0) / _MOST_BINS)
    bins = Counter(round(seconds * 1000) // round(wide * 1000) for seconds in cycle.seconds)
    most = max(bins.values(), default=1)
    rows = [
        (f"{at * wide:g} to {(at + 1) * wide:g} s", str(bins[at]), _bar(bins[at], most, "f-edge"))
        for at in range(min(bins, default=0), max(bins, default=-1) + 1)
    ]
    heading = ("Took", "Boards", "")
    return _panel("cycles", "Cycle times", heading, rows, "No board passed in this period.")


def round_up(seconds: float) -> float:
    """Return the smallest of 0.1, 0.2, 0.5, 1, 2, 5 … that is not below."""
    power = 0.1
    while power * 10 < seconds:
        power *= 10
    return next(round(step * power, 1) for step in (1, 2, 5, 10) if step * power >= seconds)


def _steps(made: Report) -> Html:
    longest = max((each.median or 0.0 for each in made.steps.values()), default=0.0)
    rows = [
        (name, _time(each.median), _time(each.p95), _bar(each.median or 0.0, longest, "f-edge"))
        for name, each in made.steps.items()
    ]
    heading = ("Step", "Median", "95 of 100 within", "")
    return _panel("steps", "Time by step", heading, rows, "No board passed in this period.")


def _runs(runs: Sequence[RunRecord], now: datetime) -> Html:
    rows = [
        (
            moment(run.began_at, local=True, date=now),
            run.slot or run.usb_place or run.port,
            run.device_id or run.imei,
            " · ".join(filter(None, (run.operator, run.lot))),
            tag("span", icon(_kind(run)), run.outcome, class_=f"st {_kind(run)}"),
            run.step,
            run.reason,
            _time((run.ended_at - run.began_at).total_seconds()) if run.ended_at else "",
        )
        for run in runs[:_SHOWN]
    ]
    heading = ("Began", "Slot", "Board", "Operator, lot", "Outcome", "Step", "Reason", "Took")
    return _panel("runs", f"The newest {counted(len(rows), 'runs')}", heading, rows)


def _kind(run: RunRecord) -> str:
    if run.has_failed:
        return "bad"
    if run.is_no_attempt:
        return "attn"
    return "ok" if run.is_made else "work"


def runs_csv(records: Records) -> str:
    """Return the newest runs as CSV, which a spreadsheet opens without running any of it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run in records.runs:
        cells = (getattr(run, name) for name in _COLUMNS)
        writer.writerow(
            iso(cell) if isinstance(cell, datetime) else neutral(str(cell or "")) for cell in cells
        )
    return file.getvalue()


def _panel(
    name: str, title: str, heading: Sequence[str], rows: Sequence[Sequence[Child]], empty: str = ""
) -> Html:
    listed = tag("div", table(heading, rows), class_="scroll", tabindex="0",
                 role="region", aria_label=title)  # fmt: skip
    shown = listed if rows or not empty else tag("p", empty, class_="muted")
    return tag("section", tag("h2", title), shown, id=name, class_="panel")


def _bar(value: float, most: float, kind: str) -> Html:
    width = _share(value, most)
    part = tag("rect", class_=kind, width=width, height="100%")
    return tag("svg", part, class_="ch bar", aria_hidden="true")


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _share(value: float, most: float) -> str:
    return f"{100 * value / most if most else 0:.1f}%"


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"
