"""`pytest --cpu-seconds 20`: what the run took of the processors, and the tests that took most.

Counted is the time of the process that ran a test, and of the processes that it waited for: unlike
the time on a clock it hardly depends on what else a machine does.
"""

import resource
import time
from collections.abc import Generator

import pytest

_OF_TEST = "cpu_s"
_begun = pytest.StashKey[float]()


def used_s() -> float:
    """Return the CPU seconds of this process and of those that it started and waited for."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in each)


class CpuSeconds:
    """Of a run in one process, or of the workers that a run has."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._tests: dict[str, float] = {}
        self._workers_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        item.stash[_begun] = used_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_OF_TEST, used_s() - item.stash[_begun]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (took_s := dict(report.user_properties).get(_OF_TEST)) is not None:
            self._tests[report.nodeid] = took_s

    @pytest.hookimpl(trylast=True)  # once what the tests shared has ended
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OF_TEST] = used_s()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self._workers_s += getattr(node, "workeroutput", {}).get(_OF_TEST, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        whole = used_s()
        if self._workers_s:  # which may not have been waited for yet
            whole = self._workers_s + time.process_time()
        of_tests = sum(self._tests.values())
        terminalreporter.section(f"{whole:.0f} CPU seconds, {of_tests:.0f} of them in tests")
        dearest = sorted(self._tests.items(), key=lambda test: -test[1])
        for name, took_s in dearest[: self._shown]:
            terminalreporter.line(f"{took_s:7.2f} s  {name}")
