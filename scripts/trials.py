"""Finds the modules of bench/ or soak/, runs them and prints their rows."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from measure import Row

ROOT = Path(__file__).resolve().parent.parent


def run(folder: str, arguments: list[str]) -> int:
    """Run the modules of `folder` that `arguments` name, all by default; 1 if a goal is missed."""
    # Started in the background of a script, we would hand an ignored Ctrl-C on to every command.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog=f"scripts/{folder}")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--smoke", action="store_true", help="short: goals are shown, not judged")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="the names, and nothing more")
    parser.add_argument("--page", action="store_true", help="write docs/reference, with a picture")
    chosen = parser.parse_args(arguments)
    modules = found(folder)
    if chosen.page and (chosen.names or chosen.smoke):
        parser.error("a page is of the whole: without names, without --smoke")
    if chosen.list:
        print("\n".join(modules))
        return 0
    if unknown := set(chosen.names) - set(modules):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(modules)}")
    failed = 0
    measured: dict[str, tuple[str, list[Row]]] = {}
    for name, module in modules.items():
        if chosen.names and name not in chosen.names:
            continue
        about = (module.__doc__ or "").splitlines()[0]
        print(f"{name}: {about}", file=sys.stderr)
        measured[name] = about, []
        for row in module.run(chosen.smoke):
            measured[name][1].append(row)
            if chosen.json:
                print(json.dumps({"name": name, **asdict(row), "ok": row.ok}), flush=True)
            else:
                print(_line(row), flush=True)
            failed += not row.ok
    if chosen.page:
        import trial_page

        print(trial_page.write(folder, measured), file=sys.stderr)
    if failed:
        told = sys.stderr if chosen.json else sys.stdout
        print(f"goals missed: {failed}" + " (smoke: not judged)" * chosen.smoke, file=told)
    return 1 if failed and not chosen.smoke else 0


def found(folder: str) -> dict[str, ModuleType]:
    """Return the modules of a folder by their NAME."""
    sys.path[:0] = [str(ROOT), str(ROOT / folder), str(ROOT / "tests" / "support")]
    modules = {}
    for path in sorted((ROOT / folder).glob("*.py")):
        module = importlib.import_module(path.stem)
        if hasattr(module, "NAME"):
            modules[module.NAME] = module
    return modules


def _line(row: object) -> str:
    from measure import Row

    assert isinstance(row, Row)
    if row.skipped:
        return f"  skip  {row.what}: {row.skipped}"
    mark = "      " if row.goal is None else "ok    " if row.ok else "MISSED"
    goal = "" if row.goal is None else f", goal {row.goal:.3g}"
    control = f" ({row.control})" if row.control else ""
    return f"  {mark}{row.what}: {row.value:.4g} {row.unit}{goal}{control}"
