"""What leaves the ledger as a file opens safely and fits who reads it."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.errors import AgentError, UsageError
from agent.files.private_files import FolderUnusable
from agent.provisioning.exports import (
    LABEL_HEADING,
    Labels,
    for_bulk_onboarding,
    for_nordic_tools,
    for_spreadsheet,
    label_line,
    neutral,
    write_qr,
)
from agent.provisioning.ledger import BoardRecord
from tests.support.harness.full_disk import files_end_at

PEM = "-----BEGIN PUBLIC KEY-----\nTEST\n-----END PUBLIC KEY-----\n"
BOARD = BoardRecord("u-1", "350457791234567", "nrf-350457791234567", slot="A1",
                    firmware="mfw_nrf91x1_2.0.4", public_key=PEM)  # fmt: skip


@given(st.from_regex(r"[=+@\t\r-]?[^\x00]*", fullmatch=True))
def test_no_cell_is_a_formula_and_each_can_be_restored(text: str) -> None:
    assert not neutral(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert neutral(text) in {text, f"'{text}"}


def test_a_reason_that_looks_like_a_formula_is_only_text() -> None:
    text = "".join(for_spreadsheet([BoardRecord("u-1", reason='=cmd|"/c calc"!A1')]))
    row = next(iter(csv.DictReader(io.StringIO(text))))
    assert row["reason"] == '\'=cmd|"/c calc"!A1'


@pytest.mark.contract("D9.3", "D10.8")
def test_bulk_onboarding_has_no_heading_and_keeps_the_lines_of_a_key() -> None:
    boards = [BOARD, BoardRecord("u-2", device_id="nrf-2"), BoardRecord("u-3", public_key=PEM)]
    lines = for_bulk_onboarding(boards, tags=("a", "b"), firmware_types=("APP", "MODEM"))
    rows = list(csv.reader(io.StringIO("".join(lines))))
    assert rows == [["nrf-350457791234567", "", "a|b", "APP|MODEM", PEM]]


def test_nordics_tools_get_id_firmware_and_imei() -> None:
    line = "nrf-350457791234567,mfw_nrf91x1_2.0.4,350457791234567\n"
    assert list(for_nordic_tools([BOARD])) == [line]


def test_a_label_has_a_line_and_a_picture_whose_name_cannot_leave_the_folder(
    tmp_path: Path,
) -> None:
    assert label_line(BOARD) == "nrf-350457791234567,350457791234567,A1,,\n"
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    path = write_qr(BoardRecord("u-1", device_id="../../etc/x"), tmp_path)
    assert path.parent == tmp_path
    assert path.read_bytes().startswith(b"\x89PNG")


def test_two_device_ids_have_two_pictures(tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    ids = ("nrf-350457791234567", "lab:1", "lab_1", "lab.1")
    names = [write_qr(BoardRecord("u", device_id=name), tmp_path).name for name in ids]
    assert len(set(names)) == len(ids)
    assert names[0] == "nrf-350457791234567.png"


def test_a_board_that_is_checked_again_gets_no_second_label(tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    for _station in range(2):
        labels = Labels(tmp_path / "labels")
        labels.write(BOARD)
        labels.write(replace(BOARD, slot="B2", usb_place="1-1.4"))
    assert (tmp_path / "labels" / "labels.csv").read_text() == LABEL_HEADING + label_line(BOARD)


@pytest.mark.parametrize(
    ("former", "gets"),
    [
        (b"\xef\xbb\xbf{heading}{line}", b""),
        (b"{heading}a,b,M\xfcller,,\n", b"{line}"),
        (b"{heading}a,b,c,,", b"\n{line}"),
        (b'{heading}"nrf-350457791234567","350457791234567","A1","",""\r\n', b""),
        (b'{heading}a,"b,c,,\n{line}', b""),
        (b'"device_id","imei","slot","usb_place","label"\r\n', b"{line}"),
        (b"{heading}nrf-350457791234567,3.50458E+14,A1,,\r\n", b""),
    ],
    ids=[
        *("byte order mark", "Windows-1252", "cut off", "quoted", "unpaired quote", "all quoted"),
        "long number",
    ],
)
def test_labels_go_on_in_a_file_that_was_saved_by_a_spreadsheet_or_cut_off(
    tmp_path: Path, former: bytes, gets: bytes
) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    former, gets = (
        each.replace(b"{heading}", LABEL_HEADING.encode()).replace(
            b"{line}", label_line(BOARD).encode()
        )
        for each in (former, gets)
    )
    (tmp_path / "labels.csv").write_bytes(former)
    Labels(tmp_path).write(BOARD)
    assert (tmp_path / "labels.csv").read_bytes() == former + gets


def test_two_stations_that_begin_one_file_of_labels_write_one_heading(tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    boards = [replace(BOARD, device_id=f"nrf-{number}") for number in range(2)]
    stations = [Labels(tmp_path) for _ in boards]
    for station, board in zip(stations, boards, strict=True):
        station.write(board)
    expected = LABEL_HEADING + "".join(map(label_line, boards))
    assert (tmp_path / "labels.csv").read_text() == expected


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of a file")
def test_a_label_for_which_the_disk_has_no_room_leaves_no_half_of_itself(tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    first, second = (replace(BOARD, device_id=f"nrf-{'1' * 60}{end}") for end in "ab")
    (tmp_path / "labels.csv").write_text(LABEL_HEADING + "x" * 4000 + ",,,,\n")
    before = (tmp_path / "labels.csv").read_text()
    labels = Labels(tmp_path)
    with (
        files_end_at(len(before) + 50),
        pytest.raises(AgentError, match=r"the label of nrf-1\S* was not written: ") as unwritten,
    ):
        labels.write(first)
    assert unwritten.value.hint.startswith("`ulimit -f unlimited` lifts")
    assert unwritten.value.hint.endswith(
        "; then the same command again writes the labels that are missing"
    )
    assert (tmp_path / "labels.csv").read_text() == before
    labels.write(second)
    labels.write(first)
    expected = before + label_line(second) + label_line(first)
    assert (tmp_path / "labels.csv").read_text() == expected


def test_a_folder_of_labels_that_cannot_be_made_is_named_by_the_option_that_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAGENT_STATE_DIR", str(tmp_path))
    (tmp_path / "taken").touch()
    with pytest.raises(FolderUnusable) as refused:
        Labels(tmp_path / "taken" / "labels")
    assert refused.value.hint == "`--labels FOLDER` names one that can be written"


def test_a_file_of_labels_without_a_heading_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("nrf-1,350457791234567,A1,\n")
    with pytest.raises(UsageError, match="has no heading") as refused:
        Labels(tmp_path)
    assert "another folder" in refused.value.hint
