"""`pip install cellagent` is enough for the driver, the agent and the bench; extras say so.

The wheel is built and put into an environment that has what it asks for, by links, and no more.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent.extras import EXTRA_OF
from tests.support.commands.installations import Installation, built_wheel, closure, requirements_of
from tests.support.commands.on_a_terminal import on_a_terminal

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_ELSEWHERE = ROOT / "docs"
"""A working folder from which our own `at` and `agent` are not imported."""
_MOST = 18
"""Packages of a base installation on Linux, ours not counted (docs/decisions)."""
_VIRTUAL = ("modem", "virtual", "--instant", "--pty")
_EVERY_HELP = """
import click
from agent.cli.tree import root
def walk(command, context):
    assert command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            walk(inner, click.Context(inner, info_name=name, parent=context))
    else:
        print(context.command_path)
walk(root, click.Context(root, info_name="cellagent"))
"""


_DRIVER = """
import asyncio, importlib, pkgutil, sys
import at
needs_more = {"at.pytest_plugin", "at.transport.event_loop"}
for module in pkgutil.walk_packages(at.__path__, "at."):
    if module.name not in needs_more:
        importlib.import_module(module.name)
from at.commands.identity import ReadRevision
async def main():
    async with at.open_modem(sys.argv[1]) as modem:
        print((await modem.send(ReadRevision())).revision)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation(tmp_path_factory.mktemp("base") / "venv", closure(requirements_of(wheel)))
    made.unpack(wheel)
    return made


def run(
    installed: Installation, *words: str, folder: Path = _ELSEWHERE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installed.python), "-m", "agent", *words],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@contextmanager
