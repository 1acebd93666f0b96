"""Format, lint, strict types and the whole test suite, in one command.

scripts/test            everything
scripts/test -k outbox  arguments go to pytest
"""

from __future__ import annotations

import sys

import environment


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    if (code := environment.run(["scripts/check.py"])) != 0:
        return code
    return environment.run(["-m", "pytest", "-n", "auto", "--dist", "loadgroup", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
