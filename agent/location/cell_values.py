"""What the location service takes of a cell: it refuses a whole request for one value beyond.

Facts: the public OpenAPI document, and the vendor's schemas of messages.
"""

_RSRP_DBM = range(-157, -43)
_RSRQ_DB = (-34.5, 3.5)


def is_network(plmn: str) -> bool:
    """Return whether the MCC, the first three digits, is one."""
    return int(plmn[:3]) > 0


def add_level(entry: dict[str, object], rsrp_dbm: int | None, rsrq_db: float | None) -> None:
    """Add to a cell what is known of its level, and can be sent."""
    if rsrp_dbm is not None and rsrp_dbm in _RSRP_DBM:
        entry["rsrp"] = rsrp_dbm
    if rsrq_db is not None and _RSRQ_DB[0] <= rsrq_db <= _RSRQ_DB[1]:
        entry["rsrq"] = rsrq_db
