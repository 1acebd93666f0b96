"""Format, lint, strict types and the whole test suite, in one command.

scripts/test            everything
scripts/test -k outbox  arguments go to pytest
"""

from __future__ import annotations

import os
import sys

import environment

# Half of the suite's time is waiting: for processes that start, for time limits that are tested.
PER_CPU = 2


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    if (code := environment.run(["scripts/check.py"])) != 0:
        return code
    # Each of the thousands of processes that the tests start would compile all of the project anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    workers = str(PER_CPU * (os.cpu_count() or 1))
    return environment.run(["-m", "pytest", "-n", workers, "--dist", "worksteal", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
