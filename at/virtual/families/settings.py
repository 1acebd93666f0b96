"""Settings that firmware sends at start-up: kept, and read back by the manual's grammar.

They change nothing that a host can see here, but a start-up that was refused one would stop.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from at.virtual.command_line import BadRequest, CommandRequest, Handler, RequestForm
from at.virtual.kit import Reply, VirtualKit, fail, ok

NOT_FOUND = 513
NOT_WHILE_ACTIVE = 518
INVALID_CONTENT = 527
# Of a search: the sleeps of a range, or up to five sleeps of a table, in seconds.
_PATTERN = re.compile(r"0,\d{1,5},\d{1,5},\d{0,5},\d{1,5}|1(?:,\d{1,5}){1,5}", re.ASCII)
_FEATURES = (0, 3)
"""Features of %FEACONF: proprietary PSM, and PLMN selection optimisation."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A command whose parameters are numbers, each with its range."""

    ranges: tuple[tuple[int, int], ...]
    needed: int = 1
    """How many of the parameters must be there."""
    default: str | None = None
    """What the read form shows before it was set; None where there is no read form."""
    lasting: bool = True
    """Whether it is kept in flash; else a restart clears it."""
    groups: bool = False
    """Whether the last of these counts groups behind it: a state and a range of MHz.

    Without a parameter the command deletes what was set."""
    while_active: bool = True
    test: str = ""
    """What the test form answers, "" where there is none."""


SETTINGS: Mapping[str, Setting] = {
    "%REL14FEAT": Setting(((0, 1),) * 5, 5, "0,0,0,0,0", while_active=False),
    "%XDATAPRFL": Setting(((0, 4),), default="2"),  # from least power to most performance
    "%RAI": Setting(((0, 2),), default="0"),
    "%XEPCO": Setting(((0, 1),), default="1"),
    "%XCOEX0": Setting(((1, 4),), default="0", groups=True),
    "%XMAGPIO": Setting((*((0, 1),) * 3, (1, 12)), 4, "0,0,0,0", groups=True),
    "%XPOFWARN": Setting(((0, 1), (30, 33)), lasting=False),
    "%XVBATLVL": Setting(((0, 1),), lasting=False),
    "%XVBATLOWLVL": Setting(((3100, 5000),), default="3300"),
    "%XTEMPHIGHLVL": Setting(((1, 85),), default="55"),
    "+CNMI": Setting(
        ((0, 3), (0, 3), (0, 3), (0, 2), (0, 1)), 1, "0,0,0,0,0", lasting=False,
        test="(0-3),(0-3),(0-3),(0-2),(0,1)",
    ),
    "+CIND": Setting(
        ((0, 1),) * 3, 0, "0,0,0", lasting=False,
        test='("service",(0,1)),("roam",(0,1)),("message",(0,1))',
    ),
}  # fmt: skip


def handler_of(name: str, setting: Setting) -> Handler:
    """Return the handler of a command whose parameters are numbers that are kept."""

    def handle(kit: VirtualKit, request: CommandRequest) -> Reply:
        kept = kit.saved.settings if setting.lasting else kit.session.settings
        if request.form is RequestForm.READ and setting.default is not None:
            return ok(f"{name}: {kept.get(name, setting.default)}")
        if request.form is RequestForm.TEST and setting.test:
            return ok(f"{name}: {setting.test}")
        if request.form is RequestForm.RUN and setting.groups:
            kept.pop(name, None)
            return ok()
        if request.form is not RequestForm.SET:
            raise BadRequest
        numbers = _numbers(request, setting, (setting.default or "").split(","))
        if kit.active and not setting.while_active:
            return fail(NOT_WHILE_ACTIVE)
        kept[name] = ",".join(numbers)
        return ok()

    return handle


