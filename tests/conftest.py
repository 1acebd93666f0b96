"""What holds for every test: nothing of the person who runs them is touched, nothing is left
running, nothing is skipped in CI, and the clauses that a test covers are known."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from agent import redact
from tests.support.harness import cpu_seconds, warm_start
from tests.support.harness.started_processes import StartedProcesses

# Started in the background of a script, we would hand an ignored Ctrl-C on to every command.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A file that a test writes is one that others may not change, wherever the tests are run.
os.umask(0o022)

# No deadline: a shared machine stalls. Derandomized where a failure must be the same everywhere.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("often", deadline=None, max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "local")


_failed = pytest.StashKey[bool]()
_FOLDERS = {
    "config": "XDG_CONFIG_HOME",
    "state": "XDG_STATE_HOME",
    "data": "XDG_DATA_HOME",
    "cache": "XDG_CACHE_HOME",
    "runtime": "XDG_RUNTIME_DIR",
}
_home = pytest.StashKey[tuple[Path, list[object]]]()
_warm = pytest.StashKey[list[warm_start.WarmStart]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Count what the tests take of the processors, where one asks for it."""
    words = "show the CPU seconds of the run and of the N tests that took most"
    parser.addoption("--cpu-seconds", type=int, metavar="N", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Have it counted in each process that runs tests."""
    if (shown := config.getoption("--cpu-seconds")) is not None:
        config.pluginmanager.register(cpu_seconds.CpuSeconds(shown))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have commands start warm, in the processes that run tests."""
    if warm_start.CAN_START and not session.config.getoption("numprocesses", None):
        session.config.stash[_warm] = warm_start.install()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the collector of garbage walk what a test made, and not each time all of the tests."""
    gc.disable()  # a quarter of the time of finding the tests, which all stay
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _limit_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return marker.args[0] if marker else 0.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what may take longest, so that at the end no process is left alone with it.

    The files of a folder are spread, too: those of one wait, those of another one compute.
    """
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: (-_limit_s(item), crc32(item.nodeid.partition("::")[0].encode()))
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the servers of the commands."""
    for server in session.config.stash.get(_warm, []):
        server.close()


@pytest.fixture(autouse=True)
def nothing_left_running(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """End what the test started, however it ends. Before all others: so it is the last to end."""
    started = StartedProcesses()
    monkeypatch.setattr(subprocess.Popen, "__init__", started.noting(subprocess.Popen.__init__))
    yield
    left = started.end()
    if left and not request.node.stash.get(_failed, False):
        pytest.fail("the test left running: " + "; ".join(left))


def _found(home: Path) -> list[object]:
    """Return each folder below a home with what is in it and with its mode."""
    return [(*folder, os.lstat(folder[0]).st_mode) for folder in os.walk(home)]


@pytest.fixture(autouse=True)
def private_home(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Point HOME, XDG_*, CELLAGENT_* and pytest's folder at one of this test's own.

    One in which the tests before left nothing serves the next: to make it takes longer than many a
    test, and most touch none.
    """
    home, new = request.config.stash.get(_home, (None, None))
    if home is None or _found(home) != new:
        home = tmp_path_factory.mktemp("home")
        for name in _FOLDERS:
            (home / name).mkdir(mode=0o700)
        request.config.stash[_home] = home, _found(home)
    for name in [name for name in os.environ if name.startswith(("CELLAGENT_", "XDG_"))]:
        if name != "CELLAGENT_REQUIRE_ALL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, variable in _FOLDERS.items():
        monkeypatch.setenv(variable, str(home / name))
    monkeypatch.setenv("CELLAGENT_STATE_DIR", str(home / "agent-state"))
    # A pytest that a test starts removes the folders of the runs before, and waits for it: minutes,
    # where these are whole runs of ours.
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(home))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return home


@pytest.fixture(autouse=True)
def no_secret_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide those of this test alone: to look for those of thousands takes most of a test's time."""
    monkeypatch.setattr(redact, "_known", set(redact._known))
    monkeypatch.setattr(redact, "_compiled", (0, None))


@pytest.fixture(autouse=True)
def only_our_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every serial device but the PTYs that a test made itself."""
    import serial

    opened = serial.Serial.open

    def guarded(port: serial.Serial) -> None:
        target = os.path.realpath(port.port or "")
        assert target.startswith("/dev/pts/"), f"a test tried to open {target}"
        opened(port)

    monkeypatch.setattr(serial.Serial, "open", guarded)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Turn a skip into a failure where everything must be there."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.stash[_failed] = True
    if (
        report.skipped
        and os.environ.get("CELLAGENT_REQUIRE_ALL")
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
        report.longrepr = f"CELLAGENT_REQUIRE_ALL is set, yet it was skipped: {report.longrepr}"


@pytest.fixture
async def standin(tmp_path: Path):
    """Run a stand-in cloud in this test's loop: see tests/support/cloud/standin.py."""
    from tests.support.cloud.standin import running_standin

    async with running_standin(tmp_path / "standin") as running:
        yield running
