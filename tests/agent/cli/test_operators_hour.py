"""An operator's hour at a tray of 16, played fast: scanner, bad boards, a swap, a lost ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent.provisioning.ledger import RunRecord
from agent.provisioning.ledger.listing import Listing, RecordFilter
from tests.support.provisioning.cable import Cable, cables
from tests.support.provisioning.kit_faults import BEFORE_THE_KEY
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there
from tests.support.provisioning.tray_trial import Trial, slot_of, tray_trial
from tests.support.provisioning.typed_bench import TypedBench, typed_bench

SIXTEEN = range(16)
BAD = {2: "cmng-refused=514", 7: "memory-full", 12: "old-firmware=mfw_nrf91x1_1.2.8"}
SWAPPED, ANOTHER = 15, 90


def label_of(number: int) -> str:
    return f"AB{number:06}"


def scanned(bench: TypedBench, text: str, says: str) -> None:
    bench.type(f"{text}\n")
    bench.until(says)


@contextmanager
def sixteen_kits(folder: Path) -> Iterator[tuple[Trial, Cable]]:
    """Serve the tray with its ledger on a server; the last kit hangs on a cable of ours."""
    try:
        with (
            postgres_if_there() as server,
            tray_trial(folder, SIXTEEN, server=server, faults=BAD) as trial,
            cables() as cable,
        ):
            link, config = folder / "cable", folder / "config" / "config.toml"
            ours = config.read_text().replace(
                'registration = "onboard"',
                'registration = "onboard"\nlabel_pattern = "[A-Z]{2}[0-9]{6}"',
            )
            config.write_text(f'{ours}"{link}" = "{slot_of(SWAPPED)}"\n')
            trial.plug_in([ANOTHER])
            trial.ports[SWAPPED] = str(link)
            yield trial, cable(link, trial.kits[SWAPPED].port)
    except PostgresMissing as missing:
        pytest.skip(str(missing))


def first_round(trial: Trial, bench: TypedBench, cable: Cable) -> None:
    """Scan sixteen labels, one wrong and one twice; three boards are bad, one is swapped."""
    cable.swap_behind(BEFORE_THE_KEY, trial.kits[ANOTHER].port)
    for number in SIXTEEN:
        bench.until(f"scan the label of {slot_of(number)}")
        if number == 4:
            scanned(bench, "https://example.com", "\x07.*not taken: .* is no slot of this tray")
            scanned(bench, label_of(1), f"\x07.*not taken: double: label {label_of(1)} is that")
        scanned(bench, label_of(number), f"{slot_of(number)} has label {label_of(number)}")
    bench.until(r"4 in need of a hand.*4 \S*FAIL.*12 \S*PASS")


def mend(trial: Trial, bench: TypedBench, cable: Cable) -> None:
    """Put the right board back, and boards that are whole in the place of the bad ones."""
    cable.swap(trial.kits[SWAPPED].port)
    scanned(bench, slot_of(SWAPPED), f"{slot_of(SWAPPED)}: scan its label")
    scanned(bench, label_of(SWAPPED), f"{slot_of(SWAPPED)} has label")
    bench.until(r"3 \S*FAIL.*13 \S*PASS")
    trial.unplug(list(BAD))
    bench.until(r"13 \S*PASS.*3 \S*empty")
    trial.plug_in(list(BAD), fault="slow=0.3")
    bench.until("3 in need of a hand")
    for number in BAD:
        scanned(bench, slot_of(number), f"{slot_of(number)}: scan its label")
        scanned(bench, label_of(number), f"{slot_of(number)} has label")


def lose_the_ledger(trial: Trial, bench: TypedBench) -> None:
    """Kill the server of the ledger while the mended boards are at work, and start it again."""
    for number in BAD:
        bench.until_true(lambda one=number: trial.reached(one, "ca-chain"), f"a step of {number}")
    trial.forget_ledger()
    trial.server.kill()
    bench.until(r"failed at \S+: the ledger .*3 \S*FAIL.*13 \S*PASS")
    scanned(bench, "AB000099", "\x07.*not taken: AB000099 was not taken, scan it again: the ledger")
    trial.server.start()
    scanned(bench, "r", "tried again: A3, B4, D1")
    bench.until(r"16 slots\S*  \S*16 \S*PASS")


@pytest.mark.timeout(600)
def test_an_hour_of_an_operator_ends_with_each_board_right_and_each_label_on_its_own(
    tmp_path: Path,
) -> None:
    with sixteen_kits(tmp_path / "tray") as (trial, cable):
        words = [*trial.ports, "--set-clock", "--watch", "--scan"]
        with typed_bench(*words, environment=trial.environment) as bench:
            first_round(trial, bench, cable)
            mend(trial, bench, cable)
            lose_the_ledger(trial, bench)
            assert bench.end() == 130
            assert bench.restored()
        with closing(trial.open_ledger()) as ledger:
            boards = [ledger.board(trial.uuid(number)) for number in SIXTEEN]
            runs = Counter(
                run.outcome for run in Listing(ledger, RunRecord, RecordFilter()).every()
            )
        assert [board and board.label for board in boards] == [label_of(one) for one in SIXTEEN]
        assert runs["done"] == len(SIXTEEN)
        assert runs["swapped"] == 1
        again = trial.run()
        assert again.last == {"summary": {"boards": 16, "unchanged": 16, "ok": True}}
        assert trial.wrongs(SIXTEEN) == []