def _numbers(request: CommandRequest, setting: Setting, defaults: list[str]) -> list[str]:
    """Return the parameters; what is left out has its default. Raises BadRequest."""
    given = len(request.parameters)
    if given < setting.needed or (given > len(setting.ranges) and not setting.groups):
        raise BadRequest
    numbers = []
    for index, (low, high) in enumerate(setting.ranges):
        if request.given(index):
            numbers.append(str(request.number(index, low, high)))
        elif index < setting.needed:
            raise BadRequest
        else:
            numbers.append(defaults[index] if index < len(defaults) else "")
    if setting.groups and given != len(setting.ranges) + 3 * int(numbers[-1]):
        raise BadRequest
    return numbers + [
        str(request.number(index, 0, 9999)) for index in range(len(setting.ranges), given)
    ]


def power_off_warning(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XPOFWARN: the voltage is needed to switch it on."""
    if request.form is RequestForm.SET and request.number(0, 0, 1) and not request.given(1):
        raise BadRequest
    return handler_of("%XPOFWARN", SETTINGS["%XPOFWARN"])(kit, request)


def features(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%FEACONF: 0 writes a feature, 1 reads one, 2 lists them; from firmware 1.3.0 on."""
    if not kit.at_least(1, 3, 0):
        raise BadRequest
    operation = request.number(0, 0, 2)
    if operation == 2:
        return ok("%FEACONF: " + ",".join(map(str, _FEATURES)))
    feature = request.number(1, 0, max(_FEATURES))
    if feature not in _FEATURES:
        raise BadRequest
    name = f"%FEACONF {feature}"
    if operation == 1:
        return ok(f"%FEACONF: {kit.saved.settings.get(name, '0')}")
    kit.saved.settings[name] = str(request.number(2, 0, 1))
    return ok()


def modem_trace(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XMODEMTRACE: 0 off, 1 a predefined set; its bitmaps are for the maker's support alone."""
    if len(request.parameters) > 2:
        raise BadRequest
    if request.number(0, 0, 1):
        kit.saved.settings["%XMODEMTRACE"] = str(request.number(1, 1, 5))
    else:
        kit.saved.settings.pop("%XMODEMTRACE", None)
    return ok()


def periodic_search(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%PERIODICSEARCHCONF: 0 writes up to four patterns, 1 reads, 2 clears, 3 searches now."""
    name = "%PERIODICSEARCHCONF"
    mode = request.number(0, 0, 3)
    if mode == 0:
        numbers = request.number(1, 0, 1), request.number(2, 0, 4), request.number(3, 0, 20)
        patterns = [request.text(index) for index in range(4, len(request.parameters))]
        if not 1 <= len(patterns) <= 4:
            raise BadRequest
        if not all(map(_PATTERN.fullmatch, patterns)):
            return fail(INVALID_CONTENT)
        written = (*map(str, numbers), *(f'"{pattern}"' for pattern in patterns))
        kit.saved.settings[name] = ",".join(written)
    elif len(request.parameters) > 1:
        raise BadRequest
    elif mode == 1:
        kept = kit.saved.settings.get(name)
        return fail(NOT_FOUND) if kept is None else ok(f"{name}: {kept}")
    elif mode == 2:
        kit.saved.settings.pop(name, None)
    return ok()


def cellular_profile(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%CELLULARPRFL, of firmware for satellites: 1 subscribes, 2 sets a profile or removes it."""
    if not kit.knows_satellites:
        raise BadRequest
    given = len(request.parameters)
    if request.number(0, 1, 2) == 1:
        if given > 1:
            raise BadRequest
        return ok()
    name = f"%CELLULARPRFL {request.number(1, 0, 1)}"
    if given == 2:
        kit.saved.settings.pop(name, None)
        return ok()
    profile = request.number(2, 1, 15), request.number(3, 0, 2)
    if given != 4:
        raise BadRequest
    kit.saved.settings[name] = "{},{}".format(*profile)
    return ok()


COMMANDS = {
    **{name: handler_of(name, setting) for name, setting in SETTINGS.items()},
    "%XPOFWARN": power_off_warning,
    "%FEACONF": features,
    "%XMODEMTRACE": modem_trace,
    "%PERIODICSEARCHCONF": periodic_search,
    "%CELLULARPRFL": cellular_profile,
}
