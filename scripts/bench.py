"""Measure the speed goals, each beside a control in the same run. Exit code 1 where one fails.

scripts/bench                 every module of bench/
scripts/bench NAME... --smoke those named; short, to see that they work
scripts/bench [NAME...] --page  keep what is found, and write its page below docs/reference; goes
                              on with what was not run since the last change of code
scripts/bench --json          one object a row, for a program

A module of bench/ has `NAME` and `run(smoke)`, which yields `measure.Row`s; or `PARTS`, functions
like that, each run and kept by itself as NAME:PART.
"""

from __future__ import annotations

import sys

import environment
from trials.runner import run


def main() -> int:
    return run("bench", sys.argv[1:])


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main())
