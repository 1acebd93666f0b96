"""Run what takes too long for the test suite: thousands of faults, seeded. Exit code 1 on failure.

scripts/soak                  every module of soak/
scripts/soak NAME... --smoke  those named; short, to see that they work
scripts/soak [NAME...] --page   keep what is found, and write its page below docs/reference; goes
                              on with what was not run since the last change of code
scripts/soak --json           one object a row, for a program

A module of soak/ has `NAME` and `run(smoke)`, which yields `measure.Row`s; or `PARTS`, functions
like that, each run and kept by itself as NAME:PART.
"""

from __future__ import annotations

import sys

import environment
from trials.runner import run


def main() -> int:
    return run("soak", sys.argv[1:])


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main())
