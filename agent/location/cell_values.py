"""What the location service takes of a cell: it refuses a whole request for one value beyond.

Facts: the public OpenAPI document, and the vendor's schemas of messages.
"""

_RSRP_DBM = range(-157, -43)
_RSRQ_DB = (-34.5, 3.5)


def is_network(plmn: str) -> bool:
    """Return whether the MCC, the first three digits, is one."""
    return int(plmn[:3]) > 0


def identity(plmn: str, cell_id: str, tac: str) -> dict[str, object]:
    """Return the identity of a cell, whose id and area are in hex."""
    # MCC and MNC go out as numbers: the service does not tell "01" from "001".
    return {
        "mcc": int(plmn[:3]),
        "mnc": int(plmn[3:]),
        "eci": int(cell_id, 16),
        "tac": int(tac, 16),
    }


def level(
    earfcn: int | None,
    pci: int | None,
    rsrp_dbm: int | None,
    rsrq_db: float | None,
    **more: int | None,
) -> dict[str, object]:
    """Return what is known of how a cell is heard, and can be sent."""
    values = {
        "earfcn": earfcn,
        "pci": pci,
        "rsrp": rsrp_dbm if rsrp_dbm in _RSRP_DBM else None,
        "rsrq": rsrq_db if rsrq_db is not None and _RSRQ_DB[0] <= rsrq_db <= _RSRQ_DB[1] else None,
        **more,
    }
    return {name: value for name, value in values.items() if value is not None}
