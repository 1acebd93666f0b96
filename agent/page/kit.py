"""One kit opened: its state, what to do, the signal of the last hour, its console."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from agent.daemon.recent import CONSOLE, Moment, RecentMoments
from agent.daemon.snapshot import (
    MEASURED,
    FotaStatus,
    KitStatus,
    LinkStatus,
    LocationStatus,
    Reading,
)
from agent.page import charts, kits, timeline
from agent.page.markup import Child, Html, table, tag
from agent.page.moment_feed import MomentFeed
from agent.page.view import Painted, View
from agent.page.words import age, iso, metres, moment, number, state_word
from agent.redact import redact
from at.protocol.counts import counted

KEYS = (("p", "pause the console"), ("/", "filter"), ("← →", "moment"), ("Esc", "back"))
LEVELS = ("debug", "info", "warning", "error")
_SHOWN = 200
"""Lines of the console in the page; more are in its download."""
_LANES_S = 5.0
"""The shortest time between two pictures of the lanes."""


def kit_view(
    kit: KitStatus,
    feed: MomentFeed,
    now: datetime,
    painted: Painted,
    *,
    match: str = "",
    level: str = "",
    at: datetime | None = None,
) -> View:
    """Return the view of a kit; the console shows lines with `match` in them, from `level` on.

    `at` is the moment that is opened, None for none.
    """
    recent = feed.recent
    minute = kits.end_of_minute(now)
    lately = int(now.timestamp() / _LANES_S)
    paints = {
        "head": partial(_head, kit, now),
        "facts": partial(_facts, kit, now),
        "troubles": partial(_troubles, kit, now),
        "signal": partial(_signal, kit, recent, now, at),
        "decisions": partial(timeline.decisions, kit, recent, now),
        "identity": partial(_identity, kit),
        "position": partial(_position, kit, now),
        "neighbors": partial(_neighbors, kit),
    }
    parts = {
        name: painted.part(
            f"{kit.name} {name}",
            (kit, minute, (lately, feed.is_heard, at) if name in {"signal", "decisions"} else None),
            paint,
        )
        for name, paint in paints.items()
    }
    every = recent.of(CONSOLE)
    lines = [each for each in every if _is_shown(each, match, level)]
    parts["console"] = _console(kit, feed.trouble, len(lines), len(every), match, level)
    shown = {f"line-{each.number}": each for each in lines[-_SHOWN:]}
    for name, line in shown.items():
        parts[name] = painted.part(f"{kit.name} {name}", line, partial(_line, name, line))
    opened = []
    if at is not None:
        opened, parts["around"] = ["around"], timeline.around(kit, recent, at)
    lists = {
        "heading": ["head"],
        "columns": [],
        "columns/wide": ["facts", "troubles", "signal", *opened, "decisions", "console"],
        "columns/wide/lines": list(shown),
        "columns/side": ["position", "neighbors", "identity"],
    }
    says = {kit.name: kits.sentence(kit, now)}
    return View(f"{kit.name}: {kit.state.value}", parts, lists, says)


def _head(kit: KitStatus, now: datetime) -> Html:
    since = kits.since(kit)
    return tag(
        "div",
        tag("a", "Kits", href="/kits", class_="back"),
        tag("h1", kit.name),
        state_word(kit.state),
        tag("span", "since ", moment(since, date=now), ", ", age(since, now), class_="muted since"),
        id="head",
        class_="head",
    )


def _facts(kit: KitStatus, now: datetime) -> Html:
    return tag("dl", kits.facts(kit, now), id="facts", class_="panel facts wide-facts")


def _troubles(kit: KitStatus, now: datetime) -> Html:
    boxes = [kits.trouble_box(each) for each in kits.troubles(kit, now)]
    return tag("div", boxes, id="troubles", class_="troubles", hidden=not boxes)


def _signal(kit: KitStatus, recent: RecentMoments, now: datetime, at: datetime | None) -> Html:
    link = kit.concern(LinkStatus)
    until = kits.end_of_minute(now)
    rsrp, address = charts.RSRP.value(link.reading), kits.address(kit)
    return tag(
        "section",
        tag("h2", "Time line", tag("span", " the last hour, UTC", class_="muted")),
        tag("p", f"RSRP {number(rsrp)} dBm, {charts.quality(rsrp)}"),
        charts.signal(charts.RSRP, link.history, until, axis=True, at=at),
        tag("p", f"SNR {number(charts.SNR.value(link.reading))} dB, weak below {number(-3)}"),
        charts.signal(charts.SNR, link.history, until, axis=True, at=at),
        timeline.lanes(recent, until, at),
        tag(
            "details",
            tag("summary", "as table"),
            tag("div", _table(link.history), class_="scroll", tabindex="0"),
        ),
        tag(
            "p",
            tag("a", "Download the signal as CSV", href=f"{address}/signal.csv", download=True),
            tag("a", "as SVG", href=f"{address}/signal.svg", download=True),
            tag("a", "as PNG", href=f"{address}/signal.svg", class_="js", data_png=kit.name),
            class_="tools",
        ),
        _stretch(address, link.history, until),
        id="signal",
        class_="panel" if link.reading else "panel stale",
    )


def _stretch(address: str, history: Sequence[Reading], until: datetime) -> Html:
    """Return the form that chooses a stretch of the AT lines to be downloaded."""
    since = history[0].at if history else until - charts.HOUR
    fields = [
        tag(
            "label",
            f"{name} ",
            tag("input", type="datetime-local", name=name, step=1, value=f"{at:%Y-%m-%dT%H:%M:%S}"),
        )
        for name, at in (("from", since), ("to", until))
    ]
    return tag(
        "form",
        *("AT lines, redacted, UTC: ", fields, tag("button", "Download")),
        action=f"{address}/recording.txt",
        class_="tools",
    )


def _table(history: Sequence[Reading]) -> Html:
    heading = ("Time", *map(" ".join, MEASURED.values()))
    rows = (
        [moment(each.at), *(number(getattr(each, name)) for name in MEASURED)]
        for each in reversed(history)
    )
    return table(heading, rows)


def signal_csv(kit: KitStatus) -> str:
    """Return the readings as CSV, a line each, the oldest first."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(("at", *MEASURED))
    for each in kit.concern(LinkStatus).history:
        writer.writerow((iso(each.at), *(getattr(each, name) for name in MEASURED)))
    return file.getvalue()


