"""Give each reader of foreign bytes what nobody would write: fuzz/targets.py names them.

scripts/fuzz                      the kept inputs of every target, as the tests do
scripts/fuzz NAME... --minutes N  look for new ones, N minutes for each, guided by coverage
scripts/fuzz NAME --input FILE    one input again, with its traceback
scripts/fuzz --minutes N --keep   keep the few new inputs that reach what no kept one does

New inputs are sought by atheris (libFuzzer), on Linux; it is installed into `.peers`, from a hashed
lock. Exit code 1: a target did what it does not declare. The input is then in fuzz/found, and the
command that tries it again is printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import environment

if TYPE_CHECKING:
    from targets import Target

ROOT = environment.ROOT
CORPUS = ROOT / "fuzz" / "corpus"
LOCK = environment.LOCKS / "fuzz.lock"
ATHERIS = ROOT / ".peers" / "atheris"
PATHS = [str(ROOT), str(ROOT / "fuzz")]
LONGEST_BYTES = 4096
SLOWEST_S = 10


def main(arguments: list[str]) -> int:
    sys.path[:0] = PATHS
    import targets

    parser = argparse.ArgumentParser(prog="scripts/fuzz")
    parser.add_argument("names", nargs="*", help=", ".join(targets.TARGETS))
    parser.add_argument("--minutes", type=float, help="look for new inputs, so long a target")
    parser.add_argument("--keep", action="store_true", help="with --minutes: keep what is new")
    parser.add_argument("--input", type=Path, help="one input, tried again")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - set(targets.TARGETS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    names = chosen.names or list(targets.TARGETS)
    if chosen.input:
        for name in names:
            targets.TARGETS[name].take(chosen.input.read_bytes())
        return 0
    if not chosen.minutes:
        return max(_replayed(targets.TARGETS[name]) for name in names)
    _install()
    return max(_sought(name, chosen.minutes, keep=chosen.keep) for name in names)


def kept(name: str) -> list[Path]:
    """Return the kept inputs of a target."""
    return sorted((CORPUS / name).iterdir())


def _replayed(target: Target) -> int:
    failed = 0
    began = time.perf_counter()
    for path in kept(target.name):
        try:
            target.take(path.read_bytes())
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            failed += 1
            traceback.print_exc()
            print(f"  try: scripts/fuzz {target.name} --input {path.relative_to(ROOT)}")
    took = time.perf_counter() - began
    word = "FOUND" if failed else "ok"
    print(f"{word:5} {target.name}: {len(kept(target.name))} kept inputs, {took:.1f} s")
    return 1 if failed else 0


def _sought(name: str, minutes: float, *, keep: bool) -> int:
    found = CORPUS.parent / "found"
    found.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as new:
        command = [sys.executable, __file__, "--seek", name, f"-artifact_prefix={found}/{name}-"]
        limits = [f"-timeout={SLOWEST_S}", "-rss_limit_mb=2000", f"-max_len={LONGEST_BYTES}"]
        where = [new, str(CORPUS / name)]
        print(f"      {name}: {minutes:g} min", flush=True)
        ran = subprocess.run(
            [*command, *limits, f"-max_total_time={round(minutes * 60)}", *where],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            check=False,
        )  # fmt: skip
        told = ("INFO: Seed: ", "Done ")
        runs = [
            line.removeprefix("INFO: ") for line in ran.stdout.splitlines() if line.startswith(told)
        ]
        if ran.returncode:
            lines = ran.stdout.splitlines()
            uncaught = [at for at, line in enumerate(lines) if "Uncaught" in line]
            begin = uncaught[0] if uncaught else max(0, len(lines) - 20)
            print("\n".join(lines[begin : begin + 60]))
            for path in sorted(found.glob(f"{name}-*")):
                print(f"  try: scripts/fuzz {name} --input {path.relative_to(ROOT)}")
        elif keep:
            subprocess.run(
                [*command, "-merge=1", f"-max_len={LONGEST_BYTES}", str(CORPUS / name), new],
                capture_output=True, check=True,
            )  # fmt: skip
    print(f"{'FOUND' if ran.returncode else 'ok':5} {name}: {', '.join(runs) or 'ended early'}")
    return 1 if ran.returncode else 0


def _seek(name: str, options: list[str]) -> None:
    """Be the process of libFuzzer; it does not come back."""
    sys.path[:0] = [*PATHS, str(ATHERIS)]
    import atheris

    with atheris.instrument_imports(include=["at", "agent"]):
        import targets

        targets.TARGETS[name].take(b"")  # it imports what it runs
    atheris.Setup([sys.argv[0], *options], targets.TARGETS[name].take)
    atheris.Fuzz()


def _install() -> None:
    if not ATHERIS.is_dir() and not environment.install_aside(LOCK, ATHERIS):
        sys.exit("could not install atheris: check the connection to the package index")


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    if sys.argv[1:2] == ["--seek"]:
        _seek(sys.argv[2], sys.argv[3:])
    # A profile is looked for in a home that is nobody's.
    os.environ["HOME"] = tempfile.gettempdir()
    sys.exit(main(sys.argv[1:]))
