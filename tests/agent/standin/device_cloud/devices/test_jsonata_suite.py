"""The official JSONata suite, on the engine of the stand-in: what differs is named here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonata.jsonata import Jsonata

from agent.standin.device_cloud.devices import jsonata_worker

SUITE = Path(__file__).parents[5] / ".peers" / "jsonata-test-suite"
CASES = 1665
DIFFERENT = {
    "function-formatInteger/formatInteger[43]": "the words of a number beyond 64 bits",
    "function-formatNumber/case014": "an exponent keeps a zero before the point",
    "function-length/case004": "a surrogate pair counts as two",
    "function-sort/case009": "the order of equal keys",
    "function-sort/case010": "the order of equal keys",
    "function-string/case006": "large whole numbers as text",
    "function-string/case030": "large whole numbers as text",
    "function-tomillis/case009": "a date with a blank in place of the T is taken",
    "matchers/case000": "no matchers that an expression defines",
    "regex/case022": "a pattern that matches nothing is taken",
    "regex/case034": "a group of a replacement",
}
_LONG_MS = 100_000
# They take seconds where the reference takes milliseconds.
TOO_SLOW = {
    "flattening/large[0]",
    "flattening/large[1]",
    "performance/case000",
    "performance/case001",
}


@pytest.mark.contract("D4.4")
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:datetime.datetime.utc:DeprecationWarning")  # from 3.12 on
@pytest.mark.skipif(not SUITE.exists(), reason="no JSONata suite here: ./scripts/peers fetches it")
def test_the_engine_agrees_with_the_official_suite_but_for_what_is_named() -> None:
    datasets = {file.stem: json.loads(file.read_text()) for file in SUITE.glob("datasets/*.json")}
    found = {name: outcome(name, case, datasets) for name, case in cases()}
    assert len(found) == CASES
    wrong = {name: text for name, text in found.items() if text and name not in DIFFERENT}
    assert wrong.keys() == TOO_SLOW, wrong
    # One that agrees now is to be struck off the list.
    assert [name for name in DIFFERENT if not found[name]] == []


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each case by its name: its file, and its number where a file has several."""
    for file in sorted(SUITE.glob("groups/*/*.json")):
        content = json.loads(file.read_text())
        name = f"{file.parent.name}/{file.stem}"
        for number, case in enumerate(content if isinstance(content, list) else [content]):
            if "expr-file" in case:
                case["expr"] = (file.parent / case["expr-file"]).read_text()
            yield name if content is case else f"{name}[{number}]", case


def outcome(name: str, case: dict[str, Any], datasets: dict[str, Any]) -> str:
    """Return how the engine differs; "" where it agrees. Which error it is does not count."""
    given = case["data"] if "data" in case else datasets.get(case.get("dataset"))
    frame = Jsonata.Frame(None)
    for variable, value in case.get("bindings", {}).items():
        frame.bind(variable, value)
    is_to_fail = "code" in case or "error" in case
    # One that is to end well may take its time: those of the suite are for a machine of its own.
    own_ms = case.get("timelimit", _LONG_MS) if is_to_fail else _LONG_MS
    limit_ms = 200 if name in TOO_SLOW else own_ms
    frame.set_runtime_bounds(limit_ms, case.get("depth", 303))
    try:
        result = jsonata_worker._plain(Jsonata.jsonata(case["expr"]).evaluate(given, frame))
    # The engine raises anything.
    except Exception as error:  # noqa: BLE001
        return "" if is_to_fail else f"{type(error).__name__}: {error}"[:300]
    if is_to_fail:
        return f"{result!r} in place of an error"[:300]
    return "" if result == case.get("result") else f"{result!r}"[:300]
