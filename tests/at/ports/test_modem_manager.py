"""Who holds a port that /proc does not show: ModemManager's own list says."""

from __future__ import annotations

from pathlib import Path

import pytest
from modem_manager import mocked_modem_manager
from network_manager import private_bus

from at.ports.holders import holder_of

DEVICE = "/dev/null"  # any device will do: nobody's files are looked at here


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc in which ModemManager runs as another user."""
    folder = tmp_path / "proc"
    (folder / "4242").mkdir(parents=True)
    (folder / "4242" / "comm").write_text("ModemManager\n")
    return folder


@pytest.mark.parametrize(
    ("ports", "holder"),
    [
        (["null", "ttyACM1"], "ModemManager (PID 4242)"),
        (["cdc-wdm0", "null"], "ModemManager (PID 4242)"),
        (["ttyACM0", "ttyACM1"], "another user's process"),
    ],
    ids=["its primary port", "another of its ports", "not on its list"],
)
def test_modem_manager_says_whether_it_has_the_port(
    ports: list[str],
    holder: str,
    proc: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mocked_modem_manager(tmp_path, *ports) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        assert holder_of(DEVICE, proc) == holder


def test_a_modem_manager_that_does_not_answer_is_named_with_a_doubt(
    proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'nothing'}")
    assert holder_of(DEVICE, proc) == "ModemManager, perhaps (PID 4242)"
    with private_bus(tmp_path) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        assert holder_of(DEVICE, proc) == "ModemManager, perhaps (PID 4242)"
