"""A ModemManager of one modem on a private D-Bus, as far as its list of ports goes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.location.network_manager import (
    MOCK,
    MOCK_TOOL,
    gdbus,
    private_bus,
    running,
    wait_for_name,
)

NAME = "org.freedesktop.ModemManager1"
ROOT = "/org/freedesktop/ModemManager1"
MODEM = f"{NAME}.Modem"


@contextmanager
def mocked_modem_manager(folder: Path, *ports: str) -> Iterator[str]:
    """Serve a modem that has `ports`, the first its primary one; yield the address of the bus."""
    with private_bus(folder) as address:
        environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address}
        mock = [*MOCK_TOOL, "--system", "--is-object-manager", NAME, ROOT, NAME]
        with running(mock, environment):
            wait_for_name(address, NAME)
            listed = ", ".join(f"('{port}', uint32 3)" for port in ports)
            properties = f"{{'PrimaryPort': <'{ports[0]}'>, 'Ports': <[{listed}]>}}"
            gdbus(
                address, NAME, ROOT, f"{MOCK}.AddObject", f"{ROOT}/Modem/0", MODEM, properties, "[]"
            )
            yield address
