"""The settings that docs/howto/provisioning.md shows; tests/test_pages.py types its commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.config.parse import profile_from
from agent.provisioning.handover import record_of
from agent.provisioning.ledger import BoardRecord, RunRecord
from tests.support.provisioning.ledgers import UUID, run_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "provisioning.md"
SETTINGS = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


def test_the_settings_that_it_shows_are_read() -> None:
    assert len(SETTINGS) == 4
    for text in SETTINGS:
        table = tomllib.loads(text)["profiles"]["bench"]
        assert profile_from(table, "bench") is not None


# A field of a label: where it is, what draws it, and its text, where _5E is a character in hex.
FIELD = re.compile(r"\^FO(\d+),(\d+)\^(BQN,2,\d|A0N,\d+,\d+)\^FH\^FD([^\^~]*)\^FS\n")


MADE = run_of(UUID, outcome="done")


def printed(folder: Path, run: RunRecord, board: BoardRecord | None, *words: str) -> str:
    """Give a record to the page's program; return what it prints."""
    [program] = re.findall(r"(?ms)^```python\n(# to-printer\.py.*?)^```", PAGE.read_text("utf-8"))
    labels = folder / "labels.zpl"
    record = record_of(run, board)
    command = [sys.executable, "-c", program, str(labels), *words]
    subprocess.run(command, input=record, check=True, timeout=30)
    return labels.read_text("utf-8") if labels.exists() else ""


def test_the_label_that_its_program_prints_is_whole_and_takes_no_orders_from_a_text(
    tmp_path: Path,
) -> None:
    board = BoardRecord(
        UUID, imei="351358811111111", device_id="nrf-1", slot="A_1", label="L^XZ~é",
        made_run=MADE.id,
    )  # fmt: skip
    zpl = printed(tmp_path, MADE, board)
    label = re.fullmatch(r"\^XA\^CI28\n(.*)\^XZ\n", zpl, re.DOTALL)
    assert label is not None
    assert FIELD.sub("", label[1]) == "", "nothing but fields"
    fields = FIELD.findall(label[1])
    texts = [re.sub("_(..)", lambda char: chr(int(char[1], 16)), text) for *_, text in fields]
    # A QR code, with its level of correction and its mode, and three lines.
    assert [drawn[:3] for *_, drawn, _ in fields] == ["BQN", "A0N", "A0N", "A0N"]
    assert texts == ["MA,nrf-1", "A_1", "IMEI 351358811111111", "L^XZ~é"]
    assert len({(across, down) for across, down, *_ in fields}) == len(fields)


@pytest.mark.parametrize(
    ("outcome", "board"),
    [
        ("failed", BoardRecord(UUID)),
        ("failed", None),
        ("unchanged", BoardRecord(UUID, made_run=MADE.id)),
    ],
    ids=["not right", "never told what it is", "only checked"],
)
def test_a_label_is_printed_for_a_board_that_was_made_alone(
    tmp_path: Path, outcome: str, board: BoardRecord | None
) -> None:
    run = run_of(UUID, outcome=outcome, id="another")
    assert printed(tmp_path, run, board) == ""
    assert (printed(tmp_path, run, board, "again") == "") is (outcome == "failed")
