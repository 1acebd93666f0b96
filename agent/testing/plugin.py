"""The pytest plugin: fixtures, options, marks. `pytest_plugins = ["agent.testing.plugin"]`.

    def test_reads_the_signal(modem_sync):
        assert modem_sync.execute("AT+CESQ").ok

Where the kit comes from is a switch: `--cellagent-kit=virtual | replay | record | PORT`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent.errors import AgentError, UsageError
from agent.testing.choice import KitChoice, NotRecorded, RecordMode, kit_choice, kit_wish
from at.protocol.errors import TranscriptError

if TYPE_CHECKING:
    from agent.testing.async_modem import AsyncModem
    from agent.testing.bench import TestBench
    from agent.testing.cloud import StandInCloud
    from agent.testing.console import Console
    from agent.testing.kit import Kit
    from agent.testing.loop_thread import LoopThread
    from agent.testing.modem import SyncModem
    from at.driver.modem import Modem

_BENCH = pytest.StashKey["TestBench"]()
_MODEM: pytest.StashKey[AsyncModem] = pytest.StashKey()
_THREAD = pytest.StashKey["LoopThread"]()
_PASSED = pytest.StashKey[bool]()
_CLOUD = pytest.StashKey["StandInCloud"]()
_LEFT, _AGAIN = pytest.StashKey[bool](), pytest.StashKey[bool]()
_CHOICE = pytest.StashKey[KitChoice]()
_MATRIX, _FAULT, _PROPERTY = "virtual faults", "cellagent_fault", "cellagent.fault"
KIT_VARIABLE, RECORD_VARIABLE = "CELLAGENT_TEST_KIT", "CELLAGENT_TEST_RECORD"


@pytest.hookimpl
def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch, as an option and in the configuration of pytest."""
    group = parser.getgroup("cellagent", "cellagent: where the kit of a test comes from")
    group.addoption(
        "--cellagent-kit",
        action="append",
        default=[],
        metavar="KIT",
        help="virtual (usual), replay, record, or a port: PORT[,console=PORT][,slot=N]...",
    )
    group.addoption(
        "--cellagent-record",
        default="",
        metavar="MODE",
        help="none (replay only), once, new or all: what is recorded of the kit",
    )
    parser.addini("cellagent_kit", "as --cellagent-kit, one a line", type="linelist")
    parser.addini("cellagent_record", "as --cellagent-record", default="")


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks; read the switch once, so that a slip of it ends the run at once."""
    config.addinivalue_line(
        "markers",
        "kit(model=, firmware=, slot=, dialect=, registered=, real_time=, source=): "
        "the kit that a test wants",
    )
    config.addinivalue_line("markers", "kit_fault(NAME[=ARG], ...): faults of its virtual kit")
    config.addinivalue_line("markers", "cloud_fault(FAULT, ...): faults of the stand-in cloud")
    config.addinivalue_line(
        "markers", "kit_matrix('virtual faults'): run once under each fault of the virtual kit"
    )
    try:
        _choice(config)
    except AgentError as error:
        raise pytest.UsageError(f"{error} ({error.hint})" if error.hint else str(error)) from None


def _choice(config: pytest.Config) -> KitChoice:
    if (known := config.stash.get(_CHOICE, None)) is None:
        known = config.stash[_CHOICE] = kit_choice(*_words(config))
    return known


def _words(config: pytest.Config) -> tuple[Sequence[str], str]:
    """Return where kits come from, and the mode of recording, as they are configured."""
    words = (
        config.getoption("--cellagent-kit")
        or shlex.split(os.environ.get(KIT_VARIABLE, ""))
        or config.getini("cellagent_kit")
    )
    mode = (
        config.getoption("--cellagent-record")
        or os.environ.get(RECORD_VARIABLE, "")
        or config.getini("cellagent_record")
    )
    return words, mode


def _thread(config: pytest.Config) -> LoopThread:
    if (known := config.stash.get(_THREAD, None)) is None:
        from agent.testing.loop_thread import LoopThread

        known = config.stash[_THREAD] = LoopThread()
        config.add_cleanup(known.close)
    return known


def _bench(request: pytest.FixtureRequest) -> TestBench:
    """Return the bench of a test, made by the first of its fixtures and closed behind it.

    It is no fixture itself: each costs a replay a part of what it takes.
    """
    item: pytest.Item = request.node
    if (known := item.stash.get(_BENCH, None)) is not None:
        return known
    from agent.testing.bench import TestBench
    from agent.testing.paths import folder_of, transcript_of

    marks = [_named(mark) for mark in item.iter_markers("kit")]
    sources = [str(mark.pop("source")) for mark in marks if "source" in mark]
    faults = [name for mark in item.iter_markers("kit_fault") for name in mark.args]
    choice = _choice(request.config)
    if sources:
        choice = kit_choice(shlex.split(sources[0]))
        if choice.mode is RecordMode.LIVE:  # else a switch of recordings must not override it
            choice = kit_choice(shlex.split(sources[0]), _words(request.config)[1])
    if item.stash.get(_AGAIN, False) and choice.mode is RecordMode.NEW:
        choice = KitChoice(choice.kits, RecordMode.ALL)
    wish = kit_wish(marks, faults)
    thread, tell = _thread(request.config), functools.partial(_tell, item)
    bench = TestBench(transcript_of(item), choice, wish, thread, folder_of(item), tell)
    bench.is_by_hand = bool(sources) and choice.mode is RecordMode.NONE
    item.stash[_BENCH] = bench
    request.addfinalizer(lambda: bench.close(passed=item.stash.get(_PASSED, False)))
    return bench


def _tell(item: pytest.Item, text: str) -> None:
    """Tell the person at the terminal, also where pytest captures what is written there."""
    capture = item.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        sys.stderr.write(f"\n{item.nodeid}: {text}\n")
        sys.stderr.flush()


def _named(mark: pytest.Mark) -> dict[str, object]:
    """Return what a mark says by name. Raises UsageError where it says more."""
    if mark.args:
        raise UsageError(
            f"the mark {mark.name} takes no {mark.args[0]!r} without a name",
            hint="write model= before it, or what else it is",
        )
    return dict(mark.kwargs)


@pytest.fixture
def modem(request: pytest.FixtureRequest) -> Modem:
    """Return the driver's modem for a coroutine, on whose event loop it is opened."""
    from agent.testing.async_modem import AsyncModem

    made = request.node.stash[_MODEM] = AsyncModem(_bench(request))
    return made.modem


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Open the modem before a fixture that is a coroutine; note one that may use it at its end."""
    bench, fixture = request.node.stash.get(_BENCH, None), fixturedef.func
    if bench is None:
        made = yield
        bench = request.node.stash.get(_BENCH, None)
        if bench is not None and fixturedef.argname not in bench.users:
            bench.users.add(fixturedef.argname)  # it has asked for one of ours by its name
            bench.ends_late = True
        return made
    is_generator = inspect.isgeneratorfunction(fixture) or inspect.isasyncgenfunction(fixture)
    if bench.users.intersection(fixturedef.argnames):
        bench.users.add(fixturedef.argname)
        bench.ends_late |= is_generator or "request" in fixturedef.argnames  # for a finalizer
    is_coroutine = inspect.iscoroutinefunction(fixture) or inspect.isasyncgenfunction(fixture)
    modem = request.node.stash.get(_MODEM, None)
    if modem is None or not is_coroutine:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixturedef, "func", modem.around_fixture(fixture))
        return (yield)


@pytest.fixture
def modem_sync(request: pytest.FixtureRequest) -> Iterator[SyncModem]:
    """Return a modem for a test that is a plain function."""
    from agent.testing.modem import SyncModem

    bench, thread = _bench(request), _thread(request.config)
    with contextlib.ExitStack() as stack:
        is_free = stack.enter_context(thread.virtual_clock()) if bench.has_virtual_time else None
        opened = SyncModem(bench.transport("modem_sync", is_free), thread)
        stack.callback(opened.close)
        stack.callback(bench.end)  # what closing sends is no part of the session
        yield opened


@pytest.fixture
def kit_port(request: pytest.FixtureRequest) -> str:
    """Return the name of the AT port, for any program that opens a serial port."""
    return _bench(request).port()


@pytest.fixture
def console(request: pytest.FixtureRequest) -> Console:
    """Return the kit's console: `console.expect(pattern, timeout_s)`."""
    return _bench(request).console()


