"""The state of a kit is read again as it was written, by one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from at.protocol.errors import PortBusy, PortError
from at.virtual.options import OptionError, VirtualOptions
from at.virtual.server.runner import make_modem
from at.virtual.state import SavedState, StateFile
from at.virtual.transport import VirtualTransport
from tests.support.modem.virtual_modems import ask, state_file, switched_on


def test_a_state_file_of_another_kit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    path.write_bytes(make_modem(VirtualOptions()).kit.saved.encode())
    with state_file(path) as flash, pytest.raises(OptionError, match="another kit"):
        make_modem(VirtualOptions(model="nrf9160"), flash)
    path.write_text("{")
    transport = VirtualTransport(statefile=str(path))
    for _ in range(2):  # a refusal lets the file go
        with pytest.raises(PortError, match="not the state"):
            _ = transport.modem


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    modem = switched_on('AT%CMNG=0,7,0,"a\r\nb"', "AT%KEYGEN=7,2,0", "AT%XDATAPRFL=4")
    ask(modem, 'AT+CEDRXS=2,4,"0101"')
    ask(modem, 'AT+CPSMS=1,,,"00101000","00000101"')
    saved = modem.kit.saved
    assert SavedState.decode(saved.encode()) == saved
    with state_file(tmp_path / "kit.json") as flash:
        assert flash.load() is None
        flash.store(saved)
        assert flash.load() == saved


def test_a_state_is_written_again_once_anything_in_it_changed(tmp_path: Path) -> None:
    saved = switched_on('AT%CMNG=0,7,0,"one"').kit.saved
    with state_file(tmp_path / "kit.json") as flash:
        flash.store(saved)
        first = flash.path.stat().st_ino
        flash.store(saved)
        assert flash.path.stat().st_ino == first
        for slot in saved.credentials.values():
            slot.content = "another"
        flash.store(saved)
        assert flash.load() == saved


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2}', '{"format": 1}', "null"])
def test_a_file_that_is_no_state_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    path.write_text(text)
    with state_file(path) as flash, pytest.raises(PortError, match="not the state"):
        flash.load()
    assert path.read_text() == text


def test_a_write_leaves_no_other_file_and_is_for_the_owner_alone(tmp_path: Path) -> None:
    with state_file(tmp_path / "kit.json") as flash:
        flash.store(switched_on().kit.saved)
        assert {path.name for path in tmp_path.iterdir()} == {"kit.json", "kit.json.lock"}
        assert flash.path.stat().st_mode & 0o777 == 0o600


def test_a_second_user_is_refused_until_the_first_releases_the_file(tmp_path: Path) -> None:
    with state_file(tmp_path / "kit.json"), pytest.raises(PortBusy):
        StateFile(tmp_path / "kit.json")
    StateFile(tmp_path / "kit.json").release()
