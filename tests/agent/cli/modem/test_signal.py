"""`cellagent modem signal`, as a person or a program calls it."""

from __future__ import annotations

import json

from command_line import completed as cellagent


def test_the_signal_is_shown_with_bars_and_as_json():
    done = cellagent("modem", "signal", "--port", "virtual:")
    assert done.returncode == 0, done.stderr
    assert "RSRP" in done.stdout
    done = cellagent("modem", "signal", "--port", "virtual:", "--json")
    assert {"rsrp", "rsrp_dbm", "rsrq_db", "snr_db"} <= set(json.loads(done.stdout))
