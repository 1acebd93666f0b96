"""What arrives from a modem: which line ends an answer."""

from __future__ import annotations

import pytest

from at.protocol.line.items import final_result


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("OK", ("OK", None, "")),
        ("ERROR", ("ERROR", None, "")),
        ("+CME ERROR: 518", ("+CME ERROR", 518, "")),
        ("+CME ERROR:518", ("+CME ERROR", 518, "")),
        ("+CME ERROR: ", ("+CME ERROR", None, "")),
        ("+CME ERROR: SIM not inserted", ("+CME ERROR", None, "SIM not inserted")),
        ("+CMS ERROR: 310", ("+CMS ERROR", 310, "")),
        ("NO CARRIER", ("NO CARRIER", None, "")),
        ("CONNECT 115200", ("CONNECT 115200", None, "")),
        ("+CME ERROR 518", None),
        ("NOT OK", None),
        ("OK?", None),
        ("UNKNOWN COMMAND", None),
        ("CONNECTED", None),
        ("+CREG: ERROR", None),
    ],
)
def test_a_final_result_is_a_whole_line(line: str, result: object) -> None:
    assert final_result(line) == result
