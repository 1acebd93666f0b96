"""The agent's whole job, once, for a person to watch; makes what it needs in `.venv` first.

scripts/demo          a virtual kit and a stand-in cloud, on this machine alone
scripts/demo --json   one JSON object a step
"""

from __future__ import annotations

import sys

import environment


def main() -> int:
    environment.ensure(environment.RUNTIME)
    return environment.run(["-m", "agent", "demo", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
