"""Indices to dBm and dB: figures of the standards."""

from __future__ import annotations

import pytest

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
