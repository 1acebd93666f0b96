"""Where the files of a test are: each test has names of its own, that any file system takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.testing.paths import file_name


def test_a_name_is_the_test_s_id_where_a_file_may_have_it() -> None:
    assert file_name("TestKit::test_it[AT%XTEMP]") == "TestKit.test_it[AT%25XTEMP]"
    assert file_name("test_it[a/b]") == "test_it[a%2Fb]"


@pytest.mark.parametrize("long", ["x" * 400, "é" * 200, "/" * 90])
def test_a_long_id_has_a_file_of_its_own_too(tmp_path: Path, long: str) -> None:
    names = [file_name(f"test_it[{long}{end}]") for end in ("1", "2")]
    assert len({*names}) == 2
    for name in names:
        assert name.startswith("test_it[")
        (tmp_path / f"{name}.console.transcript").touch()
    assert len([*tmp_path.iterdir()]) == 2
