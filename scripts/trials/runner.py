"""Finds the modules of bench/ or soak/, runs each in a process of its own, prints their rows."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from trials.measure import Row

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Trial:
    """A module, or one of its `PARTS`, which is run and kept by itself."""

    about: str
    module: str
    function: str


def run(folder: str, arguments: list[str]) -> int:
    """Run the modules of `folder` that `arguments` name, all by default; 1 if a goal is missed."""
    # Started in the background of a script, we would hand an ignored Ctrl-C on to every command.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Byte code is there for every process that a trial starts, as for an installed program.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path[:0] = [str(ROOT), str(ROOT / folder)]
    parser = argparse.ArgumentParser(prog=f"scripts/{folder}")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--smoke", action="store_true", help="short: goals are shown, not judged")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="the names, and nothing more")
    parser.add_argument("--page", action="store_true", help="keep the rows, and write their page")
    chosen = parser.parse_args(arguments)
    trials = found(folder)
    if chosen.page and chosen.smoke:
        parser.error("a page is of whole runs: without --smoke")
    if chosen.list:
        print("\n".join(trials))
        return 0
    known = {*trials, *(name.partition(":")[0] for name in trials)}
    if unknown := set(chosen.names) - known:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(trials)}")
    failed = 0
    page = None
    if chosen.page:
        from trials.page import Page  # it needs what the environment has

        page = Page(folder, list(trials))
    for name, trial in trials.items():
        if chosen.names and not {name, name.partition(":")[0]} & set(chosen.names):
            continue
        if page and name not in chosen.names and page.is_new(name):
            print(f"{name}: kept: no code has changed since it was run", file=sys.stderr)
            continue
        rows = _run(name, trial, smoke=chosen.smoke, as_json=chosen.json)
        failed += sum(not row.ok for row in rows)
        if page:
            page.keep(name, trial.about, rows)
    if failed:
        told = sys.stderr if chosen.json else sys.stdout
        print(f"goals missed: {failed}" + " (smoke: not judged)" * chosen.smoke, file=told)
    return 1 if failed and not chosen.smoke else 0


def _run(name: str, trial: Trial, *, smoke: bool, as_json: bool) -> list[Row]:
    print(f"{name}: {trial.about}", file=sys.stderr)
    rows: list[Row] = []
    for row in _rows(trial, smoke):
        rows.append(row)
        told = {"name": name, **asdict(row), "ok": row.ok}
        print(json.dumps(told) if as_json else _line(row), flush=True)
    return rows


def _rows(trial: Trial, smoke: bool) -> Iterator[Row]:
    """Run a trial where nothing counts that another has imported or left behind."""
    spawn = multiprocessing.get_context("spawn")
    ours, its = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_work, args=(trial, smoke, its))
    process.start()
    its.close()
    try:
        while True:
            yield ours.recv()
    except EOFError:
        process.join()
    if process.exitcode:
        sys.exit(process.exitcode)  # it has said why


def _work(trial: Trial, smoke: bool, rows: Connection) -> None:
    for row in getattr(importlib.import_module(trial.module), trial.function)(smoke):
        rows.send(row)


def found(folder: str) -> dict[str, Trial]:
    """Return the modules of a folder by their NAME, those with parts as NAME:PART."""
    trials = {}
    for path in sorted((ROOT / folder).glob("*.py")):
        module = ast.parse(path.read_text())
        values = {
            target.id: node.value
            for node in module.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if "NAME" not in values:
            continue
        name = ast.literal_eval(values["NAME"])
        if "PARTS" not in values:
            trials[name] = Trial(_about(module), path.stem, "run")
            continue
        functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        for part in ast.unparse(values["PARTS"]).strip("()").split(", "):
            about = _about(functions[part])
            trials[f"{name}:{part.replace('_', '-')}"] = Trial(about, path.stem, part)
    return trials


def _about(what: ast.Module | ast.FunctionDef) -> str:
    """Return what a module or a function says of itself, in a line."""
    return (ast.get_docstring(what) or "").splitlines()[0]


def _line(row: Row) -> str:
    if row.skipped:
        return f"  skip  {row.what}: {row.skipped}"
    mark = "      " if row.goal is None else "ok    " if row.ok else "MISSED"
    goal = "" if row.goal is None else f", goal {row.goal:.3g}"
    control = f" ({row.control})" if row.control else ""
    return f"  {mark}{row.what}: {row.value:.4g} {row.unit}{goal}{control}"
