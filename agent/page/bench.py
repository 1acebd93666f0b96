"""The tray as it lies on the table: what each slot is at, and which of them needs a hand."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from urllib.parse import quote

from agent.page.bench_feed import Records, RunningBench
from agent.page.kits import with_commands
from agent.page.markup import Child, Html, tag
from agent.page.report import numbers
from agent.page.view import Painted, View
from agent.page.words import command, icon
from agent.provisioning.ledger.records import UNFINISHED
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.tray import Slot, SlotState
from at.protocol.counts import counted

_KINDS = {
    SlotState.FAIL: "bad",
    SlotState.BUSY: "attn",
    SlotState.UNLABELLED: "attn",
    SlotState.WORKING: "work",
    SlotState.WAITING: "work",
    SlotState.PASS: "ok",
    SlotState.EMPTY: "none",
}
"""The class that colours a state; its icon has the same name."""
_WORDS = {
    SlotState.WAITING: "begins",
    SlotState.UNLABELLED: "its label is to be scanned",
    SlotState.EMPTY: "nothing plugged in",
}
_STEPS = [step.value for step in ProvisioningStep]
_SHORT_NAME, _LONGEST_NAME = 4, 12  # characters in a tile: paths differ in their end
_NEWEST = 48


def bench_view(
    running: RunningBench | None,
    records: Records | None,
    now: datetime,
    painted: Painted,
    *,
    control: bool,
) -> View:
    """Return the tray of a run; without one what to do, and what the ledger has of today."""
    parts: dict[str, Html] = {"pace": painted.part("pace", (records, now.date()),
                                                   partial(_pace, records))}  # fmt: skip
    if running is None:
        parts["none"] = _no_run()
        return View("No run at this bench", parts, {"heading": ["none"], "pace-of-day": ["pace"]})
    tray, clock = running.bench.tray, time.monotonic()
    slots = tray.ordered()
    columns = tray.layout[0] if tray.layout else math.ceil(math.sqrt(len(slots)))
    acts = ("scan", "order") if control else ()
    heading = ["head", *acts, "sound", "alarm"]
    lists: dict[str, Sequence[str]] = {"heading": heading, "floor": [], "floor/tray": []}
    for row, of_row in enumerate(tray.rows(max(1, columns))):
        names = []
        for slot in of_row:
            name, seconds = _name_of(slot), _seconds(slot, clock)
            shows = (slot.state, slot.step, seconds, slot.outcome, slot.label, slot.name)
            parts[name] = painted.part(name, shows, partial(_tile, slot, seconds))
            names.append(name)
        for number in range(len(of_row), columns if row else 0):  # a row is as wide as the others
            names.append(f"gap-{number}")
            parts[names[-1]] = tag("div", id=names[-1], class_="gap")
        lists[f"floor/tray/row-{row}"] = names
    needing = [slot for slot in tray.by_need() if slot.state.needs_hand]
    parts["hands"] = _hands(needing, slots)
    parts["alarm"] = tag(
        "p",
        running.alarm,
        id="alarm",
        class_="vh",
        role="alert",
        data_count=running.failures,
        data_quiet=running.quiet,
    )
    headline = _headline(tray.tally(), len(needing))
    parts["head"] = _head(headline, tray.tally())
    parts["sound"] = tag("button", "Sound", id="sound", type="button", class_="js")
    if control:
        parts |= {"scan": _scan_field(running), "order": _order(running)}
    lists |= {"floor/side": ["hands"], "pace-of-day": ["pace"]}
    return View(headline, parts, lists)


def _name_of(slot: Slot) -> str:
    return f"slot-{quote(slot.key, safe='')}"


def _seconds(slot: Slot, clock: float) -> str:
    if slot.outcome is not None:
        return f"{slot.seconds:.1f} s"
    return f"{clock - slot.began:.0f} s" if slot.state is SlotState.WORKING else ""


def _headline(tally: Mapping[SlotState, int], needing: int) -> str:
    total = sum(tally.values())
    if needing:
        return (
            f"{needing} of {counted(total, 'slots')} {'needs' if needing == 1 else 'need'} a hand"
        )
    if not total:
        return "Nothing is plugged in"
    if passed := tally.get(SlotState.PASS):
        return f"{passed} of {counted(total, 'slots')} {'passes' if passed == 1 else 'pass'}"
    return f"{counted(total, 'slots')}, none needs a hand"


def _head(headline: str, tally: Mapping[SlotState, int]) -> Html:
    words = []
    for state, count in tally.items():
        kind = _KINDS[state]
        words.append(tag("li", icon(kind), f"{count} {state.value.lower()}", class_=f"st {kind}"))
    return tag(
        "div",
        tag("h1", headline),
        tag("ul", words, class_="tally", aria_label="Slots by state"),
        id="head",
        class_="head",
    )


def _tile(slot: Slot, seconds: str) -> Html:
    kind, word = _KINDS[slot.state], slot.state.value.upper()
    bar: Html | None = None
    if slot.state is SlotState.WORKING and slot.step in _STEPS:
        number = _STEPS.index(slot.step) + 1
        word = f"{number} of {len(_STEPS)}"
        done = tag("rect", class_="f-work", width=f"{100 * number // len(_STEPS)}%", height="100%")
        bar = tag("svg", done, class_="pg", aria_hidden="true")
    name = slot.name
    shown = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return tag(
        "section",
        tag("h2", shown, class_="long" if len(shown) > _SHORT_NAME else None),
        icon(kind),
        tag("p", word, class_="w"),
        [tag("p", line, class_="d") for line in _detail(slot, seconds)],
        bar,
        id=_name_of(slot),
        class_=f"slot {kind}",
        aria_label=f"{name}: {slot.state.value}",
    )


def _detail(slot: Slot, seconds: str) -> Iterator[str]:
    """Yield the small lines of a slot: how its run ended or where it is, and which board."""
    what, board = _WORDS.get(slot.state, slot.step or "begins"), slot.label
    if slot.outcome is not None:
        what = _how(slot.outcome)
        board = slot.outcome.reason_code.replace("-", " ") or slot.label
    yield " · ".join(filter(None, (what, seconds)))
    if board:
        yield board


def _how(outcome: Outcome) -> str:
    return outcome.outcome if outcome.ok else f"{outcome.outcome} at {outcome.step}"


def _hands(needing: Sequence[Slot], slots: Sequence[Slot]) -> Html:
    items = [
        tag(
            "li",
            tag("h3", slot.name),
            tag("span", icon(_KINDS[slot.state]), _what(slot), class_=f"st {_KINDS[slot.state]}"),
            tag("p", slot.outcome.reason) if slot.outcome is not None else None,
            tag("p", with_commands(_do(slot)), class_="do"),
            class_=_KINDS[slot.state],
        )
        for slot in needing
    ]
    nothing: Child = "No hand is needed."
    if not any(slot.state is not SlotState.EMPTY for slot in slots):
        nothing = "Plug boards in: each begins by itself."
    elif slots and all(slot.state in {SlotState.PASS, SlotState.EMPTY} for slot in slots):
        nothing = "Every board passed: take them out, and plug the next ones in."
    return tag(
        "section",
        tag("h2", f"Hands needed: {len(needing)}"),
        tag("ul", items) if items else tag("p", nothing),
        id="hands",
        class_="panel hands",
        tabindex="0",
        aria_label="Hands needed",
    )


def _what(slot: Slot) -> str:
    return _WORDS[slot.state] if slot.outcome is None else _how(slot.outcome)


def _do(slot: Slot) -> str:
    if slot.outcome is None:
        return "Scan the label of this board."
    return slot.outcome.hint or "Take it out, plug it in again; if it fails again, set it aside."


def _scan_field(running: RunningBench) -> Html:
    scan = running.bench.last_scan
    kind = "ok" if scan is not None and scan.taken else "bad"
    told = None
    if scan is not None:
        told = tag("span", icon(kind), scan.words, class_=f"st {kind}")
    scans = running.bench.scans
    asked = scans.prompt if scans is not None else "scan a slot to try it again"
    return tag(
        "form",
        tag(
            "label",
            asked[0].upper() + asked[1:],
            tag("input", name="line", autocomplete="off", autocapitalize="off", spellcheck="false"),
        ),
        tag("p", told, role="status"),
        id="scan",
        class_="act js",
        data_act="/bench/scan",
    )


def _order(running: RunningBench) -> Html:
    order = running.station.order
    return tag(
        "form",
        [
            tag("label", name.capitalize(), tag("input", name=name, value=value, maxlength=64))
            for name, value in (("operator", order.operator), ("lot", order.lot))
        ],
        tag("button", "Set"),
        id="order",
        class_="act js",
        data_act="/bench/order",
    )


def _pace(records: Records | None) -> Html:
    if records is None:
        return tag("p", "The ledger is being read.", id="pace", class_="muted")
    runs = [run for run in reversed(records.runs[:_NEWEST]) if run.outcome != UNFINISHED]
    bars = [
        tag(
            "rect",
            class_="f-bad" if run.has_failed else "f-edge",
            x=f"{100 * number / _NEWEST:.2f}%",
            width="1.5%",
            y="0%" if run.has_failed else "40%",
            height="100%" if run.has_failed else "60%",
        )
        for number, run in enumerate(runs)
    ]
    of_today = f"{counted(len(runs), 'runs')} of today"
    told = f"{of_today}, {sum(run.has_failed for run in runs)} failed"
    strip = tag("svg", bars, class_="ch strip", role="img", aria_label=told)
    return tag(
        "dl",
        tag("div", tag("dt", f"The newest {of_today}: tall is a fail"), tag("dd", strip)),
        numbers(records.made),
        id="pace",
        class_="panel pace",
    )


def _no_run() -> Html:
    return tag(
        "div",
        tag("h1", "No run at this bench"),
        tag("p", "The tray is shown by the run itself. Begin one:"),
        tag("p", command("cellagent provision run --all --watch --page")),
        tag("p", "A link to one that goes on, at an address of its own:"),
        tag("p", command("cellagent page")),
        id="none",
        class_="empty",
    )
