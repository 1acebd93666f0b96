"""A tray of virtual boards, a station with a real CA and the stand-in, and a run of both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Host
from agent.config.identity_keys import IdentityKeys
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ledger import open_ledger
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.batch import run_boards
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.steps.registrar import Registrar
from at.driver.modem import Modem
from at.virtual import signing
from at.virtual.transport import VirtualTransport
from tests.support.keys.operator_ca import make_ca

if TYPE_CHECKING:  # in a bench, the module of this name is another one
    from tests.support.cloud.standin import StandIn

NO_KEYS = IdentityKeys()
TAG = 16842753
CA_CHAIN = "-----BEGIN CERTIFICATE-----\nTEST ONLY\n-----END CERTIFICATE-----\n"
GOAL = Goal(TAG, CA_CHAIN, certificate=CertificateSource.OPERATOR_CA,
            registration=RegistrationMethod.ONBOARD, set_clock=True)  # fmt: skip


Opener = Callable[[BoardLocation], AbstractAsyncContextManager[ModemBoard]]


class PowerPulled(BaseException):
    """The process dies here."""


class Tray:
    """Virtual boards with a state file each: they stay what they are from run to run."""

    def __init__(
        self, folder: Path, *, identity_keys: IdentityKeys = NO_KEYS, **options: object
    ) -> None:
        self.folder = folder
        self.identity_keys = identity_keys
        self.options = options
        self.transports: dict[str, VirtualTransport] = {}

    def locations(self, number: int) -> list[BoardLocation]:
        return [BoardLocation(f"K{index}", f"1-{index}", f"S{index}", f"board{index}")
                for index in range(number)]  # fmt: skip

    def transport(self, port: str) -> VirtualTransport:
        index = int(port.removeprefix("board"))
        return VirtualTransport(
            statefile=str(self.folder / f"{port}.json"), imei=f"0044010{index:07}", instant=True,
            **self.options,
        )  # fmt: skip

    def identity_key(self, location: BoardLocation) -> EllipticCurvePublicKey:
        """Return the public key that signs what a board attests, once its port was opened."""
        return signing.identity_key(self.transports[location.port].modem.kit).public_key()

    @asynccontextmanager
    async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
        transport = self.transports[location.port] = self.transport(location.port)
        modem = Modem(transport)
        await modem.open()
        try:
            yield ModemBoard(modem, self.identity_keys)
        finally:
            await modem.close()

    def opening(self, kind: Callable[[Modem], ModemBoard]) -> Opener:
        """Return what opens boards of another kind than `ModemBoard`."""

        @asynccontextmanager
        async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
            async with self.open(location) as board:
                yield kind(board._modem)

        return opened


@asynccontextmanager
async def station_of(
    standin: StandIn, folder: Path, goal: Goal = GOAL, address: str = ""
) -> AsyncIterator[Station]:
    ledger = AsyncLedger(lambda: open_ledger(address or str(folder / "ledger.sqlite"), "station"))
    keyring = Keyring([ApiKey(Secret(standin.credentials["api_key"]))])
    hosts = {host: standin.urls.get(host.value, "") for host in Host}
    (folder / "ca").mkdir(exist_ok=True)
    files = make_ca(folder / "ca") if not (folder / "ca/ca.pem").exists() else (
        folder / "ca/ca.pem", folder / "ca/ca.key")  # fmt: skip
    authority = DeviceCa.load(*files, lambda: "")
    try:
        async with HttpClient(HttpTransport(), hosts, keyring) as client:
            await ledger.opened()
            registrar = Registrar(client, goal.registration, commands=goal.takes_commands)
            yield Station(goal, ledger, registrar, authority, folder / "keys")
    finally:
        ledger.close()


async def provision(
    station: Station,
    tray: Tray,
    number: int,
    on_step: Callable[[BoardLocation, ProvisioningStep], None] = lambda *_: None,
) -> list[Outcome]:
    found = run_boards(tray.locations(number), station, tray.open, on_step)
    return sorted([outcome async for outcome in found], key=lambda one: one.location.port)
