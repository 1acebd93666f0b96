"""The kits, the worst first: a card for each of a few, a row for each of many."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import quote

from agent.daemon.snapshot import (
    AgentStatus,
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    KitOutbox,
    KitStatus,
    LinkStatus,
    LocationStatus,
    Phase,
    State,
)
from agent.daemon.states import meaning
from agent.page import charts
from agent.page.markup import Child, Html, tag
from agent.page.view import Painted, View
from agent.page.words import CLASS_OF, age, command, metres, moment, number, state_word
from at.checkup import REGISTRATION
from at.protocol.counts import counted

KEYS = (("j k", "next, previous kit"), ("Enter", "open"), ("d", "cards or rows"))
_MOST_CARDS = 12
MINUTE = timedelta(minutes=1)
_CARDS, _ROWS = "cards", "rows"
_PROOFS = ("size-checked", "intact", "verified")
"""What an image may have proven; each holds those before it."""
_ORDER = list(State)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is to be looked at: what, how sure, on which evidence, and what to do."""

    state: State
    says: str
    certainty: str = ""
    because: str = ""
    next: str | None = None


def end_of_minute(now: datetime) -> datetime:
    """Return the end of this minute: until then nothing moves by itself."""
    return now.replace(second=0, microsecond=0) + MINUTE


def name_of(kit: KitStatus) -> str:
    """Return the id of a kit's part."""
    return f"kit-{quote(kit.name, safe='')}"


def address(kit: KitStatus) -> str:
    """Return the address of one kit opened."""
    return f"/kits/{quote(kit.name, safe='')}"


def kits_view(
    status: AgentStatus, now: datetime, painted: Painted, *, state: str = "", density: str = ""
) -> View:
    """Return the kits of a status; `state` chooses those in it, `density` is cards, rows or ""."""
    ordered = sorted(status.kits, key=lambda kit: (_ORDER.index(kit.state), since(kit)))
    shown = [kit for kit in ordered if state in {"", kit.state.value}]
    density = density or (_ROWS if len(status.kits) > _MOST_CARDS else _CARDS)
    paint = _row if density == _ROWS else _card
    parts = {
        name_of(kit): painted.part(
            f"{density} {kit.name}", (kit, end_of_minute(now)), partial(paint, kit, now)
        )
        for kit in shown
    }
    container = "rows" if density == _ROWS else "cards"
    lists = {"heading": ["head"], container: list(parts)}
    parts["head"] = _head(status, now, state, density)
    if not shown:
        parts["nothing"] = _nothing(status, state)
        lists[container] = ["nothing"]
    says = {kit.name: sentence(kit, now) for kit in status.kits}
    return View(headline(status), parts, lists, says)


def headline(status: AgentStatus) -> str:
    """Return how many kits want somebody, in a sentence."""
    total = len(status.kits)
    if not total:
        return "No kit yet"
    needing = sum(kit.state in {State.TROUBLE, State.ATTENTION} for kit in status.kits)
    if not needing:
        unheard = sum(kit.state is State.UNKNOWN for kit in status.kits)
        if unheard:
            return f"{unheard} of {counted(total, 'kits')} not heard"
        everything = {kit.state for kit in status.kits} <= {State.WELL}
        return f"{counted(total, 'kits')}, {'all well' if everything else 'none needs you'}"
    return f"{needing} of {counted(total, 'kits')} {'needs' if needing == 1 else 'need'} you"


def _head(status: AgentStatus, now: datetime, state: str, density: str) -> Html:
    counts = Counter(kit.state for kit in status.kits)
    tally = [
        tag(
            "li",
            tag(
                "a",
                state_word(each, f"{counts[each]} {each.value}"),
                href=f"/kits?density={density}" + ("" if state == each else f"&state={each.value}"),
                aria_current="true" if state == each else None,
            ),
        )
        for each in State
        if counts[each] or state == each
    ]
    outbox = status.outbox
    waits = f"{outbox.waiting} wait" if outbox.waiting else "empty"
    oldest = (", oldest ", age(outbox.oldest, now)) if outbox.waiting and outbox.oldest else None
    other = _CARDS if density == _ROWS else _ROWS
    parked = f", {outbox.parked} parked" if outbox.parked else None
    up = age(status.agent.since, now)
    return tag(
        "div",
        tag("h1", headline(status)),
        tag("ul", tally, class_="tally", aria_label="Kits by state"),
        tag(
            "p",
            *("Outbox: ", waits, oldest, parked),
            *(f" · agent {status.agent.version}, up ", up),
            class_="muted",
        ),
        tag("a", f"as {other}", href=f"/kits?density={other}", class_="density"),
        [trouble_box(each) for each in shared_troubles(status, now)],
        id="head",
        class_="head",
    )


def shared_troubles(status: AgentStatus, now: datetime) -> Iterator[Trouble]:
    """Yield what is to be looked at of that which all kits share."""
    for concern in (status.outbox, status.housekeeping):
        if concern.state in {State.TROUBLE, State.ATTENTION}:
            found = meaning(concern, now)
            yield Trouble(concern.state, f"{concern.name}: {found.what}", next=found.hint)


