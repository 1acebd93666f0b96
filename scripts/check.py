"""Format, lint, strict types, dead code: warnings are errors. `--fix` mends what it can."""

from __future__ import annotations

import sys

import environment

_ASIDE = (["scripts", "fuzz"], ["bench"], ["soak"])


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    fix = "--fix" in sys.argv[1:]
    steps: list[list[str]] = [
        ["-m", "ruff", "format", *([] if fix else ["--check"]), "--quiet", "."],
        ["-m", "ruff", "check", *(["--fix"] if fix else []), "--quiet", "."],
        ["-m", "mypy", "--no-error-summary"],
        *(_typed_for(system) for system in ("win32", "darwin")),
        # In parts, as two of them may have a module of the same name.
        *(["-m", "mypy", "--no-error-summary", *part] for part in _ASIDE),
        ["scripts/dead_code.py"],
    ]
    failed = 0
    for step in steps:
        code = environment.run(list(step))
        print(
            f"{'ok  ' if code == 0 else 'FAIL'} {' '.join(word for word in step if word[0] != '-')}"
        )
        failed |= code
    return failed


def _typed_for(system: str) -> list[str]:
    """Check that nothing is asked for that another system lacks, in what it runs."""
    own = ["--platform", system, "--cache-dir", f".mypy_cache/{system}", "--no-warn-unreachable"]
    return ["-m", "mypy", "--no-error-summary", *own, "at", "agent"]


if __name__ == "__main__":
    sys.exit(main())
