"""The ledger that a profile names: opened to be read, or early, to be written."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config.load import Configuration
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.running.async_ledger import AsyncLedger


@contextmanager
def early_ledger(configuration: Configuration) -> Iterator[AsyncLedger]:
    """Begin to open the profile's ledger, to be written, while the block checks what is asked.

    It may be far away: it is reached and looked at meanwhile. Nothing of it changes before the
    block has ended, nor ever where the block raises.
    """
    from agent.provisioning.running.async_ledger import AsyncLedger

    checked: Future[None] = Future()
    ledger = AsyncLedger(partial(ledger_of, configuration, before_change=checked.result))
    try:
        yield ledger
    except BaseException:
        checked.cancel()
        ledger.close()
        raise
    checked.set_result(None)


def ledger_of(
    configuration: Configuration, *, before_change: Callable[[], object] | None = None
) -> Ledger:
    """Open the profile's ledger: PostgreSQL where it is shared, else a file in the state folder.

    To be read; with `before_change`, as that of open_ledger, to be written.
    """
    from agent.provisioning.ledger import open_ledger

    address, password = ledger_address(configuration)
    station = configuration.profile.provisioning.station or socket.gethostname()
    if before_change is None:
        return open_ledger(address, station, password=password, writes=False)
    return open_ledger(
        address, station, password=password, before_change=before_change, on_new=_tell_new
    )


def _tell_new(ledger: str) -> None:
    """Say what is known by this alone: a mount is lost, or the profile is another one."""
    logging.getLogger(__name__).warning(
        "the ledger is new, and knows the key of no board: %s", ledger
    )


def ledger_address(configuration: Configuration) -> tuple[str, str]:
    """Return the address and the password of the profile's ledger."""
    address = configuration.profile.provisioning.ledger
    secret = configuration.secrets.get("ledger_password")
    password = secret.reveal() if secret is not None else ""
    return address or str(configuration.state_dir / "ledger.sqlite"), password
