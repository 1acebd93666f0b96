"""The SIM: +CPIN +CPINR +CIMI %XICCID %XSIM +CRSM."""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only
from at.virtual.families import registration
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.session import ModemMode

_CARD_ON = {ModemMode.NORMAL, ModemMode.RECEIVE_ONLY, ModemMode.LTE_ON, ModemMode.UICC_ON}
_RETRIES = {"SIM PIN": 3, "SIM PIN2": 3, "SIM PUK": 10, "SIM PUK2": 10}
_PIN = "1234"
_NOT_ALLOWED_NOW, _WRONG_PASSWORD = 3, 16  # of +CME ERROR, TS 27.007 clause 9.2
_READ_BINARY, _STATUS = 176, 242
_COMMANDS = {_READ_BINARY, 178, 192, 203, 214, 219, 220, _STATUS}
# Status words of TS 102 221 clause 10.2.1: done, wrong length, not allowed, no such file.
_DONE, _WRONG_LENGTH, _NOT_ALLOWED, _NO_FILE = (144, 0), (103, 0), (105, 130), (106, 130)


def pin(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CPIN: an error until the SIM is up; a card that waits for its PIN takes it."""
    if request.form is RequestForm.SET:
        return _unlock(kit, request.text(0))
    card = kit.faults.card
    if card is not None and card.code and kit.session.fun in _CARD_ON:
        return ok(f"+CPIN: {card.code}")
    return ok("+CPIN: READY") if kit.session.sim_up else _no_sim(kit)


def _unlock(kit: VirtualKit, code: str) -> Reply:
    """Take a PIN. The third that is wrong blocks it: the card then waits for its PUK."""
    if "sim-pin" not in kit.faults or kit.session.fun not in _CARD_ON:
        return fail(_NOT_ALLOWED_NOW) if kit.session.sim_up else _no_sim(kit)
    if code == _PIN:
        kit.faults.pin_tries = _RETRIES["SIM PIN"]
        kit.faults.switch_off("sim-pin")
        registration.begin(kit)
        return ok()
    kit.faults.pin_tries -= 1
    if not kit.faults.pin_tries:
        kit.faults.switch_off("sim-pin")
        kit.faults.switch_on("sim-puk")
    return fail(_WRONG_PASSWORD)


def subscriber(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """+CIMI: the IMSI, of the test network 001 01."""
    return ok(_imsi(kit)) if kit.session.sim_up else _no_sim(kit)


def card_number(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XICCID, and %ICCID of an nRF93M1."""
    if not kit.session.sim_up:
        return _no_sim(kit)
    return ok(f"{request.name}: {_iccid(kit)}")


def sim_state(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XSIM."""
    if request.form is RequestForm.READ:
        if (fault := kit.faults.card) is not None and kit.session.fun is not ModemMode.OFF:
            return ok(f"%XSIM: 0,{fault.cause}")
        return ok(f"%XSIM: {int(kit.session.sim_up)}")
    kit.session.subscriptions.xsim = request.number(0, 0, 1)
    return ok()


def _no_sim(kit: VirtualKit) -> Reply:
    fault = kit.faults.card
    return fail() if fault is None else fail(fault.error)


def _imsi(kit: VirtualKit) -> str:
    return f"00101{kit.saved.imei[4:14]}"


def _iccid(kit: VirtualKit) -> str:
    return f"8999900{kit.saved.imei[2:14]}F"


def retries(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CPINR: remaining attempts of a code."""
    code = request.text(0)
    if code not in _RETRIES:
        raise BadRequest
    if code == "SIM PIN" and (fault := kit.faults.card) is not None and fault.code:
        return ok(f'+CPINR: "{code}",{kit.faults.pin_tries}')
    return ok(f'+CPINR: "{code}",{_RETRIES[code]}') if kit.session.sim_up else _no_sim(kit)


def access(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CRSM: reads a few files; writing needs the operator's key and is refused."""
    command = request.number(0, 0, 255)
    if command not in _COMMANDS:
        raise BadRequest
    if not kit.session.sim_up:
        return _no_sim(kit)
    content = _files(kit).get(
        request.number(1, 0, 65535, default=0 if command == _STATUS else None)
    )
    if content is None:
        return _words(*_NO_FILE)
    if command != _READ_BINARY:
        return _words(*_NOT_ALLOWED)
    high, low, size = (request.number(index, 0, 255) for index in (2, 3, 4))
    start = high * 256 + low
    end = start + (size or len(content) - start)
    if not start < end <= len(content):
        return _words(*_WRONG_LENGTH)
    return _words(*_DONE, content[start:end])


def _files(kit: VirtualKit) -> dict[int, bytes]:
    """Return elementary files of TS 31.102 by their identifier, as bytes."""
    return {
        0x2FE2: _swapped(_iccid(kit)),
        0x6F07: b"\x08" + _swapped(f"9{_imsi(kit)}"),  # length, then 9 for an odd number of digits
        0x6F3E: b"\xff" * 4,  # group identifier, level 1
        0x6F46: b"\x00" + b"Test network".ljust(16, b"\xff"),  # service provider name
        0x6F7B: b"\xff" * 12,  # forbidden networks
        0x6FAD: b"\x00\x00\x00\x02",  # the last byte is the number of digits of the MNC
    }


def _swapped(digits: str) -> bytes:
    return bytes.fromhex("".join(digits[i + 1] + digits[i] for i in range(0, len(digits), 2)))


def _words(sw1: int, sw2: int, response: bytes = b"") -> Reply:
    return ok(f'+CRSM: {sw1},{sw2},"{response.hex().upper()}"')


COMMANDS = {
    "+CPIN": only(pin, RequestForm.READ, RequestForm.SET),
    "+CPINR": only(retries, RequestForm.SET),
    "+CIMI": only(subscriber, RequestForm.RUN),
    "%XICCID": only(card_number, RequestForm.RUN),
    "%XSIM": sim_state,
    "+CRSM": only(access, RequestForm.SET),
}