def _position(kit: KitStatus, now: datetime) -> Html:
    found = kit.concern(LocationStatus)
    position = found.position
    words: Child = "No position yet. It is looked for once the kit is heard."
    if position is not None and position.lat is not None and position.lon is not None:
        around = "" if position.uncertainty is None else f", ±{metres(position.uncertainty)}"
        at = moment(datetime.fromisoformat(position.at), date=now)
        where = f"{number(position.lat, 5)}, {number(position.lon, 5)}{around} by {position.method}"
        words = (where, ", ", at)
    return tag(
        "section",
        tag("h2", "Position", tag("span", " north up", class_="muted")),
        charts.plan(position, found.track),
        tag("p", words),
        id="position",
        class_="panel",
    )


def _neighbors(kit: KitStatus) -> Html:
    heard = kit.concern(LocationStatus).neighbors
    rows = [(one.earfcn, one.pci, number(one.rsrp)) for one in heard]
    listed = table(("EARFCN", "PCI", "RSRP dBm"), rows)
    none = tag("p", "None heard. The next scan of cells looks for them.", class_="muted")
    return tag(
        "section",
        tag("h2", "Neighbours", tag("span", " of the serving cell", class_="muted")),
        tag("div", listed, class_="scroll", tabindex="0") if rows else none,
        id="neighbors",
        class_="panel",
    )


def _identity(kit: KitStatus) -> Html:
    link, fota = kit.concern(LinkStatus), kit.concern(FotaStatus)
    rows = {
        "Device": link.device_id,
        "IMEI": link.imei,
        "Model": link.model,
        "Firmware": link.firmware,
        "Application": link.application,
        "Port": kit.port,
        "Dialect": link.dialect,
        "Last update": fota.last and f"{fota.last.status}: {fota.last.proof or fota.last.job}",
    }
    pairs = [(tag("dt", name), tag("dd", value or "not known")) for name, value in rows.items()]
    return tag(
        "section", tag("h2", "Identity"), tag("dl", pairs, class_="facts"), id="identity",
        class_="panel",
    )  # fmt: skip


# --- the console


def _is_shown(line: Moment, match: str, level: str) -> bool:
    if match.lower() not in line.text.lower():
        return False
    if level not in LEVELS or line.level == "note":
        return True
    return line.level in LEVELS[LEVELS.index(level) :]


def _console(kit: KitStatus, trouble: str, count: int, total: int, match: str, level: str) -> Html:
    lines = counted(total, "lines")
    of_all = f"{count} of {lines}" if match or level else lines
    state = f"not live: {trouble}" if trouble else "live"
    options = [
        tag("option", name or "all levels", value=name, selected=name == level)
        for name in ("", *LEVELS)
    ]
    empty = None
    if not total:
        empty = tag("p", "Nothing was printed since the agent started.", class_="muted")
    elif not count:
        empty = tag("p", f"0 of {total} lines; ", tag("a", "clear", href=kits.address(kit)))
    return tag(
        "section",
        tag("h2", "Console", tag("span", f" {state}, {of_all} kept", class_="muted")),
        tag(
            "form",
            tag(
                "input",
                type="search",
                name="match",
                value=match,
                placeholder="Filter: text",
                aria_label="Filter the console by text",
            ),
            tag("select", options, name="level", aria_label="Least level"),
            tag("button", "Show"),
            tag("button", "Pause", type="button", id="pause", class_="js", aria_pressed="false"),
            tag("button", "Copy", type="button", id="copy", class_="js"),
            tag("a", "Download, redacted", href=f"{kits.address(kit)}/console.txt", download=True),
            action=kits.address(kit),
            class_="tools",
        ),
        empty,
        id="console",
        class_="panel",
    )


def _line(name: str, line: Moment) -> Html:
    colour = timeline.COLOURS.get(line.level, "")
    return tag("div", moment(line.at), " ", tag("span", line.text, class_=colour), id=name)


def console_text(feed: MomentFeed) -> Iterator[str]:
    """Yield what is kept of a console, with times, without secrets and identities."""
    from at.transcripts.redaction.redactor import Redactor

    redactor = Redactor(identity=True)
    for line in feed.recent.of(CONSOLE):
        cleaned = redactor.clean_answer(line.text.encode(errors="backslashreplace"))
        # What this process knows as secret has no name in every line that holds it; looked for
        # behind what knows a key by the line that it began with.
        yield f"{iso(line.at)} {redact(cleaned.decode('utf-8', 'backslashreplace'))}\n"
