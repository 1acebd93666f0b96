"""Spoil lines that the tests of each clause run, and see whether those very tests notice.

    scripts/mutate [CLAUSE ...]     go on with the run: of these clauses, by default of all
    scripts/mutate --survivors      the same, and try those that survived once more
    scripts/mutate --write          keep what was killed and by which test in tests/mutants.tsv
    scripts/mutate --short          the short form for CI: some of tests/mutants.tsv, each with its
                                    test; a minute or two

A mutant is judged by the tests that carry the mark of its clause and run its statement, the fastest
first. Where none of them notices, those of other clauses that run it are asked, then those of its
own file: "by neighbours" says that the line is held, but by tests without the mark. How a line is
spoilt stands in scripts/mutation/mutants.py, and which lines are in draw.py there. A clause
whose tests run no line is one about the tree: entries are taken away.

What was found is kept below --state and a stopped run goes on there; what a mended test file or a
changed line makes doubtful is measured and tried again. Whoever survives is looked at: the tests
are mended, or it gets a row with its reason in tests/survivors.toml. Exit code 1 if one has none,
if a row there is out of date, or if more than 3 in 100 survive. "timed out" is told apart: there
only the time that a test may take told of the mutant.

mutmut and cosmic-ray do not do this: the one judges a mutant by every test that runs its function,
the other by one command for all; neither knows the clauses nor spoils what a subprocess runs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import signal
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import clauses
import environment
from mutation.draw import SEED, Draw, rank
from mutation.mutants import Mutant, mutants
from mutation.trees import Measured, Measurements, Tree, marked_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Judged = dict[str, Any]
"""A line of the results."""
Work = TypeVar("Work")
Result = TypeVar("Result")

_BY_NEIGHBOURS = "by neighbours"
_VERDICTS = ("killed", _BY_NEIGHBOURS, "timed out", "survived")
MOST_SURVIVORS = 0.03
_SHORT = 16
_ROOT = environment.ROOT
_RECORD = _ROOT / "tests" / "mutants.tsv"
_SURVIVORS = _ROOT / "tests" / "survivors.toml"
_FIELDS = ("file", "function", "line", "operator", "change", "nth")


class Results:
    """What became of each mutant, one line of JSON each, the last of a mutant counting."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.root = root
        rows = path.read_text().splitlines() if path.is_file() else []
        self.rows = {(row["clause"], row["mutant"]): row for row in map(json.loads, rows)}

    def get(self, clause: str, mutant: Mutant, judges: list[Measured]) -> Judged | None:
        """Return the result; none where its tests did not notice, and have changed since."""
        row = self.rows.get((clause, mutant.name))
        if (
            row
            and row["verdict"] in {"survived", _BY_NEIGHBOURS}
            and row["judges"] != self._digest(judges)
        ):
            return None
        return row

    def add(
        self, clause: str, mutant: Mutant, judges: list[Measured], verdict: str, by: str
    ) -> Judged:
        row = {
            "clause": clause, "mutant": mutant.name, "verdict": verdict, "by": by,
            "commit": _commit(), "judges": self._digest(judges),
            **{field: getattr(mutant, field) for field in _FIELDS},
        }  # fmt: skip
        self.rows[clause, mutant.name] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def _digest(self, tests: list[Measured]) -> str:
        """Return what is another as soon as there are other tests, or a file of theirs is."""
        files = sorted({test.test.partition("::")[0] for test in tests})
        content = b"".join((self.root / file).read_bytes() for file in files)
        names = "".join(sorted(test.test for test in tests)).encode()
        return hashlib.sha256(content + names).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/mutate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("clauses", nargs="*", metavar="CLAUSE")
    parser.add_argument("--state", type=Path, default=_ROOT / ".mutate", help="where it is kept")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tried at once")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--short", action="store_true")
    chosen = parser.parse_args()
    known = clauses.clauses()
    if unknown := set(chosen.clauses) - set(known):
        parser.error(f"there is no clause {', '.join(sorted(unknown))}: see tests/clauses.toml")
    if stale := _stale():
        print("tests/survivors.toml names what is not in the code (any more):", *stale, sep="\n  ")
        return 1
    # Told to end, it ends as by Ctrl-C: once what it started has ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if chosen.short:
            return _short(chosen.state)
        return _campaign(chosen, chosen.clauses or list(known))
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here")
        return 130


def _campaign(chosen: argparse.Namespace, names: list[str]) -> int:
    trees: SimpleQueue[Tree] = SimpleQueue()
    for number in range(chosen.jobs):
        tree = Tree(chosen.state / f"tree-{number}")
        tree.refresh()
        trees.put(tree)
    measurements = Measurements(chosen.state / "measured")
    measured: list[Measured] = []
    with _pool(chosen.jobs) as pool:
        files = marked_files(tree.folder)
        for number, tests in enumerate(pool.map(_in_a_tree(trees, measurements.of), files), 1):
            print(f"\rmeasured {number} of {len(files)} test files", end="", flush=True)
            measured += tests
    print()
    for test in measured:
        if test.outcome not in {"passed", "skipped"}:
            print(f"left out, since it {test.outcome} without a mutant: {test.test}")
    draw = Draw(measured, tree.folder)
    drawn = [(clause, one) for clause in clauses.clauses() for one in draw.of(clause)]
    drawn = [(clause, one) for clause, one in drawn if clause in names]
    results = Results(chosen.state / "results.jsonl", tree.folder)

    def judge(work: tuple[str, Mutant], tree: Tree) -> Judged:
        clause, one = work
        tests = draw.judges(clause, one)
        row = results.get(clause, one, tests)
        if row and not (chosen.survivors and row["verdict"] == "survived"):
            return row
        verdict, by = tree.judge(one, tests)
        if verdict == "survived" and (others := draw.neighbours(clause, one)):
            verdict, by = tree.judge(one, others)
            verdict = _BY_NEIGHBOURS if verdict == "killed" else verdict
        return results.add(clause, one, tests, verdict, by)

    with _pool(chosen.jobs) as pool:
        judged = enumerate(pool.map(_in_a_tree(trees, judge), drawn), 1)
        rows = [_shown(row, f"{number}/{len(drawn)}") for number, row in judged]
    if chosen.write:
        _write(rows)
    return _told(rows)


