"""A board that breaks a limit of the profile is refused with the figure, before a write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.config.hints import pasteable
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.limits import Limit, Quantity, judge
from agent.provisioning.boards.modem_board import ModemBoard
from at.commands.functional_mode import SetFunctionalMode
from at.driver.modem import Modem
from at.protocol.errors import AtError, CommandRejected, ParseError
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.virtual_tray import GOAL, Tray, provision, station_of

SUPPLY = Limit(Quantity.SUPPLY, 3300, 5500)
TEMPERATURE = Limit(Quantity.TEMPERATURE, -10, 60)
RSRP = Limit(Quantity.RSRP, -125)
SIM = Limit(Quantity.SIM, 1)
ALL = (SUPPLY, TEMPERATURE, RSRP, SIM)


class Listening(ModemBoard):
    """A board that keeps the quantities that it was asked for."""

    def __init__(self, modem: Modem) -> None:
        super().__init__(modem)
        self.asked: list[Quantity] = []

    async def measure(self, quantity: Quantity) -> int | None:
        self.asked.append(quantity)
        return await super().measure(quantity)


@asynccontextmanager
async def board(mode: int, *faults: str) -> AsyncIterator[Listening]:
    modem = Modem(VirtualTransport(instant=True, faults=faults))
    await modem.open()
    try:
        if mode:
            await modem.send(SetFunctionalMode(mode))
            await modem.send(SetFunctionalMode(mode))  # by now the first has found its cell
        yield Listening(modem)
    finally:
        await modem.close()


async def test_a_board_within_its_limits_tells_its_figures() -> None:
    async with board(1) as kit:
        judged = await judge(kit.measure, 1, ALL, kit.cause)
    assert (judged.refusal, judged.hint) == ("", "")
    assert judged.readings.startswith("supply voltage 5054 mV, temperature 24 °C, RSRP -1")
    assert judged.readings.endswith(" dBm, SIM ready")


@pytest.mark.parametrize(
    ("fault", "limit", "reason"),
    [
        ("supply=2900", SUPPLY, "2900 mV, and the limit is supply voltage at least 3300 mV and at"),
        ("supply=5501", SUPPLY, "supply voltage 5501 mV, and the limit is"),
        ("temperature=-11", TEMPERATURE, "temperature -11 °C, and the limit is temperature at le"),
        ("temperature=61", TEMPERATURE, "temperature 61 °C, and the limit is"),
        ("weak-signal=30", RSRP, "at least -125 dBm; The signal is very weak: RSRP -151 dBm"),
        ("no-cells", RSRP, "RSRP at least -125 dBm; The modem searches LTE-M alone"),
        ("no-sim", SIM, "SIM not ready, and the limit is a SIM that is ready; The modem sees no"),
    ],
)  # fmt: skip
async def test_each_limit_that_is_broken_is_told_with_the_figure(
    fault: str, limit: Limit, reason: str
) -> None:
    async with board(1, fault) as kit:
        judged = await judge(kit.measure, 1, [limit], kit.cause)
    assert reason in judged.refusal
    assert judged.hint


async def test_all_that_is_wrong_is_told_at_once() -> None:
    async with board(1, "supply=2900", "no-sim") as kit:
        judged = await judge(kit.measure, 1, ALL, kit.cause)
    supply, sim, cause = judged.refusal.split("; ")
    assert "2900 mV" in supply
    assert "SIM not ready" in sim
    assert cause == "The modem sees no SIM"


@pytest.mark.parametrize("mode", [0, 4])
async def test_what_needs_the_radio_is_refused_where_that_is_off_and_told_how_to_turn_it_on(
    mode: int,
) -> None:
    async with board(mode) as kit:
        judged = await judge(kit.measure, mode, ALL, kit.cause)
        assert kit.asked == [Quantity.SUPPLY, Quantity.TEMPERATURE]
    assert f"RSRP cannot be read in functional mode {mode}, and the limit is" in judged.refusal
    assert f"SIM cannot be read in functional mode {mode}" in judged.refusal
    pasted = pasteable(judged.hint, "", "/dev/ttyACM0")
    assert "`cellagent modem on --port /dev/ttyACM0`" in pasted


@given(value=st.integers(-200, 9000), least=st.integers(-200, 9000), most=st.integers(-200, 9000))
def test_a_bound_itself_is_kept_and_what_is_beyond_it_is_not(
    value: int, least: int, most: int
) -> None:
    limit = Limit(Quantity.SUPPLY, least, most)
    assert (limit.breach(value) == "") == (least <= value <= most)
    assert (Limit(Quantity.SUPPLY, least).breach(value) == "") == (least <= value)
    assert (Limit(Quantity.SUPPLY, most=most).breach(value) == "") == (value <= most)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ParseError("%XVBAT: vbat is missing"), "cannot be read: %XVBAT: vbat is missing"),
        (CommandRejected("AT%XVBAT: ERROR"), "cannot be read: "),
    ],
    ids=["garbled", "refused"],
)
async def test_an_answer_that_cannot_be_read_breaks_the_limit(
    error: AtError, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with board(1) as kit:

        async def unreadable(_quantity: Quantity) -> int | None:
            raise error

        monkeypatch.setattr(kit, "measure", unreadable)
        judged = await judge(kit.measure, 1, [SUPPLY], kit.cause)
    assert f"supply voltage {says}" in judged.refusal
    assert "and the limit is supply voltage at least 3300 mV" in judged.refusal


async def test_a_refused_board_is_not_written_to_and_a_rerun_does_it(
    standin: StandIn, tmp_path: Path
) -> None:
    goal = replace(GOAL, limits=(SUPPLY, TEMPERATURE))
    async with station_of(standin, tmp_path, goal) as station:
        weak = Tray(tmp_path, faults=("supply=2900",))
        [refused] = await provision(station, weak, 1)
        assert (refused.outcome, refused.step, refused.exit) == ("refused", "limits", 4)
        assert "2900 mV" in refused.reason
        assert "provisioning.limits" in refused.hint
        assert weak.transports["board0"].modem.kit.saved.writes == 0
        [done] = await provision(station, Tray(tmp_path), 1)
        assert (done.outcome, done.reason) == ("done", "")
        steps = await station.ledger.call(lambda ledger: ledger.steps(done.uuid))
        assert ("limits", "done", "supply voltage 5054 mV, temperature 24 °C") in [
            (one.step, one.state, one.detail) for one in steps
        ]
        # What is right already is left alone, and asked nothing.
        [again] = await provision(station, weak, 1)
        assert (again.outcome, again.reason) == ("unchanged", "")


async def test_without_a_limit_nothing_is_read(standin: StandIn, tmp_path: Path) -> None:
    tray, boards = Tray(tmp_path), []

    @asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as kit:
            boards.append(Listening(kit._modem))
            yield boards[-1]

    from agent.provisioning.running.batch import run_board

    for limits, asked in ((), []), ((TEMPERATURE,), [Quantity.TEMPERATURE]):
        async with station_of(standin, tmp_path, replace(GOAL, limits=limits)) as station:
            [location] = tray.locations(1)
            done = await run_board(location, station, opened, lambda *_: None)
            assert done.ok
            assert boards[-1].asked == asked
        (tmp_path / "board0.json").unlink()
        (tmp_path / "ledger.sqlite").unlink()
