"""Modes, bands and place: %XSYSTEMMODE %XCBAND %XBANDLOCK %XCONNSTAT %LOCATION.

%XFACTORYRESET sets them back.
"""

import re

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only
from at.virtual.families import settings
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.session import ModemMode

_BANDS = (1, 2, 3, 4, 5, 8, 12, 13, 18, 19, 20, 25, 26, 28, 66)
_SATELLITE_BANDS = (23, 255, 256)
_LOCK_BITS = 88
_DECIMAL = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,9})?", re.ASCII)
_RADIOS_OFF = {ModemMode.OFF, ModemMode.FLIGHT, ModemMode.FLIGHT_UICC_ON}


def system_mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XSYSTEMMODE: the radios in use; it changes only while they are off."""
    if request.form is RequestForm.READ:
        satellite = (int(kit.saved.by_satellite),) if kit.knows_satellites else ()
        return ok("%XSYSTEMMODE: " + ",".join(map(str, kit.saved.system_mode + satellite)))
    if request.form is RequestForm.TEST:
        return ok(
            f"%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4){',(0,1)' if kit.knows_satellites else ''}"
        )
    lte_m, nb_iot, gnss = (request.number(index, 0, 1) for index in range(3))
    preference = request.number(3, 0, 4)
    by_satellite = request.number(4, 0, int(kit.knows_satellites), default=0)
    if len(request.parameters) > 4 + kit.knows_satellites:
        raise BadRequest
    if kit.session.fun not in _RADIOS_OFF or not (lte_m or nb_iot or gnss or by_satellite):
        return fail()
    if gnss and by_satellite:
        return fail()  # one receiver serves both
    kit.saved.system_mode = (lte_m, nb_iot, gnss, preference)
    kit.saved.by_satellite = bool(by_satellite)
    return ok(takes_s=kit.delay(0.002))


def current_band(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XCBAND: the band in use, 0 while there is none; the test form lists all."""
    if request.form is RequestForm.TEST:
        bands = (*_BANDS, *(_SATELLITE_BANDS if kit.knows_satellites else ()))
        return ok(f"%XCBAND: ({','.join(map(str, bands))})")
    cells = kit.cells_in_range()
    return ok(f"%XCBAND: {cells[0].cell.band if kit.registered and cells else 0}")


def band_lock(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XBANDLOCK: 0 removes both locks, 1 sets the permanent one, 2 that until the next restart.

    Bits, the last one for band 1; for satellites a list of bands stands behind an empty mask.
    """
    if request.form is RequestForm.READ:
        return ok(f'%XBANDLOCK: "{kit.saved.band_lock}","{kit.session.band_lock}"')
    operation = request.number(0, 0, 2)
    lock = _lock(kit, request) if operation else ""
    if kit.active:
        return fail(settings.NOT_WHILE_ACTIVE)
    if operation != 2:
        kit.saved.band_lock = lock
    if operation != 1:
        kit.session.band_lock = lock
    return ok()


def _lock(kit: VirtualKit, request: CommandRequest) -> str:
    """Return the lock as the read form shows it. Raises BadRequest."""
    if kit.knows_satellites and request.given(2):
        listed = request.text(2)
        if not set(listed.split(",")) <= {str(band) for band in _SATELLITE_BANDS}:
            raise BadRequest
        return listed
    bits = request.text(1)
    if not re.fullmatch(f"[01]{{1,{_LOCK_BITS}}}", bits):
        raise BadRequest
    bits = bits.rjust(_LOCK_BITS, "0")
    if not any(bits[-band] == "1" for band in _BANDS):
        raise BadRequest  # no band would be left
    return bits


def connection_statistics(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XCONNSTAT."""
    if request.form is RequestForm.READ:
        return ok("%XCONNSTAT: 0,0,12,34,708,291")
    request.number(0, 0, 1)
    return ok()


def factory_reset(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XFACTORYRESET: the manual does not say whether 0 erases credentials; here it does."""
    if kit.session.fun not in _RADIOS_OFF:
        return fail()
    everything = request.number(0, 0, 1) == 0
    kit.saved.system_mode, kit.saved.by_satellite = (1, 0, 1, 0), False
    if everything:
        kit.saved.credentials.clear()
    return ok(takes_s=kit.delay(1.0))


def location(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%LOCATION: with 2 the host tells firmware for satellites where the kit is."""
    if not kit.knows_satellites:
        raise BadRequest
    if request.number(0, 0, 2) == 2:
        latitude, longitude, altitude = (_number(request.text(index)) for index in (1, 2, 3))
        request.number(4, 0, 2**31 - 1)
        request.number(5, 0, 2**31 - 1)
        if abs(latitude) > 90 or abs(longitude) > 180 or abs(altitude) > 100_000:
            raise BadRequest
    return ok()


def _number(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise BadRequest
    return float(text)


COMMANDS = {
    "%XSYSTEMMODE": system_mode,
    "%XCBAND": only(current_band, RequestForm.RUN, RequestForm.TEST),
    "%XBANDLOCK": band_lock,
    "%XCONNSTAT": connection_statistics,
    "%XFACTORYRESET": factory_reset,
    "%LOCATION": location,
}
