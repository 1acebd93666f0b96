"""Scans of the made-up radio world, and the paths of location."""

from at.virtual.radio_world import Coordinates, load_world

CURRENT = "/v1/organizations/{}/projects/{}/location/{}"
LEGACY = "/v1/location/{}"


def url(suffix: str, organization: str = "acme", project: str = "kits") -> str:
    return CURRENT.format(organization, project, suffix)


def scan_at(where: Coordinates) -> dict:
    heard = load_world().access_points(where)
    return {
        "accessPoints": [
            {"macAddress": found.access_point.bssid, "signalStrength": found.rssi_dbm}
            for found in heard
        ]
    }


def cells_at(where: Coordinates) -> dict:
    serving, *others = load_world().cells(where)
    cell = serving.cell
    return {
        "lte": [
            {
                "mcc": int(cell.plmn[:3]),
                "mnc": cell.plmn[3:],
                "eci": cell.eci,
                "tac": cell.tac,
                "rsrp": serving.rsrp_dbm,
                "adv": 65535,
                "nmr": [
                    {"earfcn": n.cell.earfcn, "pci": n.cell.pci, "rsrp": n.rsrp_dbm}
                    for n in others[:5]
                ],
            }
        ]
    }


PLACES = [load_world().position(60.0 * step) for step in range(11)]
