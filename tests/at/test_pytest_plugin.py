"""The fixture that plays a recorded session, here and in another project."""

from __future__ import annotations

import sys

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.contract("C9", "C2")
async def test_the_fixture_opens_a_recorded_modem(modem_from_transcript) -> None:
    async with modem_from_transcript(
        "fixtures/transcripts/identity.transcript", strict=False
    ) as modem:
        assert (await modem.execute("AT+CGMR")).lines[0] == "mfw_nrf91x1_2.0.4"


TESTS = """
    import pytest

    async def test_plays(modem_from_transcript):
        async with modem_from_transcript("signal.transcript") as modem:
            answer = await modem.execute("AT+CESQ")
            assert answer.lines[0] == "+CESQ: 99,99,255,255,19,47"

    async def test_sends_something_else(modem_from_transcript):
        async with modem_from_transcript("signal.transcript") as modem:
            await modem.execute("AT+CGMR")

    async def test_stops_too_early(modem_from_transcript):
        async with modem_from_transcript("signal.transcript"):
            pass
"""


def test_another_project_uses_it_as_a_plugin(pytester: pytest.Pytester) -> None:
    pytester.makefile(".transcript", signal="> AT+CESQ\n< +CESQ: 99,99,255,255,19,47\n< OK\n")
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    output = result.stdout.str()
    assert "has `AT+CESQ" in output
    assert "1 step of the transcript never sent" in output
    assert output.count(f" the transcript is {pytester.path / 'signal.transcript'}") == 2


def test_the_plugin_costs_nothing_before_it_is_used(pytester: pytest.Pytester) -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import at.pytest_plugin;"
        "print(sorted({n.split('.')[0] for n in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    done = pytester.run(sys.executable, "-c", script)
    assert done.outlines == ["['at']"]
