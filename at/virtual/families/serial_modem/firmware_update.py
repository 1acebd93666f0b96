"""Firmware for the kit: #XDFUINIT #XDFUWRITE #XDFUAPPLY over the UART, #XFOTA from a URL.

An application image is checked as MCUboot does (header, SHA-256 of its TLVs); the next #XRESET
starts it. A modem image is any file that names a revision for this chip, such as
"mfw_nrf91x1_2.0.3", because the real ones are opaque; #XMODEMRESET or #XRESET starts it. A full
modem image is written in bootloader mode.
"""

import hashlib
import re
import struct

from at.virtual.command_line import BadRequest, CommandRequest, tested
from at.virtual.kit import DataMode, Fetch, Fetched, Reply, VirtualKit, fail, ok
from at.virtual.session import Update

APPLICATION, DELTA, FULL, BOOTLOADER = range(4)
_WRITTEN, _APPLIED = 1, 2
_LARGEST = 16 * 1024 * 1024
_LARGEST_PIECE = 65536
_FOUND = 200

_HEADER = struct.Struct("<IIHHIIBBHI")  # MCUboot's image_header
_MAGIC = 0x96F3B83D
_TLV = struct.Struct("<HH")
_TLVS, _PROTECTED_TLVS, _SHA256_TLV = 0x6907, 0x6908, 0x10


def initialize(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XDFUINIT."""
    kind = request.number(0, APPLICATION, BOOTLOADER)
    if kind == FULL:
        kit.session.update = None
        kit.bootloader_mode = True
        kit.schedule_restart(0.1)
        return ok()
    kit.session.update = Update(kind, request.number(1, 1, _LARGEST))
    return ok(takes_s=kit.delay(0.2))


def write(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XDFUWRITE: <len> raw bytes follow the OK."""
    kind = request.number(0, APPLICATION, BOOTLOADER)
    address = request.number(1, 0, _LARGEST)
    size = request.number(2, 1, _LARGEST_PIECE)
    if kind == FULL and kit.bootloader_mode and kit.session.update is None:
        kit.session.update = Update(FULL, _LARGEST)
    update = kit.session.update
    if update is None or update.kind != kind:
        return fail()

    def written(data: bytes) -> None:
        valid = address == len(update.data) and address + len(data) <= update.size
        if valid:
            update.data += data
        kit.notify("#XDATAMODE: 0")
        kit.notify(f"#XDFU: {kind},{_WRITTEN},{0 if valid else -1}")

    return Reply(data=DataMode(size, written))


def apply(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XDFUAPPLY: checks the image; the next restart starts it."""
    kind = request.number(0, APPLICATION, BOOTLOADER)
    update = kit.session.update
    if update is None or update.kind != kind:
        return fail()
    kit.session.update = None
    if kind == FULL and not kit.bootloader_written:
        kit.bootloader_written = True  # the first of two segments; the firmware follows
        valid = True
    else:
        valid = accept(kit, kind, bytes(update.data))
    kit.schedule(0.0, lambda: kit.notify(f"#XDFU: {kind},{_APPLIED},{0 if valid else -1}"))
    if kind == FULL and valid and kit.saved.pending_modem:
        kit.bootloader_mode = kit.bootloader_written = False
        kit.schedule_restart(0.5)
    return ok(takes_s=kit.delay(0.5))


def accept(kit: VirtualKit, kind: int, image: bytes) -> bool:
    """Check an image and store it for the next restart; return whether it is valid."""
    if "flash-failed" in kit.faults:
        return False
    if kind == APPLICATION:
        version = image_version(image)
        if version is None:
            return False
        kit.saved.pending_image = version
        return True
    if kind == BOOTLOADER:
        return image_version(image) is not None
    revision = re.search(
        rb"mfw_(nrf[0-9x]+)_\d{1,3}\.\d{1,3}\.\d{1,3}(-[A-Za-z0-9.-]{1,20})?", image
    )
    if revision is None or revision.group(1).decode() != kit.model.family:
        return False
    kit.saved.pending_modem = revision.group().decode()
    return True


def image_version(image: bytes) -> str | None:
    """Return the version of an MCUboot image; None if it is damaged or something else."""
    if len(image) < _HEADER.size:
        return None
    fields = _HEADER.unpack_from(image)
    magic, _, header_size, protected_size, size, _, major, minor, revision, build = fields
    offset = header_size + size
    if magic != _MAGIC or offset + protected_size + _TLV.size > len(image):
        return None
    if protected_size and _TLV.unpack_from(image, offset) != (_PROTECTED_TLVS, protected_size):
        return None
    offset += protected_size
    digest = hashlib.sha256(image[:offset]).digest()
    tlv_magic, total = _TLV.unpack_from(image, offset)
    end = offset + total
    if tlv_magic != _TLVS or end > len(image):
        return None
    offset += _TLV.size
    while offset + _TLV.size <= end:
        kind, length = _TLV.unpack_from(image, offset)
        offset += _TLV.size
        if kind == _SHA256_TLV:
            if image[offset : offset + length] != digest:
                return None
            return f"{major}.{minor}.{revision}" + (f"+{build}" if build else "")
        offset += length
    return None


def from_url(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XFOTA: 0 stop, 1 application, 2 modem delta, 7 size of the delta area, 9 erase it."""
    operation = request.number(0, 0, 9)
    if operation == 0:
        kit.fetches.clear()
        kit.session.fetching = False
        return ok()
    if operation == 7:
        return ok("#XFOTA: 0,0")
    if operation == 9:
        kit.schedule(kit.delay(0.5), lambda: kit.notify("#XFOTA: 3,0"))
        return ok()
    if operation not in {1, 2}:
        raise BadRequest
    url = request.text(1)
    if not url.startswith(("http://", "https://")) or kit.session.fetching:
        return fail()
    if not kit.registered:
        kit.schedule(0.0, lambda: kit.notify("#XFOTA: 1,1,1"))
        return ok()
    kind = APPLICATION if operation == 1 else DELTA
    session = kit.session
    session.fetching = True

    def fetched(answer: Fetched | None) -> None:
        if kit.session is not session or not session.fetching:
            return
        session.fetching = False
        if answer is None or answer.status != _FOUND:
            kit.notify("#XFOTA: 1,1,1")
            return
        kit.notify("#XFOTA: 1,0,100")
        if accept(kit, kind, answer.body):
            kit.saved.fota_report = "5,0"
            kit.notify("#XFOTA: 4,0")
        else:
            kit.notify("#XFOTA: 1,1,3")

    kit.notify("#XFOTA: 0,0")
    kit.fetches.append(Fetch(url, fetched))
    return ok()


COMMANDS = {
    "#XDFUINIT": tested(initialize, "(0,1,2,3),<size>"),
    "#XDFUWRITE": tested(write, "(0,1,2,3),<addr>,<len>"),
    "#XDFUAPPLY": tested(apply, "(0,1,2,3)"),
    "#XFOTA": from_url,
}
BOOTLOADER_COMMANDS = {"", "#XDFUINIT", "#XDFUWRITE", "#XDFUAPPLY", "#XRESET"}
