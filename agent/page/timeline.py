"""One kit's last hour as lanes on one time axis, a moment of it, and its recording as a file."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent.daemon.recent import AT, CONSOLE, DECISIONS, HTTP, NETWORK, Moment, RecentMoments
from agent.daemon.snapshot import KitStatus, LinkStatus
from agent.page import charts, kits
from agent.page.markup import Html, tag
from agent.page.words import iso, moment

LANES = {NETWORK: "Network", DECISIONS: "Decisions", CONSOLE: "Console", AT: "AT", HTTP: "HTTP"}
_BINS = 120
_BIN = charts.HOUR / _BINS
_NEAR = timedelta(seconds=3)
_MOST_AT_ONCE = 60
_DECISIONS_SHOWN = 40
COLOURS = {"error": "bad", "warning": "attn", "note": "work"}
_BAD = {"error", "warning", "critical"}


def lanes(recent: RecentMoments, until: datetime, at: datetime | None) -> list[Html]:
    """Return the lanes of the hour up to `until`, under the signal's charts, on their time axis.

    `at` is the moment that is opened.
    """
    cursor = charts.cursor(at, until)
    return [_lane(name, title, recent.of(name), until, cursor) for name, title in LANES.items()]


def _lane(
    name: str, title: str, moments: Sequence[Moment], until: datetime, cursor: Html | None
) -> Html:
    inside = [each for each in moments if each.at > until - charts.HOUR]
    counts, bad = [0] * _BINS, [False] * _BINS
    for each in inside:
        at = min(_BINS - 1, int((each.at - until + charts.HOUR) / _BIN))
        counts[at] += 1
        bad[at] |= each.level in _BAD
    most = max(counts)
    bars = []
    for at, count in enumerate(counts):
        if count:
            height = 30 + 70 * count / most
            bars.append(
                tag(
                    "rect",
                    class_="f-bad" if bad[at] else "f-edge",
                    x=f"{100 * at / _BINS:.2f}%",
                    y=f"{100 - height:.0f}%",
                    width="0.6%",
                    height=f"{height:.0f}%",
                )
            )
    worse = sum(each.level in _BAD for each in inside)
    told = f"{title}: {len(inside)} in the last hour" + (f", {worse} of trouble" if worse else "")
    text = tag("text", f"{title} {len(inside)}", x="0.5em", y="1.1em")
    drawn = (bars, cursor, text)
    return tag("svg", drawn, class_="ch lane", role="img", aria_label=told, id=f"lane-{name}")


def decisions(kit: KitStatus, recent: RecentMoments, now: datetime) -> Html:
    """Return what was decided, and how the network changed; each opens what happened around it."""
    found = recent.of(DECISIONS, NETWORK)[-_DECISIONS_SHOWN:]
    rows = [_row(each, kit, now) for each in reversed(found)]
    table = tag("div", rows, class_="scroll moments", tabindex="0", role="region",
                aria_label="Decisions")  # fmt: skip
    return tag(
        "section",
        tag("h2", "Decisions", tag("span", f" the newest {len(rows)}, UTC", class_="muted")),
        table if rows else tag("p", "Nothing was decided since the agent started.", class_="muted"),
        id="decisions",
        class_="panel",
    )


def _row(each: Moment, kit: KitStatus, now: datetime) -> Html:
    address = f"{kits.address(kit)}?at={iso(each.at)}#around"
    return tag(
        "p",
        tag("a", moment(each.at, date=now), href=address),
        " ",
        tag("span", _words(each), class_=COLOURS.get(each.level)),
    )


def _words(each: Moment) -> str:
    return f"registration: {each.text}" if each.lane == NETWORK else each.text


def around(kit: KitStatus, recent: RecentMoments, at: datetime) -> Html:
    """Return what happened within seconds of a moment, lane by lane."""
    columns = [
        _column(recent, title, lane, at)
        for title, lane in (("Console", (CONSOLE,)), ("AT", (AT,)), ("HTTP", (HTTP,)),
                            ("Decisions", (DECISIONS, NETWORK)))
    ]  # fmt: skip
    address = kits.address(kit)
    step = 2 * _NEAR
    return tag(
        "section",
        tag("h2", "Around ", moment(at), tag("span", f" ±{_NEAR.seconds} s, UTC", class_="muted")),
        tag("div", columns, class_="around"),
        tag(
            "p",
            tag("a", "earlier", href=f"{address}?at={iso(at - step)}#around", class_="earlier"),
            tag("a", "later", href=f"{address}?at={iso(at + step)}#around", class_="later"),
            tag("a", "close", href=address),
            class_="tools",
        ),
        id="around",
        class_="panel",
    )


def _column(recent: RecentMoments, title: str, lane: tuple[str, ...], at: datetime) -> Html:
    near = [each for each in recent.of(*lane) if abs(each.at - at) <= _NEAR]
    nearest = sorted(near, key=lambda each: abs(each.at - at))[:_MOST_AT_ONCE]
    lines = [_near(each, at) for each in sorted(nearest, key=lambda each: each.number)]
    if more := len(near) - len(nearest):
        lines.append(tag("p", f"{more} more, further away", class_="muted"))
    return tag("div", tag("h3", title), lines or tag("p", "none", class_="muted"))


def _near(each: Moment, at: datetime) -> Html:
    """Return a moment with its seconds; that second itself is marked."""
    seconds = tag("time", f"{each.at:%S}.{each.at.microsecond // 100_000}", datetime=iso(each.at))
    words = tag("span", _words(each), class_=COLOURS.get(each.level))
    return tag("p", seconds, " ", words, class_="then" if iso(each.at) == iso(at) else None)


def recording(
    kit: KitStatus, recent: RecentMoments, since: datetime | None, until: datetime | None
) -> str:
    """Return the AT lines of a stretch as a transcript, without secrets and identities."""
    from at.transcripts.redaction.redactor import Redactor
    from at.transcripts.steps import Direction, TranscriptStep
    from at.transcripts.transcript import Transcript, format_transcript

    redactor, steps = Redactor(identity=True), []
    chosen = [
        each
        for each in recent.of(AT)
        if (since is None or each.at >= since) and (until is None or each.at <= until)
    ]
    for each in chosen:
        mark, _, line = each.text.partition(" ")
        data = line.encode()
        at_s = (each.at - chosen[0].at).total_seconds()
        if mark == Direction.SENT.value:
            sent = redactor.clean_command(data + b"\r")
            steps.append(TranscriptStep(Direction.SENT, sent, at_s))
        elif mark == Direction.RECEIVED.value:
            received = redactor.clean_answer(data + b"\r\n")
            steps.append(TranscriptStep(Direction.RECEIVED, received, at_s))
    link = kit.concern(LinkStatus)
    header = {"origin": "recorded"}
    for name, value in (("device", link.model), ("firmware", link.firmware)):
        header |= {name: value} if value else {}
    return format_transcript(Transcript(tuple(steps), header))
