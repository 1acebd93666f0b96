from __future__ import annotations

import pytest

from at.protocol.counts import counted


@pytest.mark.parametrize(
    ("count", "things", "said"),
    [
        (0, "tries", "0 tries"),
        (1, "tries", "1 try"),
        (2, "tries", "2 tries"),
        (1, "access points", "1 access point"),
        (1, "bytes", "1 byte"),
        (1, "delivered", "1 delivered"),
    ],
)
def test_one_is_no_plural(count: int, things: str, said: str) -> None:
    assert counted(count, things) == said
