"""Format, lint, strict types, dead code: warnings are errors. `--fix` mends what it can."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import environment

_ASIDE = (["scripts", "fuzz"], ["bench"], ["soak"])


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    fix = "--fix" in sys.argv[1:]
    first = [
        ["-m", "ruff", "format", *([] if fix else ["--check"]), "--quiet", "."],
        ["-m", "ruff", "check", *(["--fix"] if fix else []), "--quiet", "."],
    ]
    # mypy takes one processor for half a minute with nothing kept, so two go side by side.
    here = [
        ["-m", "mypy", "--no-error-summary"],
        # In parts, as two of them may have a module of the same name.
        *(["-m", "mypy", "--no-error-summary", *part] for part in _ASIDE),
    ]
    elsewhere = [*map(_typed_for, ("win32", "darwin")), ["scripts/dead_code.py"]]
    with ThreadPoolExecutor() as side_by_side:
        return _in_turn(first) | max(side_by_side.map(_in_turn, (here, elsewhere)))


def _in_turn(steps: list[list[str]]) -> int:
    """Run the steps, whichever fail; return 1 if one did."""
    failed = 0
    for step in steps:
        code = environment.run([*step])
        words = " ".join(word for word in step if word[0] != "-")
        print(f"{'ok  ' if code == 0 else 'FAIL'} {words}", flush=True)
        failed |= code != 0
    return failed


def _typed_for(system: str) -> list[str]:
    """Check that nothing is asked for that another system lacks, in what it runs."""
    own = ["--platform", system, "--cache-dir", f".mypy_cache/{system}", "--no-warn-unreachable"]
    return ["-m", "mypy", "--no-error-summary", *own, "at", "agent"]


if __name__ == "__main__":
    sys.exit(main())
