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
    "at/__init__.py:__getattr__": "Python calls it (PEP 562)",
    "at/commands/*": "the typed commands and their answers are the driver's, for programs",
    "at/tokens/*": "what a token says, and whether its signature is right, for programs",
    "at/transport/*": "called by asyncio and by pyserial, whose classes these extend",
    "agent/cli/completion.py": "called by click",
    "agent/cli/framework/command.py:format_*": "called by click",
    "agent/cli/tree.py": "called by click",
    "agent/cloud/*": "every operation of the device cloud and what it returns, for programs",
    "agent/page/server.py:capture_signals": "called by uvicorn",
    "agent/provisioning/ca/token_keys.py:private_numbers": "cryptography's interface of a key",
    "agent/testing/kit.py": "what a test of another project does to its kit",
    "agent/standin/core/connections.py:capture_signals": "called by uvicorn",
    "agent/standin/core/connections.py:main_loop": "called by uvicorn",
}
"""Path, or path:name -> why it stays though nothing here uses it. `*` stands for anything."""

DECORATORS = ["@*.command*", "@*.group*", "@command*", "@click.*", "@pytest.*"]
"""Of functions that a framework calls."""


def findings(root: Path, allowed: dict[str, str]) -> list[str]:
    """Return a line for what nothing below `root` uses, and for what need not be allowed."""
    from vulture import Vulture

    finder = Vulture(ignore_decorators=DECORATORS)
    finder.scavenge([root / "at", root / "agent"])
    needed: set[str] = set()
    lines = []
    for item in finder.get_unused_code(min_confidence=60):
        if item.typ not in {"function", "class", "method", "property"}:
            continue  # fields of records are read by name, from outside the program
        file = item.filename.relative_to(root).as_posix()
        reasons = [
            entry
            for entry in allowed
            if fnmatch(file, entry) or fnmatch(f"{file}:{item.name}", entry)
        ]
        needed.update(reasons)
        if not reasons:
            lines.append(f"{file}:{item.first_lineno}: nothing uses the {item.typ} {item.name}")
    return lines + [f"{entry}: need not be allowed" for entry in allowed.keys() - needed]


def main() -> int:
    found = findings(ROOT, ALLOWED)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
