"""Made-up orbits: GPS time, and what satellites send of them in the documented formats. Pure."""

import math
import struct

SATELLITES = 32
UNIX_OF_GPS_EPOCH = 315_964_800
LEAP_S = 18
WEEK_S = 604_800
DAY_S = 86_400
_MU = 3.986005e14
_EARTH_RATE = 7.2921151467e-5
_SQRT_A = 5153.65
_ECCENTRICITY = 0.008
_PERIGEE = 0.2  # semicircles
_INCLINATION = 0.3055  # semicircles: 55 degrees
_EPHEMERIS = struct.Struct("<BBHHbhibBBHihiiIhIiihhhhhh")
_ALMANAC = struct.Struct("<BBBBHhhBIiiihh")
_GALILEO_EPHEMERIS = struct.Struct("<BHbiihBHihiiIhIiihhhhhh")
_GALILEO_ALMANAC = struct.Struct("<BBHBHhhB6h")


def ephemeris(sv_id: int, at_s: float) -> bytes:
    """Return the 62 bytes of a satellite's ephemeris for a GPS time (types 2 and 12)."""
    toe, reference_s = _reference(at_s, 16)
    node, anomaly = _angles(sv_id % SATELLITES, reference_s)
    return _EPHEMERIS.pack(
        *(sv_id, 0, (toe >> 4) & 0x3FF, toe, 0, 0),
        *(int(1e-5 * 2**31), int(-1e-8 * 2**31), 0, 0, toe),
        *(int(_PERIGEE * 2**31), int(1.4e-9 * 2**43), int(anomaly * 2**31)),
        *(int(-2.6e-9 * 2**43), int(_ECCENTRICITY * 2**33), 0),
        *(int(_SQRT_A * 2**19), int(_INCLINATION * 2**31), int(node * 2**31)),
        *(0, 0, 0, 200 * 32, 0, 0),
    )


def almanac(sv_id: int, at_s: float) -> bytes:
    """Return the 31 bytes of a satellite's almanac (types 3 and 11)."""
    toa, reference_s = _reference(at_s, 4096)
    node, anomaly = _angles(sv_id % SATELLITES, reference_s)
    return _ALMANAC.pack(
        *(sv_id, int(at_s // WEEK_S) % 256, toa, 0, int(_ECCENTRICITY * 2**21)),
        *(int((_INCLINATION - 0.3) * 2**19), int(-2.6e-9 * 2**38), 0),
        *(int(_SQRT_A * 2**11), int(node * 2**23), int(_PERIGEE * 2**23)),
        *(int(anomaly * 2**23), 0, 0),
    )


def galileo_ephemeris(sv_id: int, at_s: float) -> bytes:
    """Return the 61 bytes of a Galileo ephemeris (type 15)."""
    toe, reference_s = _reference(at_s, 60)
    node, anomaly = _angles(sv_id % SATELLITES, reference_s)
    return _GALILEO_EPHEMERIS.pack(
        *(sv_id, toe, 0, 0, 0, 0, 107, toe),
        *(int(_PERIGEE * 2**31), 0, int(anomaly * 2**31), 0, int(0.0002 * 2**33), 0),
        *(int(5440.6 * 2**19), int(0.3111 * 2**31), int(node * 2**31)),
        *(0, 0, 0, 0, 0, 0),
    )


def galileo_almanac(sv_id: int, at_s: float) -> bytes:
    """Return the 24 bytes of a Galileo almanac (type 14)."""
    toa, reference_s = _reference(at_s, 600)
    node, anomaly = _angles(sv_id % SATELLITES, reference_s)
    week = int(at_s // WEEK_S) % 4
    return _GALILEO_ALMANAC.pack(
        *(sv_id, week, toa, 0, 0, 0, 0, 0), *(0, int(node * 2**15), 0, int(anomaly * 2**15), 0, 0)
    )


def elevation_deg(sv_id: int, at_s: float, lat: float, lon: float) -> float:
    """Return the elevation of a satellite over a point, from the elements of its ephemeris."""
    node, mean = (math.pi * angle for angle in _angles(sv_id % SATELLITES, at_s))
    node -= _EARTH_RATE * (at_s % WEEK_S)
    # The equation of the centre, to the second power of so small an eccentricity.
    true = mean + 2 * _ECCENTRICITY * math.sin(mean) + 1.25 * _ECCENTRICITY**2 * math.sin(2 * mean)
    radius = _SQRT_A**2 * (1 - _ECCENTRICITY**2) / (1 + _ECCENTRICITY * math.cos(true))
    along, tilt = true + _PERIGEE * math.pi, _INCLINATION * math.pi
    x, y = radius * math.cos(along), radius * math.sin(along) * math.cos(tilt)
    satellite = (
        x * math.cos(node) - y * math.sin(node),
        x * math.sin(node) + y * math.cos(node),
        radius * math.sin(along) * math.sin(tilt),
    )
    phi, lam = math.radians(lat), math.radians(lon)
    up = (math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi))
    ray = [s - 6.371e6 * u for s, u in zip(satellite, up, strict=True)]
    sine = sum(r * u for r, u in zip(ray, up, strict=True)) / math.hypot(*ray)
    return math.degrees(math.asin(sine))


def _angles(number: int, at_s: float) -> tuple[float, float]:
    """Return a node's longitude when the week began, and the mean anomaly at a GPS time.

    Both in semicircles. A receiver adds the rotation of the earth since the week began.
    """
    plane, slot = number % 6, number // 6
    motion = math.sqrt(_MU) / _SQRT_A**3 / math.pi
    node = plane / 3 - _EARTH_RATE / math.pi * (at_s - at_s % WEEK_S)
    anomaly = slot / 3 + plane / 18 + motion * at_s
    return _wrap(node), _wrap(anomaly)


def _reference(at_s: float, unit_s: int) -> tuple[int, float]:
    """Return a time of the week in whole units, and the GPS time that it stands for."""
    units = int(at_s % WEEK_S) // unit_s
    return units, at_s - at_s % WEEK_S + units * unit_s


def _wrap(semicircles: float) -> float:
    return (semicircles + 1) % 2 - 1


def gps_day_began(unix_s: float) -> int:
    """Return when the GPS day of a Unix time began, in Unix seconds."""
    return int(gps_seconds(unix_s) // DAY_S) * DAY_S + UNIX_OF_GPS_EPOCH - LEAP_S


def gps_seconds(unix_s: float) -> float:
    """Return seconds of GPS time since its epoch."""
    return unix_s - UNIX_OF_GPS_EPOCH + LEAP_S