@contextmanager
def _pool(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Hold a pool that, interrupted, drops what waits; what runs comes to its end."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _in_a_tree(
    trees: SimpleQueue[Tree], work: Callable[[Work, Tree], Result]
) -> Callable[[Work], Result]:
    """Return a function that does a work in whatever tree is free."""

    def run(one: Work) -> Result:
        tree = trees.get()
        try:
            return work(one, tree)
        finally:
            trees.put(tree)

    return run


def _shown(row: Judged, place: str) -> Judged:
    print(f"{place} {row['clause']} {row['verdict']}: {row['mutant']}", flush=True)
    if row["by"]:
        print(f"    {row['by']}", flush=True)
    return row


def _told(rows: list[Judged]) -> int:
    """Print the figures of each clause and what is left to do; return the exit code."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        verdicts[row["clause"]][row["verdict"]] += 1
    print(f"\n| clause | mutants | {' | '.join(_VERDICTS)} |\n|---{'|---' * 5}|")
    total = sum(verdicts.values(), Counter())
    for clause, counts in {**verdicts, "all": total}.items():
        kinds = (str(counts[kind]) for kind in _VERDICTS)
        print(f"| {clause} | {counts.total()} | {' | '.join(kinds)} |")
    accepted = {tuple(row[field] for field in clauses.ACCEPTED) for row in _accepted()}
    alone = [
        row
        for row in rows
        if row["verdict"] == "survived" and tuple(row[f] for f in clauses.ACCEPTED) not in accepted
    ]
    print(f"\nseed {SEED}, {_commit()}")
    for row in alone:
        print(f"{row['clause']}: survived without a reason: {row['mutant']}")
    return int(bool(alone) or total["survived"] > MOST_SURVIVORS * total.total())


def _accepted() -> list[Judged]:
    if not _SURVIVORS.is_file():
        return []
    rows: list[Judged] = tomllib.loads(_SURVIVORS.read_text()).get("survivor", [])
    return rows


def _stale() -> list[str]:
    """Return the rows of accepted survivors that fit no line of the code."""
    return [
        " | ".join(row[field] for field in clauses.ACCEPTED)
        for row in _accepted()
        if not any(
            (one.line, one.operator, one.change) == (row["line"], row["operator"], row["change"])
            for one in _mutants_of(row["file"])
        )
    ]


def _mutants_of(file: str) -> list[Mutant]:
    path = _ROOT / file
    # A file that is removed whole is a mutant, too; it has none within.
    return mutants(file, path.read_bytes()) if path.suffix == ".py" and path.is_file() else []


def _write(rows: list[Judged]) -> None:
    with _RECORD.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["clause", *_FIELDS, "verdict", "by"])
        for row in rows:
            writer.writerow(
                [row["clause"], *(row[field] for field in _FIELDS), row["verdict"], row["by"]]
            )


def _short(state: Path) -> int:
    """Try some of the recorded mutants again, each with the test that noticed it."""
    with _RECORD.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    rows = [row for row in rows if row["verdict"] == "killed" and "::" in row["by"]]
    rows.sort(key=lambda row: rank("short", "".join(row[field] for field in _FIELDS)))
    chosen: list[tuple[Mutant, Measured]] = []
    for row in rows:
        known = (one for one in _mutants_of(row["file"]) if _is_of(one, row))
        mutant = next(known, None)
        test = row["by"].partition("[")[0]
        if mutant and _is_there(test) and len(chosen) < _SHORT:
            chosen.append((mutant, Measured(test, [row["clause"]], "passed", 1)))
    if len(chosen) < _SHORT:
        print(f"only {len(chosen)} recorded mutants fit the code: scripts/mutate --write")
        return 1
    tree = Tree(state / "tree-short")
    tree.refresh()
    verdict, by = tree.fails({test.test: test for _, test in chosen}.values())
    if verdict != "survived":
        print(f"without a mutant: {verdict} {by}")
        return 1
    unnoticed = 0
    for number, (mutant, test) in enumerate(chosen, 1):
        verdict, _ = tree.judge(mutant, [test])
        print(f"{number}/{_SHORT} {verdict}: {mutant.name}\n    {test.test}", flush=True)
        unnoticed += verdict == "survived"
    return int(unnoticed > 0)


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = _ROOT / file
    return path.is_file() and f"def {name.rpartition('::')[2]}(" in path.read_text()


def _is_of(mutant: Mutant, row: dict[str, str]) -> bool:
    return all(str(getattr(mutant, field)) == row[field] for field in _FIELDS)


def _commit() -> str:
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip()


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main())
