"""Name what no code of `at` and `agent` uses: functions, classes, methods and properties.

What is used by tests alone counts as unused. The allow-list below names what a program from outside
uses, with the reason; a name that it need not hold is named, too.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ALLOWED = {
    "at/commands/*": "typed commands and their answers are what the driver offers by itself",
}
"""Path, or path:name -> why it stays. Both may hold wildcards."""

DECORATORS = ["@*.command*", "@*.group*", "@command*", "@click.*", "@pytest.*"]
"""Of functions that a framework calls."""


def main() -> int:
    from vulture import Vulture

    finder = Vulture(ignore_decorators=DECORATORS)
    finder.scavenge([ROOT / "at", ROOT / "agent"])
    needed, dead = set(), []
    for item in finder.get_unused_code(min_confidence=60):
        if item.typ not in {"function", "class", "method", "property"}:
            continue  # fields of records are read by name, from outside the program
        place = f"{item.filename.relative_to(ROOT).as_posix()}:{item.name}"
        allowed = {
            entry for entry in ALLOWED if fnmatch(place, entry) or fnmatch(place, f"{entry}:*")
        }
        needed |= allowed
        if not allowed:
            dead.append(f"{place} (line {item.first_lineno}): nothing uses this {item.typ}")
    dead += [f"{entry}: need not be allowed" for entry in ALLOWED.keys() - needed]
    sys.stdout.write("".join(f"{line}\n" for line in dead))
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main())
