"""What takes bytes from outside has a target, whose kept inputs end as it declares."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "fuzz")]

import targets  # noqa: E402

import fuzz  # noqa: E402 - its folder is no package


@pytest.mark.parametrize("name", targets.TARGETS)
def test_each_kept_input_ends_as_its_target_declares(name: str) -> None:
    inputs = fuzz.kept(name)
    assert inputs
    for path in inputs:
        targets.TARGETS[name].take(path.read_bytes())


def test_each_folder_of_inputs_has_its_target() -> None:
    assert {folder.name for folder in fuzz.CORPUS.iterdir() if folder.is_dir()} == set(
        targets.TARGETS
    )


def test_what_a_target_does_not_declare_is_named_with_the_command_that_tries_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stumbles(data: bytes) -> None:
        if data.startswith(b"b"):
            raise ZeroDivisionError("a defect")
        raise KeyError("declared")

    monkeypatch.setitem(targets.TARGETS, "odd", targets.Target("odd", stumbles, (KeyError,)))
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path / "corpus")
    (tmp_path / "corpus" / "odd").mkdir(parents=True)
    for name in (b"a", b"b"):
        (tmp_path / "corpus" / "odd" / name.decode()).write_bytes(name)

    assert fuzz.main(["odd"]) == 1

    printed = capsys.readouterr()
    assert "ZeroDivisionError: a defect" in printed.err
    assert "scripts/fuzz odd --input corpus/odd/b" in printed.out
    assert printed.out.count("try:") == 1
