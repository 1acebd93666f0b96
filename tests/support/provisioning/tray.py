"""A tray of virtual kits, each in a process of its own, for the bench as an operator runs it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from agent.cli.cloud import write_standin_profile
from agent.config.write import set_default_profile, set_value
from agent.standin.principal import DEVICE_KEYS
from tests.support.cloud.standin import StandIn
from tests.support.keys.operator_ca import make_ca
from tests.support.modem.served_kit import ServedKit, launched

PROFILE = "tray"
TAG = 16842753
CA_CHAIN = "-----BEGIN CERTIFICATE-----\nTEST ONLY\n-----END CERTIFICATE-----\n"


@contextlib.contextmanager
def tray(folder: Path, number: int, *options: str, first: int = 0) -> Iterator[list[ServedKit]]:
    """Serve `number` kits, numbered from `first`: the same number is the same board again."""
    kits = [launched_kit(folder, index, *options) for index in range(first, first + number)]
    try:
        for kit in kits:
            kit.until_ready()
        yield kits
    finally:
        codes = [kit.stop() for kit in kits]
        assert codes == [0] * number


def launched_kit(folder: Path, number: int, *options: str, port: Path | None = None) -> ServedKit:
    """Start the kit of that number; it is ready a moment later."""
    place = folder / f"kit{number}"
    place.mkdir(exist_ok=True)
    return launched(place, "--imei", imei(number), *options, port=port)


def imei(number: int) -> str:
    """Return the first 14 digits of a kit's IMEI: it makes a kit the same board again."""
    return f"0044010000{number:04}"


def ports(kits: list[ServedKit]) -> list[str]:
    """Return the kits' ports as arguments of `provision`."""
    return [str(kit.port) for kit in kits]


def credentials(kit: ServedKit) -> dict[int, str]:
    """Return what is in the kit's tag, by type: the digests that its modem lists."""
    held = kit.saved()["credentials"]
    assert isinstance(held, dict)
    places = ((key.split(","), value) for key, value in held.items())
    return {int(kind): value["sha256"] for (tag, kind), value in places if int(tag) == TAG}


def flash_writes(kit: ServedKit) -> int:
    """Return how often the kit's credential store was written in its life."""
    writes = kit.saved()["writes"]
    assert isinstance(writes, int)
    return writes


def key_in(kit: ServedKit) -> str:
    """Return the public half (PEM) of the key that is in the kit's tag, "" if there is none."""
    held = kit.saved()["credentials"]
    assert isinstance(held, dict)
    entry = held.get(f"{TAG},2")
    if entry is None:
        return ""
    pem = entry["private_key"] or entry["content"]
    key = serialization.load_pem_private_key(pem.encode(), None)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def registered_keys(standin: StandIn) -> dict[str, str]:
    """Return the public key (PEM) that the service has for each device."""
    rows = standin.cloud.table(DEVICE_KEYS).items()
    return {row.device_id: row.public for _, row in rows}


def tray_profile(standin: StandIn, folder: Path, **settings: str) -> None:
    """Write the operator's profile: the stand-in, a CA of his own, a CA chain, slots."""
    write_standin_profile(PROFILE, standin.ready)
    set_default_profile(PROFILE)
    folder.mkdir(exist_ok=True)
    certificate, key = make_ca(folder)
    chain = folder / "chain.pem"
    chain.write_text(CA_CHAIN)
    usual = {
        "device_ca_file": str(certificate),
        "device_ca_key_file": str(key),
        "ca_chain_file": str(chain),
        "registration": "onboard",
    }
    for name, value in {**usual, **settings}.items():
        set_value(f"provisioning.{name}", value, profile=PROFILE)
