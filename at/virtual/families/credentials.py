"""The credential store: %CMNG, with the manual's rules of access."""

import hashlib
from enum import IntEnum

from at.virtual import signing
from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.state import CredentialSlot

WRITE, LIST, READ, DELETE = range(4)


class SlotType(IntEnum):
    """<type> of %CMNG. Not the driver's enumeration: no code is shared with what is tested."""

    ROOT_CA = 0
    CLIENT_CERTIFICATE = 1
    CLIENT_PRIVATE_KEY = 2
    PSK = 3
    PSK_IDENTITY = 4
    PUBLIC_KEY = 5
    DEVICE_IDENTITY_PUBLIC_KEY = 6
    ENDORSEMENT_KEY = 8
    NORDIC_IDENTITY_ROOT_CA = 10
    NORDIC_PUBLIC_KEY = 11


UNREADABLE = {SlotType.CLIENT_PRIVATE_KEY, SlotType.PSK, SlotType.ENDORSEMENT_KEY}

HIGHEST_TAG = 2_147_483_647
IDENTITY_TAG = 4_294_967_294
_MODEM_TAGS = (
    (4_294_967_292, SlotType.NORDIC_PUBLIC_KEY),
    (4_294_967_293, SlotType.NORDIC_IDENTITY_ROOT_CA),
)

NOT_FOUND, NO_ACCESS, FULL, ACTIVE, EXISTS, POWER_WARNING = 513, 514, 515, 518, 519, 528
_CAPACITY = 64  # credentials; the real limit is the flash's and is not published


def slot(tag: int, kind: int) -> str:
    """Return the key of a slot in the store."""
    return f"{tag},{kind}"


def write_refusal(kit: VirtualKit) -> int | None:
    """Return the error code that forbids changes to the store now; None if they are allowed."""
    if kit.active:
        return ACTIVE
    if "power-warning" in kit.faults:
        return POWER_WARNING
    return None


def digest(content: str) -> str:
    """Return SHA-256 of the bytes exactly as written, in upper-case hex, as %CMNG lists it."""
    return hashlib.sha256(content.encode("latin-1")).hexdigest().upper()


def manage(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%CMNG."""
    operation = request.number(0, WRITE, DELETE)
    if operation == LIST:
        return _list(kit, request)
    tag = request.number(1, 0, IDENTITY_TAG)
    kind = request.number(2, 0, SlotType.NORDIC_PUBLIC_KEY)
    if operation == READ:
        return _read(kit, tag, kind)
    tag = request.number(1, 0, HIGHEST_TAG)
    code = write_refusal(kit)
    if code is None:
        code = kit.faults.whole("cmng-refused")
    if code is not None:
        return fail(code)
    if operation == DELETE:
        return _delete(kit, tag, kind)
    return _write(kit, tag, kind, request.text(3))


def _write(kit: VirtualKit, tag: int, kind: int, content: str) -> Reply:
    if kind > SlotType.PUBLIC_KEY or not content:
        raise BadRequest
    store = kit.saved.credentials
    present = store.get(slot(tag, kind))
    if present is not None and present.private_key is not None:
        return fail(EXISTS)
    if "memory-full" in kit.faults or (present is None and len(store) >= _CAPACITY):
        return fail(FULL)
    content = kit.faults.kept(content)
    store[slot(tag, kind)] = CredentialSlot(digest(content), content=content)
    kit.saved.writes += 1
    return ok(takes_s=kit.delay(0.05))


def _delete(kit: VirtualKit, tag: int, kind: int) -> Reply:
    if kit.saved.credentials.pop(slot(tag, kind), None) is None:
        return fail(NOT_FOUND)
    kit.saved.writes += 1
    return ok(takes_s=kit.delay(0.03))


def _read(kit: VirtualKit, tag: int, kind: int) -> Reply:
    if (tag, kind) == (IDENTITY_TAG, SlotType.DEVICE_IDENTITY_PUBLIC_KEY):
        content: str | None = signing.public_pem(signing.identity_key(kit))
    else:
        present = kit.saved.credentials.get(slot(tag, kind))
        if present is None:
            return fail(NOT_FOUND)
        content = None if kind in UNREADABLE else present.content
    if content is None:
        return fail(NO_ACCESS)
    return ok(f'%CMNG: {tag},{kind},"{digest(content)}","{content}"')


def _list(kit: VirtualKit, request: CommandRequest) -> Reply:
    wanted_tag = request.number(1, 0, IDENTITY_TAG) if request.given(1) else None
    wanted_kind = request.number(2, 0, SlotType.NORDIC_PUBLIC_KEY) if request.given(2) else None
    lines = []
    for tag, kind, sha in [*_written(kit), *_modem_own(kit)]:
        if wanted_tag in {None, tag} and wanted_kind in {None, kind}:
            lines.append(f'%CMNG: {tag},{kind},"{sha}"')
    return ok(*lines)


def _written(kit: VirtualKit) -> list[tuple[int, int, str]]:
    items = []
    for key, credential in kit.saved.credentials.items():
        tag, kind = key.split(",")
        items.append((int(tag), int(kind), credential.sha256))
    return sorted(items)


def _modem_own(kit: VirtualKit) -> list[tuple[int, int, str]]:
    """Return the maker's credentials: listed, but neither written nor deleted by the host."""
    own = [(tag, kind, digest(f"maker's credential {kind}")) for tag, kind in _MODEM_TAGS]
    identity = digest(signing.public_pem(signing.identity_key(kit)))
    return [*own, (IDENTITY_TAG, SlotType.DEVICE_IDENTITY_PUBLIC_KEY, identity)]


COMMANDS = {"%CMNG": only(manage, RequestForm.SET)}
