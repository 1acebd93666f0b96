"""`cellagent modem signal`, as a person or a program calls it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands.command_line import completed as cellagent


def test_the_signal_is_shown_with_bars_and_as_json():
    done = cellagent("modem", "signal", "--port", "virtual:")
    assert done.returncode == 0, done.stderr
    assert "RSRP" in done.stdout
    done = cellagent("modem", "signal", "--port", "virtual:", "--json")
    assert {"rsrp", "rsrp_dbm", "rsrq_db", "snr_db"} <= set(json.loads(done.stdout))


def test_why_a_kit_has_no_signal_is_told_once_while_it_is_watched(tmp_path: Path) -> None:
    port = f"virtual:{tmp_path}/kit.json"
    assert cellagent("modem", "off", "--port", port).returncode == 0
    done = cellagent("modem", "signal", "--port", port, "--watch", "0.1", "--count", "3")
    assert done.returncode == 0, done.stderr
    first, _, later = done.stdout.partition("The modem is off")
    assert (first.count("RSRP"), later.count("RSRP")) == (1, 2)
    assert f"`cellagent modem on --port {port}`" in later
    assert "The modem is off" not in later