def _nothing(status: AgentStatus, state: str) -> Html:
    if state and status.kits:
        every = tag("a", "show all", href="/kits")
        words = f"Of {counted(len(status.kits), 'kits')} none is in the state {state}; "
        return tag("p", words, every, id="nothing")
    step = "Plug one in, look for its port, name that in the profile, and have the profile read: "
    commands = "`cellagent ports` `cellagent config set kit.port PORT` `cellagent reload`"
    return tag("p", step, with_commands(commands), id="nothing")


# --- one kit


def since(kit: KitStatus) -> datetime:
    """Return since when a kit is in its state, by the concern that makes it so."""
    return min((c.since for c in kit.concerns if c.state is kit.state), default=_newest(kit))


def _newest(kit: KitStatus) -> datetime:
    return max(concern.since for concern in kit.concerns)


def troubles(kit: KitStatus, now: datetime) -> Iterator[Trouble]:
    """Yield what is to be looked at of a kit, the worst first."""
    for concern in sorted(kit.concerns, key=lambda each: _ORDER.index(each.state)):
        if concern.state in {State.WELL, State.WORKING}:
            continue
        if concern.state is State.UNKNOWN and kit.state is not State.UNKNOWN:
            continue  # what waits says less than what it waits for
        of_link = list(_of_link(concern)) if isinstance(concern, LinkStatus) else []
        if not of_link or concern.phase is Phase.TROUBLE:
            found = meaning(concern, now)
            yield Trouble(concern.state, f"{concern.name}: {found.what}", next=found.hint)
        yield from of_link


def _of_link(link: LinkStatus) -> Iterator[Trouble]:
    if (cause := link.cause) is not None:
        yield Trouble(link.state, cause.says, cause.certainty, cause.evidence, cause.next)
    for finding in link.findings_beside_cause():
        yield Trouble(link.state, finding.what, next=finding.hint)


def sentence(kit: KitStatus, now: datetime) -> str:
    """Return a kit's state in a sentence, for a screen reader."""
    first = next(troubles(kit, now), None)
    return f"{kit.name}: {kit.state.value}" + ("" if first is None else f", {first.says}")


def trouble_box(trouble: Trouble) -> Html:
    """Return what is to be looked at, the evidence and the next step under it."""
    sure = trouble.certainty and tag("span", trouble.certainty, class_="cert")
    return tag(
        "div",
        tag("p", trouble.says, " ", sure, class_="b"),
        trouble.because and _line("Because", tag("code", trouble.because)),
        trouble.next and _line("Next", with_commands(trouble.next)),
        class_=f"why {CLASS_OF[trouble.state]}",
    )


def _line(name: str, value: Child) -> Html:
    return tag("p", tag("span", name), tag("span", value), class_="line")


def with_commands(text: str) -> list[Html | str]:
    """Return a text in which what stands between backticks is a command to be copied."""
    return [command(part) if number % 2 else part for number, part in enumerate(text.split("`"))]


def _card(kit: KitStatus, now: datetime) -> Html:
    name = name_of(kit)
    link, location = kit.concern(LinkStatus), kit.concern(LocationStatus)
    plan = charts.plan(location.position, location.track)
    about = _joined(link.model, link.firmware, kit.port)
    return tag(
        "article",
        tag(
            "header",
            tag("h2", tag("a", kit.name, href=address(kit)), id=f"{name}-name"),
            state_word(kit.state),
            tag(
                "p",
                tag("span", about),
                tag(
                    "span",
                    *("since ", moment(since(kit), date=now), ", ", age(since(kit), now)),
                    class_="since",
                ),
                class_="sub",
            ),
        ),
        [trouble_box(each) for each in troubles(kit, now)],
        tag(
            "div",
            tag("div", _signals(link, now), plan, class_="sig"),
            tag("dl", facts(kit, now), class_="facts"),
            class_="body",
        ),
        id=name,
        class_=f"card {CLASS_OF[kit.state]}",
        aria_labelledby=f"{name}-name",
    )


def _signals(link: LinkStatus, now: datetime) -> Html:
    rsrp, snr = charts.RSRP.value(link.reading), charts.SNR.value(link.reading)
    return tag(
        "div",
        tag(
            "p",
            "RSRP ",
            tag("span", number(rsrp), class_="v"),
            " dBm ",
            tag("span", charts.quality(rsrp), class_="muted"),
        ),
        charts.signal(charts.RSRP, link.history, end_of_minute(now)),
        tag("p", "SNR ", tag("span", number(snr), class_="v"), " dB"),
        charts.signal(charts.SNR, link.history, end_of_minute(now)),
        tag("p", "last hour", class_="muted"),
        class_="stale" if link.reading is None else None,
    )


