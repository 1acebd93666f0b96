"""Format, lint, strict types, dead code: warnings are errors. `--fix` mends what it can."""

from __future__ import annotations

import sys

import environment


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    fix = "--fix" in sys.argv[1:]
    steps: list[list[str]] = [
        ["-m", "ruff", "format", *([] if fix else ["--check"]), "--quiet", "."],
        ["-m", "ruff", "check", *(["--fix"] if fix else []), "--quiet", "."],
        ["-m", "mypy", "--no-error-summary"],
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


if __name__ == "__main__":
    sys.exit(main())