def serving(python: str | Path, *words: str) -> Iterator[dict[str, object]]:
    """Run a command that stays; give its ready line."""
    server = subprocess.Popen(
        [str(python), "-m", "agent", *words],
        cwd=_ELSEWHERE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        yield json.loads(server.stdout.readline())
    finally:
        server.terminate()
        server.wait(60)
        server.stdout.close()


def test_a_base_installation_is_small(wheel: Path) -> None:
    assert len(closure(requirements_of(wheel))) <= _MOST


def test_every_command_shows_its_help_without_any_extra(base: Installation) -> None:
    shown = subprocess.run(
        [str(base.python), "-c", _EVERY_HELP], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "cellagent cloud serve" in shown.stdout.splitlines()


@pytest.mark.contract("C1")
def test_the_driver_works_with_pyserial_and_msgspec_alone(wheel: Path, tmp_path: Path) -> None:
    alone = Installation(tmp_path / "venv", closure(["pyserial", "msgspec"]))
    alone.unpack(wheel)
    with serving(sys.executable, *_VIRTUAL, str(tmp_path / "kit")) as modem:
        done = subprocess.run(
            [str(alone.python), "-c", _DRIVER, str(modem["port"])],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "mfw_nrf9" in done.stdout


def test_the_base_speaks_to_a_modem_and_keeps_its_configuration(
    base: Installation, tmp_path: Path
) -> None:
    with serving(base.python, *_VIRTUAL, str(tmp_path / "kit")) as modem:
        answer = run(base, "modem", "at", "--port", str(modem["port"]), "AT+CGMR")
        assert answer.returncode == 0, answer.stderr
        assert "mfw_nrf9" in answer.stdout
        checked = run(base, "modem", "check", "--port", str(modem["port"]), "--json")
        assert checked.returncode in {0, 1}, checked.stderr
    assert run(base, "config", "set", "kit.port", "/dev/ttyACM7").returncode == 0
    assert "/dev/ttyACM7" in run(base, "config", "show").stdout
    shown = on_a_terminal("-m", "agent", "config", "show", python=base.python, folder=_ELSEWHERE)
    assert (shown[0], b"/dev/ttyACM7" in shown[1]) == (0, True), shown
    waiting = run(base, "outbox", "list", "--json")
    assert (waiting.returncode, waiting.stderr) == (0, "")


@pytest.mark.contract("C1")
def test_the_base_provisions_locates_and_runs_against_a_service(
    base: Installation, tmp_path: Path
) -> None:
    with (
        serving(sys.executable, "cloud", "serve", "--write-profile", "standin"),
        serving(base.python, *_VIRTUAL, str(tmp_path / "kit")) as modem,
    ):
        port = str(modem["port"])
        assert run(base, "config", "set", "profile", "standin").returncode == 0
        made = run(
            base, "provision", "run", port, "--registration", "onboard", "--set-clock", "--json"
        )
        assert made.returncode == 0, made.stdout + made.stderr
        again = on_a_terminal(
            "-m", "agent", "provision", "run", port, "--registration", "onboard",
            python=base.python, folder=_ELSEWHERE,
        )  # fmt: skip
        assert (again[0], b"unchanged" in again[1]) == (0, True), again
        kept = run(base, "provision", "status", "--json")
        assert json.loads(kept.stdout.splitlines()[0])["outcome"] == "done", kept.stderr
        assert run(base, "modem", "at", "--port", port, "AT+CFUN=1").returncode == 0
        found = run(base, "locate", "--port", port, "--with", "cell", "--json")
        assert found.returncode == 0, found.stdout + found.stderr
        assert "lat" in json.loads(found.stdout.splitlines()[-1])
        with serving(base.python, "run", "--port", port, "--json") as ready:
            assert ready["ready"] is True
            assert run(base, "status", "--json").returncode == 0


_ON_A_SERVER = """\
[profiles.bench.provisioning]
ledger = "postgresql:///bench"
"""
_KEY_ON_A_TOKEN = """\
[profiles.bench.provisioning]
device_ca_file = "ca.pem"
device_ca_key_file = "pkcs11:token=ca;object=ca?module-path=/lib/token.so"
"""
_FROM_THE_KEYRING = """\
[profiles.bench.hosts]
device_cloud = "http://127.0.0.1:9"
[profiles.bench.credentials]
keyring = true
"""
_OVER_SMP = """\
[profiles.bench.kits.left]
port = "/dev/ttyACM7"
mcuboot_port = "/dev/ttyACM8"
"""
_WITH_METRICS = """\
[profiles.bench.metrics]
listen = "127.0.0.1:0"
"""
# What lacks an extra: the command, the extra, and the profile.
_ABSENT = (
    ("cloud serve", "standin", ""),
    ("cloud serve --fault help", "standin", ""),
    ("demo", "standin", ""),
    ("provision plan --all", "bench", _ON_A_SERVER),
    ("provision run --all", "bench", _ON_A_SERVER),
    ("provision status", "bench", _ON_A_SERVER),
    ("provision report", "bench", _ON_A_SERVER),
    ("provision export", "bench", _ON_A_SERVER),
    ("provision migrate", "bench", _ON_A_SERVER),
    ("provision run --all --labels labels", "bench", ""),
    ("provision plan --all --certificate operator-ca", "bench", _KEY_ON_A_TOKEN),
    ("provision run --all --certificate operator-ca", "bench", _KEY_ON_A_TOKEN),
    ("scan cells --plot -", "plot", ""),
    ("scan wifi --plot levels.png", "plot", ""),
    ("fota check", "mcuboot", _OVER_SMP),
    ("fota pull", "mcuboot", _OVER_SMP),
    ("run --port /dev/ttyACM7", "mcuboot", _OVER_SMP),
    ("run --port /dev/ttyACM7", "metrics", _WITH_METRICS),
    ("device list", "keyring", _FROM_THE_KEYRING),
    ("capture coredump --elf firmware.elf --out core.bin -", "coredump", ""),
    ("console --elf firmware.elf --port /dev/ttyACM7", "coredump", ""),
)


@pytest.mark.parametrize(("command", "extra", "profile"), _ABSENT)
def test_a_command_that_lacks_its_extra_says_which_before_it_does_anything(
    command: str,
    extra: str,
    profile: str,
    base: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configuration = tmp_path / "config.toml"
    configuration.write_text(f'profile = "bench"\n[profiles.bench]\n{profile}')
    configuration.chmod(0o600)
    (tmp_path / "firmware.elf").write_bytes(b"\x7fELF")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setenv("CELLAGENT_CONFIG", str(configuration))
    done = run(base, *command.split(), "--json", folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert error["try"] == f"`pip install 'cellagent[{extra}]'`"
    assert f"needs the extra {extra}" in error["message"]
    assert sorted(tmp_path.iterdir()) == before


def imported() -> dict[str, str]:
    """Return each module that `at` and `agent` import from elsewhere, and one that does."""
    found: dict[str, str] = {}
    for path in sorted(each for room in ("at", "agent") for each in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                top = name.partition(".")[0]
                if top not in {*sys.stdlib_module_names, "at", "agent"}:
                    found.setdefault(top, str(path.relative_to(ROOT)))
    return found


def names_of(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def test_what_is_imported_is_declared_by_name_where_it_is_needed() -> None:
    brought_by = metadata.packages_distributions()
    core = names_of(PROJECT["dependencies"])
    extras = {name: names_of(needed) for name, needed in PROJECT["optional-dependencies"].items()}
    for module, where in imported().items():
        # Its plugin: pytest itself imports it; and types that only mypy reads, which brings them.
        if module in {"pytest", "_typeshed"}:
            continue
        names = {canonicalize_name(name) for name in brought_by.get(module, [module])}
        declared = extras[EXTRA_OF[module]] if module in EXTRA_OF else core
        assert names & declared, f"{where} imports {module}, which nothing declares"
    assert {*EXTRA_OF.values()} <= {*extras}
    page = (ROOT / "docs" / "reference" / "extras.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(extras)
    everything = Requirement(PROJECT["optional-dependencies"]["all"][0])
    assert everything.extras == {*extras} - {"all"}