@pytest.fixture
def kit(request: pytest.FixtureRequest) -> Kit:
    """Return the kit: power, reset, cable, faults, place."""
    return _bench(request).kit()


@pytest.fixture
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandInCloud]:
    """Return both services, on loopback, with made-up credentials. Needs `cellagent[standin]`."""
    from agent.extras import STANDIN, require

    require("the fixture cloud", *STANDIN)
    from agent.testing.cloud import StandInCloud
    from agent.testing.loop_thread import LoopThread

    faults = [name for mark in request.node.iter_markers("cloud_fault") for name in mark.args]
    folder = tmp_path_factory.mktemp("cloud")
    # A thread of its own: its connections stop no virtual time.
    with (
        contextlib.closing(LoopThread()) as thread,
        contextlib.closing(StandInCloud(folder, faults, thread)) as serving,
    ):
        request.node.stash[_CLOUD] = serving
        yield serving


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Open the modem of a coroutine; end the session with the test.

    So a divergence that the test swallowed fails it.
    """
    bench, modem = item.stash.get(_BENCH, None), item.stash.get(_MODEM, None)
    try:
        with pytest.MonkeyPatch.context() as patch:
            if modem is not None:
                assert isinstance(item, pytest.Function)
                patch.setattr(item, "obj", modem.around_test(item.obj))
            yield
    finally:
        if bench is not None and not bench.ends_late:
            bench.end()


@pytest.hookimpl
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the mark `kit_matrix` once under each fault of the virtual kit."""
    marks = list(metafunc.definition.iter_markers("kit_matrix"))
    if not marks:
        return
    if marks[0].args != (_MATRIX,):
        raise pytest.UsageError(f"kit_matrix knows {_MATRIX!r} alone, not {marks[0].args}")
    from at.virtual.faults import FAULTS

    metafunc.fixturenames.append(_FAULT)
    metafunc.parametrize(
        _FAULT, [pytest.param(name, marks=pytest.mark.kit_fault(name)) for name in FAULTS]
    )


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show which faults a test of a matrix survived."""
    ends: dict[str, dict[str, list[str]]] = {}  # of each test, its faults by outcome
    for outcome in ("passed", "xfailed"):
        for report in terminalreporter.getreports(outcome):
            fault = dict(report.user_properties).get(_PROPERTY)
            if fault is not None:
                test = ends.setdefault(report.nodeid.partition("[")[0], {})
                test.setdefault(outcome, []).append(str(fault))
    for name, found in ends.items():
        survived, fell = found.get("passed", []), found.get("xfailed", [])
        count = f"{len(survived)} of {len(survived + fell)}"
        terminalreporter.section(f"{name} survives {count} faults")
        for each in fell:
            terminalreporter.line(f"not {each}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Record a test anew whose recording no longer fits, where that is asked for."""
    if _choice(item.config).mode is not RecordMode.NEW:
        return None
    runner = item.config.pluginmanager.get_plugin("runner")
    assert runner is not None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    properties = [*item.user_properties]
    reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
    if item.stash.get(_LEFT, False):
        item.stash[_AGAIN] = True
        item.user_properties[:] = properties  # what the first run noted is not of this one
        reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a person where the session left its recording, without frames of ours."""
    bench = item.stash.get(_BENCH, None)
    ours = bench is not None or "cloud" in getattr(item, "fixturenames", ())
    error = call.excinfo.value if call.excinfo is not None else None
    is_skipped = isinstance(error, pytest.skip.Exception)
    if ours and call.excinfo is not None:
        _rewrite(item, call)
    callspec = getattr(item, "callspec", None)
    fault = callspec.params.get(_FAULT) if callspec is not None else None
    if call.when == "call" or (call.when == "setup" and call.excinfo is not None):
        if fault is not None:
            item.user_properties.append((_PROPERTY, fault))
        _attach_or_tell(item, call, failed=error is not None and not is_skipped)
    report = yield
    if bench is None:
        return report
    if fault is not None:
        _judge_fault(item, report, fault, error)
    if report.when == "call":
        # What a test asked before it skipped itself is asked on a replay, too.
        item.stash[_PASSED] = report.passed or is_skipped
        _show_session(item, report, bench)
    elif report.when == "teardown":
        # It may run once more; and the sessions of all tests are much memory.
        del item.stash[_BENCH]
        item.stash[_PASSED] = False
        if _MODEM in item.stash:
            del item.stash[_MODEM]
    return report


def _judge_fault(
    item: pytest.Item, report: pytest.TestReport, fault: str, error: BaseException | None
) -> None:
    """Report a test of a matrix as skipped where its fault made it fail, or was never recorded."""
    if isinstance(error, NotRecorded):
        reason = f"not recorded: it did not survive {fault} then, or was not run"
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, reason)
    elif report.failed and not _is_slip(error):
        report.outcome, report.wasxfail = "skipped", f"does not survive {fault}"


def _show_session(item: pytest.Item, report: pytest.TestReport, bench: TestBench) -> None:
    """Add to a report what was played of a recording, and what the kit printed."""
    if report.failed and (recorded := bench.recorded_text):
        played = f"{recorded}\n\n{_way_out(item)}"
        report.sections.append(("what was played of the recording", played))
    if bench.console_text:
        report.sections.append(("console of the kit", bench.console_text))


def _is_slip(error: BaseException | None) -> bool:
    """Return whether a test of a matrix failed for another reason than its fault."""
    return getattr(error, "kind", "") == UsageError.kind or isinstance(error, TranscriptError)


def _attach_or_tell(item: pytest.Item, call: pytest.CallInfo[None], *, failed: bool) -> None:
    """Attach the files of a test; raised, a failure of that would end the run without a report."""
    try:
        _attach(item, failed=failed)
    except (OSError, TranscriptError) as error:
        text = f"what {item.nodeid} has beside the report is not whole: {error}"
        try:
            item.warn(pytest.PytestWarning(text))
        except pytest.PytestWarning as told:  # where warnings are errors, the test has failed
            call.excinfo = call.excinfo or pytest.ExceptionInfo.from_exception(told)


def _attach(item: pytest.Item, *, failed: bool) -> None:
    """Note in the report of JUnit where the kit came from; write the files beside it."""
    bench, cloud = item.stash.get(_BENCH, None), item.stash.get(_CLOUD, None)
    if bench is not None:
        item.user_properties.append(("cellagent.kit", bench.source_name))
        if bench.file.exists() or (bench.records and not failed):  # it is kept when the test ends
            item.user_properties.append(("cellagent.transcript", str(bench.file)))
    if bench is None and cloud is None:
        return
    from agent.testing.paths import folder_of

    folder = folder_of(item)
    if folder is None:
        return
    from agent.testing.attachments import attach

    if bench is not None:
        bench.attach_session(failed=failed)
    console = bench.console_text if bench is not None else ""
    attach(folder, console=console, requests=cloud.seen if cloud is not None else ())
    if folder.exists():
        item.user_properties.append(("cellagent.files", str(folder)))


def _rewrite(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    from agent.testing.failure import error_of_ours, for_a_person

    assert call.excinfo is not None
    error = error_of_ours(call.excinfo.value)
    if error is not None:
        if isinstance(error, TranscriptError):
            item.stash[_LEFT] = True
        shown = for_a_person(error, _way_out(item))
        call.excinfo = pytest.ExceptionInfo.from_exception(shown)


def _way_out(item: pytest.Item) -> str:
    """Return what to do about a recording that no longer fits: a command, as it is pasted."""
    bench = item.stash.get(_BENCH, None)
    if bench is not None and bench.is_by_hand:
        return "the transcript is written by hand: correct it, or the test"
    file = os.path.relpath(item.path, item.config.invocation_params.dir)
    test = f"{file}::{item.nodeid.partition('::')[2]}"
    return f"to record it anew: pytest {shlex.quote(test)} --cellagent-record=all"
