"""From the options of `provision plan` and `run` to goal, registrar, boards and tray."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, get_args

import click
from msgspec import Struct

from agent.cli.framework.candidates import complete_kit
from agent.cli.framework.command import note, together
from agent.cli.framework.session import Session, modem_on
from agent.config.kits import port_of
from agent.config.pkcs11_uri import is_pkcs11
from agent.config.value_types import Registration
from agent.errors import AgentError, UsageError
from agent.extras import require
from agent.files.paths import named_path
from at.ports.usb import same_port

if TYPE_CHECKING:
    from agent.config.load import Configuration
    from agent.config.profile import BoardLimits, ProvisioningSettings
    from agent.provisioning.boards.board import BoardLocation
    from agent.provisioning.boards.limits import Limit
    from agent.provisioning.boards.modem_board import ModemBoard
    from agent.provisioning.planning.goal import Goal
    from agent.provisioning.running.batch import OpenBoard
    from agent.provisioning.running.steps.registrar import Registrar
    from agent.provisioning.running.tray import Tray
    from at.ports.usb import Listing

_CERTIFICATE = re.compile(
    rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----\n?"
)
_PLACE = re.compile(r"\d+-[\d.]+$")  # of a hub; a slot may also be that of a port

take_options = together(
    click.argument("boards", nargs=-1, metavar="[BOARD...]", shell_complete=complete_kit),
    click.option("--all", "all_kits", is_flag=True, help="Every kit that is plugged in."),
    click.option("--expect", type=click.IntRange(1), help="Stop before a write at another number."),
    click.option(
        "--security-tag",
        type=click.IntRange(0, 2**31 - 1),
        help="Where to write; else the profile's.",
    ),
    click.option(
        "--certificate",
        type=click.Choice(["operator-ca", "self-signed", "none"]),
        help="Default: operator-ca where the profile names a CA, else none.",
    ),
    click.option(
        "--certificate-days",
        type=click.IntRange(1, 36500),
        help="Its life in days; else the profile's.",
    ),
    click.option("--host-key", is_flag=True, help="Make the keys on this host: not advised."),
    click.option(
        "--replace", multiple=True, metavar="TAG:TYPE", help="A credential that may be deleted."
    ),
    click.option(
        "--rekey", is_flag=True, help="Another key may take the place of one that the ledger knows."
    ),
    click.option(
        "--second-tag",
        is_flag=True,
        help="A key may take the place of that in another tag, or of the identity key.",
    ),
    click.option(
        "--take-over",
        multiple=True,
        metavar="DEVICE_ID",
        help="A device id that a board may take from another board, which is locked out.",
    ),
    click.option("--id-prefix", default="", help="Device id: this and the IMEI, not the UUID."),
    click.option(
        "--registration", type=click.Choice(get_args(Registration)), help="Default: the profile's."
    ),
    click.option("--set-clock", is_flag=True, help="Set the modem's clock from this host's."),
    click.option("--no-proof", is_flag=True, help="Do not have the cloud accept a JWT at the end."),
)


class BenchOptions(Struct, frozen=True):
    """The values of the options of `plan` and `run`."""

    boards: tuple[str, ...]
    all_kits: bool
    expect: int | None
    security_tag: int | None
    certificate: str | None
    certificate_days: int | None
    host_key: bool
    replace: tuple[str, ...]
    rekey: bool
    second_tag: bool
    take_over: tuple[str, ...]
    id_prefix: str
    registration: str | None
    set_clock: bool
    no_proof: bool


def goal_of(given: BenchOptions, configuration: Configuration) -> Goal:
    """Return the state that the boards are to reach. Raises UsageError."""
    from agent.provisioning.ca.device_ca import ends_before, read_ca
    from agent.provisioning.planning.goal import (
        CertificateSource,
        Goal,
        KeyOrigin,
        RegistrationMethod,
    )

    profile, account = configuration.profile.provisioning, configuration.profile.account
    # Half a CA is a mistake to report, not a bench without certificates.
    default = "operator-ca" if profile.device_ca_file or profile.device_ca_key_file else "none"
    method = RegistrationMethod(given.registration or profile.registration)
    attests = method is RegistrationMethod.ATTESTATION
    if attests and profile.into == "team":
        raise UsageError(
            "an attestation token brings a board into a project",
            hint="`cellagent config set provisioning.into project`; a team takes the board by "
            "`--registration claim`",
        )
    if attests and not given.no_proof:
        note("an attestation gives the service no key: no token of these boards is proven")
    certificate = CertificateSource(given.certificate or default)
    life = timedelta(days=given.certificate_days or profile.certificate_days)
    ca = ca_ends = None
    if certificate is CertificateSource.OPERATOR_CA:
        _require_ca_named(profile)
        ca = read_ca(named_path(profile.device_ca_file))
        ca_ends = ends_before(ca, datetime.now(UTC), life)
    origin = KeyOrigin.HOST if given.host_key else KeyOrigin.MODEM
    if origin is KeyOrigin.HOST:
        note("keys made on this host can be copied from it; a modem's own key cannot")
    try:
        return Goal(
            security_tag=(
                profile.security_tag if given.security_tag is None else given.security_tag
            ),
            ca_chain=_ca_chain(profile.ca_chain_file),
            key_origin=origin,
            certificate=certificate,
            certificate_life=life,
            ca=ca,
            ca_ends=ca_ends,
            registration=method,
            into=f"{account.organization}/{account.project}" if profile.into == "project" else "",
            replace=frozenset(_credential(text) for text in given.replace),
            id_prefix=given.id_prefix,
            set_clock=given.set_clock,
            limits=_limits(profile.limits),
            prove=not given.no_proof and not attests,
            rekey=given.rekey,
            second_tag=given.second_tag,
            take_over=frozenset(given.take_over),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def registrar_of(goal: Goal, configuration: Configuration) -> Registrar | None:
    """Return the registrar, None where the goal needs no service; nothing is opened yet.

    Raises ConfigError or CredentialMissing if the configuration lacks what it needs: before any
    board is touched.
    """
    from agent.provisioning.planning.goal import RegistrationMethod

    if goal.registration is RegistrationMethod.NONE and not goal.prove:
        return None
    # Only here: a bench with no service need not pay for the HTTP client.
    from agent.config.project import ProjectSlugs
    from agent.provisioning.running.steps.project_registrar import ProjectRegistrar, require_fitting
    from agent.provisioning.running.steps.registrar import Registrar
    from agent.wiring.service_client import connect

    account, section = configuration.profile.account, configuration.profile.provisioning
    client = connect(configuration)
    if section.into == "project":
        require_fitting(goal)
        project = ProjectSlugs(account.organization, account.project)
        registrar: Registrar = ProjectRegistrar(
            client, goal.registration, project=project, team_id=account.team_id
        )
    else:
        registrar = Registrar(
            client,
            goal.registration,
            section.sub_type,
            section.tags,
            section.firmware_types,
            commands=goal.takes_commands,
        )
    try:
        registrar.require(set_clock=goal.set_clock, prove=goal.prove)
    except AgentError as error:
        alone = "with no service: `--registration none --no-proof`"
        error.hint = f"{error.hint}; {alone}" if error.hint else alone
        raise
    if goal.gives_key and not goal.prove:
        note(
            "with no proof the service is not asked what it has: a board that the ledger calls "
            "registered is left as it is, also where that was at another service or in another "
            "team; and where the service has a board's device identity key, the tokens that are "
            "signed with that one are refused from now on"
        )
    return registrar


def board_finder(
    given: BenchOptions, session: Session, listing: Listing
) -> Callable[[], list[BoardLocation]]:
    """Return a function that lists the boards to provision; any thread may call it.

    A named board is listed whether or not it is plugged in. The function raises UsageError.
    """
    from agent.provisioning.boards.discovery import chosen_boards

    names = tuple(port_of(session.profile, name) or name for name in given.boards)
    if session.port or not (names or given.all_kits):  # a flag, before environment and profile
        names = tuple(dict.fromkeys(filter(None, [*names, session.profile.kit.port])))
    slots = session.profile.provisioning.slots
    return partial(chosen_boards, names, all_kits=given.all_kits, slots=slots, listing=listing)


def board_opener(session: Session, listing: Listing) -> OpenBoard:
    """Return what opens a board's port, or leases its modem from a running agent.

    Raises ConfigError where the keys that check what boards attest cannot be read.
    """
    from agent.cli.framework.hints import pasteable_hint
    from agent.provisioning.boards.modem_board import ModemBoard

    keys = session.identity_keys
    if keys:
        note(f"what the boards attest is checked with the keys of {keys.place}")
    else:
        named = "`cellagent config set provisioning.attestation_keys PATH` names their public keys"
        note(f"what the boards attest is not checked: {pasteable_hint(named, '', session)}")

    profile = session.loaded.profile

    @asynccontextmanager
    async def open_board(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        listed = cache(listing)
        own = (kit for kit in profile.kits.values() if same_port(kit.port, location.port, listed))
        baud = next(own, profile.kit).baud
        async with modem_on(location.port, listing, baud=baud) as modem:
            yield ModemBoard(modem, keys)

    return open_board


def tray_of(given: BenchOptions, profile: ProvisioningSettings, found: list[BoardLocation]) -> Tray:
    """Return the tray as it lies on the table: the profile's slots, or the ports that are named.

    The slots of the profile are shown before a kit is in them, if all kits are wanted.
    """
    from agent.provisioning.boards.board import BoardLocation
    from agent.provisioning.running.tray import Tray

    columns, _, rows = profile.tray.partition("x")
    tray = Tray((int(columns), int(rows)) if profile.tray else None)
    if given.all_kits:
        places = {place: name for place, name in profile.slots.items() if _PLACE.match(place)}
        tray.know(BoardLocation("", place, name, "") for place, name in places.items())
    else:
        order = [*profile.slots.values(), ""]
        named = sorted(found, key=lambda one: order.index(one.slot))
        tray.know(one for one in named if one.usb_place or not one.port.startswith("serial:"))
    called: dict[str, list[str]] = {}
    for key, slot in tray.slots.items():
        called.setdefault(slot.name, []).append(key)
    for name, keys in called.items():
        if len(keys) > 1:
            note(
                f"warning: {' and '.join(keys)} are both slot {name}, and nobody can tell which of "
                "them is meant: correct provisioning.slots (`cellagent config path`)"
            )
    return tray


def require_extras(profile: ProvisioningSettings) -> None:
    """Raise MissingExtra before a board is looked for, and before a PIN is asked for.

    The ledger's driver is loaded: in the thread that opens the ledger, which shares the
    interpreter with what is loaded beside it, that would take three times as long.
    """
    from agent.provisioning.ledger.opening import load_driver

    load_driver(profile.ledger)
    if is_pkcs11(profile.device_ca_key_file):
        require("a device CA's key on a token", "pkcs11")


def _limits(profile: BoardLimits) -> tuple[Limit, ...]:
    """Return the limits that the profile sets."""
    from agent.provisioning.boards.limits import Limit, Quantity

    limits = (
        Limit(Quantity.SUPPLY, profile.supply_min_mv, profile.supply_max_mv),
        Limit(Quantity.TEMPERATURE, profile.temperature_min_c, profile.temperature_max_c),
        Limit(Quantity.RSRP, profile.rsrp_min_dbm),
        Limit(Quantity.SIM, 1 if profile.sim_required else None),
    )
    return tuple(one for one in limits if (one.least, one.most) != (None, None))


def _require_ca_named(profile: ProvisioningSettings) -> None:
    for name in ("device_ca_file", "device_ca_key_file"):
        if not getattr(profile, name):
            raise UsageError(
                f"certificates are to be signed, and no CA is named: provisioning.{name} is empty",
                hint=f"`cellagent config set provisioning.{name} FILE`, or `--certificate none`",
            )


def _credential(text: str) -> tuple[int, int]:
    from agent.provisioning.planning.goal import CREDENTIAL_NAMES

    tag, _, kind = text.partition(":")
    if not tag.isdecimal() or not kind.isdecimal():
        raise UsageError(f"--replace {text}: write TAG:TYPE, as 16842753:2")
    if int(kind) not in CREDENTIAL_NAMES:
        known = ", ".join(f"{kind} ({name})" for kind, name in CREDENTIAL_NAMES.items())
        raise UsageError(f"--replace {text}: the bench deletes types {known} alone")
    return int(tag), int(kind)


def _ca_chain(file: str) -> str:
    """Return the CA certificates that are written to every kit, as PEM. Raises UsageError."""
    from agent.files.private_files import read_plain

    if not file:
        return ""
    path = named_path(file)
    # The modem's digest is over the exact bytes: with line ends of one kind, a chain that an
    # editor or a checkout on Windows saved is the same one.
    chain = read_plain(path, "the CA chain").replace(b"\r\n", b"\n")
    if b"PRIVATE KEY" in chain:
        raise UsageError(
            f"the CA chain {path} holds a private key, and would be copied to every kit",
            hint="name a file with the certificates alone",
        )
    if b"-----BEGIN CERTIFICATE-----" not in chain:
        raise UsageError(
            f"the CA chain {path} holds no certificate in PEM form",
            hint="name the file with the CA certificates of the service, as it gives them out",
        )
    words = _CERTIFICATE.sub(b"", chain)
    if b"-----BEGIN " in words:
        raise UsageError(
            f"the CA chain {path} holds something else than whole certificates in PEM form",
            hint="name a file with the certificates alone",
        )
    if words.strip():  # of `openssl x509 -text` or a browser: not for the modem (RFC 7468, 2)
        chain = b"".join(one.strip() + b"\n" for one in _CERTIFICATE.findall(chain))
    return chain.decode("ascii")
