"""Indices to dBm and dB, and the timers of power saving: figures of the standards."""

from __future__ import annotations

import pytest

from at.commands.power_saving import (
    active_time_seconds,
    periodic_tau_ext_seconds,
    periodic_tau_seconds,
)
from at.protocol.levels import rsrp_to_dbm, rsrq_to_db, snr_to_db


@pytest.mark.parametrize(
    ("index", "dbm"),
    [(-17, -157), (-1, -141), (0, None), (1, -140), (97, -44), (98, None), (255, None)],
)
def test_rsrp_is_the_lower_edge_of_its_step(index, dbm):
    assert rsrp_to_dbm(index) == dbm


@pytest.mark.parametrize(
    ("index", "db"),
    [
        (-30, -34.5),
        (-1, -20.0),
        (0, None),
        (1, -19.5),
        (34, -3.0),
        (35, -3.0),
        (46, 2.5),
        (255, None),
    ],
)
def test_rsrq_is_the_lower_edge_of_its_step(index, db):
    assert rsrq_to_db(index) == db


def test_snr_starts_at_minus_24():
    assert (snr_to_db(0), snr_to_db(49), snr_to_db(127)) == (-24, 25, None)


def test_each_timer_has_its_own_table():
    assert active_time_seconds("00000101") == 10
    assert active_time_seconds("11100000") is None
    assert periodic_tau_ext_seconds("00010011") == 11400
    assert periodic_tau_ext_seconds("11000001") == 320 * 3600
    assert periodic_tau_seconds("01001001") == 3240
    assert periodic_tau_seconds(None) is None