def facts(kit: KitStatus, now: datetime) -> Iterator[Html]:
    """Yield the facts of a kit, always the same ones in the same place; absent ones are said."""
    rows: dict[str, Child] = {
        **_link_facts(kit.concern(LinkStatus)),
        "Crashes": _crashes(kit.concern(ConsoleStatus), now),
        "Heartbeat": _heartbeat(kit.concern(EventsStatus), now),
        "Position": _position(kit.concern(LocationStatus), now),
        "Update": _update(kit.concern(FotaStatus)),
        "Outbox": _waiting(kit.outbox, now),
    }
    if kit.state is State.WORKING:
        rows = {"Update": rows.pop("Update"), **rows}
    for name, value in rows.items():
        yield tag("dt", name)
        yield tag("dd", value)


def _link_facts(link: LinkStatus) -> dict[str, Child]:
    cell, reading = link.cell, link.reading
    serving = cell and _joined(
        None if cell.band is None else f"B{cell.band}",
        None if cell.phys_cell_id is None else f"PCI {cell.phys_cell_id}",
        cell.operator or cell.plmn,
    )
    power = reading and _joined(
        None if reading.supply_mv is None else f"{reading.supply_mv / 1000:.2f} V",
        None if reading.temperature_c is None else f"{number(reading.temperature_c)} °C",
    )
    return {
        "Network": _registered(link.registration),
        "Cell": serving or "not heard",
        "Power": power or "not heard",
        "Restarts": link.restarts or "none",
    }


def _joined(*words: str | None) -> str:
    return " · ".join(filter(None, words))


def _registered(number_of: int | None) -> str:
    if number_of is None:
        return "not heard"
    return f"{REGISTRATION.get(number_of, 'not known')} ({number_of})"


def _crashes(console: ConsoleStatus, now: datetime) -> Child:
    crash = console.crash
    if crash is None:
        return tag("b", str(console.faults)) if console.faults else "none"
    frame = f" at {crash.frame}" if crash.frame else ""
    when = moment(crash.at, date=now)
    return (tag("b", str(max(1, console.faults))), ", ", when, f" {crash.what}{frame}")


def _heartbeat(events: EventsStatus, now: datetime) -> Child:
    if events.next_try:
        return ("next ", moment(events.next_try, date=now))
    return "off" if events.phase is Phase.OFF else "not yet"


def _position(location: LocationStatus, now: datetime) -> Child:
    position = location.position
    if position is None:
        return "off" if location.phase is Phase.OFF else "none yet"
    at = datetime.fromisoformat(position.at)
    around = "" if position.uncertainty is None else f", ±{metres(position.uncertainty)}"
    return (f"{position.method}, ", moment(at, date=now), around)


def _update(fota: FotaStatus) -> Child:
    if fota.stage is None:
        none = "off" if fota.phase is Phase.OFF else "none offered"
        return f"last: {fota.last.status}" if fota.last else none
    done = [tag("b", fota.stage)]
    if fota.total:
        share = 100 * (fota.done or 0) // fota.total
        bar = tag("rect", class_="f-work", width=f"{share}%", height="100%")
        done += [
            tag("span", f" {share} %, {(fota.done or 0) // 1000} of {fota.total // 1000} kB"),
            tag("svg", bar, class_="pg", role="img", aria_label=f"{share} percent done"),
        ]
    return (done, fota.proof and _proof(fota.proof))


def _proof(proof: str) -> Html:
    """Return the three words for an image, each with whether it is reached, and the reason."""
    reached = next((at for at, word in enumerate(_PROOFS) if proof.startswith(word)), -1)
    told = (f"{word} {'yes' if at <= reached else 'no'}" for at, word in enumerate(_PROOFS))
    words = " · ".join(told)
    return tag("span", tag("span", words, class_="proof"), proof, class_="proof")


def _waiting(outbox: KitOutbox, now: datetime) -> Child:
    if not outbox.waiting or outbox.oldest is None:
        return "empty"
    due = (", next try ", moment(outbox.next_try, date=now)) if outbox.next_try else None
    return (tag("b", f"{outbox.waiting} wait"), ", oldest ", age(outbox.oldest, now), due)


def _row(kit: KitStatus, now: datetime) -> Html:
    link = kit.concern(LinkStatus)
    first = next(troubles(kit, now), None)
    rsrp = charts.RSRP.value(link.reading)
    words: Child = tag("span", _registered(link.registration), class_="muted")
    if first is not None:
        step = first.next and (" ", tag("b", "Next"), " ", with_commands(first.next))
        words = tag("span", first.says, step)
    return tag(
        "article",
        state_word(kit.state),
        tag("a", kit.name, href=address(kit), class_="name"),
        tag("span", words, class_="says"),
        charts.signal(charts.RSRP, link.history, end_of_minute(now)),
        tag("span", number(rsrp), tag("span", " dBm", class_="muted"), class_="num"),
        tag("span", age(since(kit), now), class_="num muted since"),
        id=name_of(kit),
        class_=f"row {CLASS_OF[kit.state]}",
    )
