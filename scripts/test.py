"""Format, lint, strict types and the whole test suite, in one command.

scripts/test            everything
scripts/test -k outbox  arguments go to pytest
"""

from __future__ import annotations

import os
import sys

import environment

# Two thirds of a test's time is waiting: for processes that start, for time limits that are tested.
PER_CPU = 3

_COMPILE = """
import contextlib, io, pytest
with contextlib.redirect_stdout(io.StringIO()):
    pytest.main(["--collect-only", "-q"])
"""


def main() -> int:
    environment.ensure(environment.DEVELOPMENT)
    if (code := environment.run(["scripts/check.py"])) != 0:
        return code
    # Each of the thousands of processes that the tests start would compile all of the project anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Nor need each of the processes that run them compile all of the tests.
    if not any((environment.ROOT / "tests" / "__pycache__").glob("test_*")):
        environment.run(["-c", _COMPILE])
    workers = str(PER_CPU * (os.cpu_count() or 1))
    return environment.run(["-m", "pytest", "-n", workers, "--dist", "worksteal", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
