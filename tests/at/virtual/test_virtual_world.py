"""What the virtual kit hears is where it is; what its application prints is what happened."""

from __future__ import annotations

import base64
import re

import pytest

from at.virtual.console import crc16, split
from at.virtual.families.wifi import VirtualCompanion
from at.virtual.modem import Port, VirtualModem
from at.virtual.options import VirtualOptions, check_digit
from at.virtual.radio_world import load_world


def modem(**options: object) -> VirtualModem:
    console_apart = bool(options.pop("console_apart", False))
    given = VirtualOptions(instant=True, **options)  # type: ignore[arg-type]
    return VirtualModem(given, now=0.0, unix_time=1_700_000_000.0, console_apart=console_apart)


def ask(kit: VirtualModem, line: str) -> list[str]:
    kit.receive(line.encode() + b"\r", now=kit.kit.now)
    return kit.data_to_send().decode().split("\r\n")[:-1]


def test_the_kit_moves_along_its_path_and_back() -> None:
    world = load_world()
    places = [world.position(60.0 * step) for step in range(21)]
    assert places[0] == places[20]
    assert len(set(places)) == 11
    assert places[:11] == places[10:][::-1]


def test_what_is_heard_first_is_what_is_near() -> None:
    kit = modem()
    ask(kit, "AT+CFUN=1")
    for seconds in (0.0, 60.0, 300.0):
        kit.advance(seconds)
        here = kit.kit.position
        nearest = min(
            kit.kit.cells_in_range(), key=lambda found: here.distance_m(found.cell.position)
        )
        answer = ask(kit, "AT%XMONITOR")[0]
        assert f'"{nearest.cell.eci:08X}"' in answer
        assert nearest.rsrp_dbm == max(found.rsrp_dbm for found in kit.kit.cells_in_range())


def test_a_registered_kit_that_moves_tells_its_new_cell() -> None:
    kit = modem()
    ask(kit, "AT+CEREG=2")
    first = ask(kit, "AT+CFUN=1")[-1]
    kit.advance(11 * 60.0)
    notices = kit.data_to_send().decode().split("\r\n")[:-1]
    assert notices
    assert all(line.startswith('+CEREG: 1,"09') for line in notices)
    assert first not in notices[:1]
    last = ask(kit, "AT+CEREG?")[0]
    assert last == notices[-1].replace("+CEREG: ", "+CEREG: 2,")


@pytest.mark.parametrize("search", [0, 1, 2])
def test_a_measurement_gives_the_serving_cell_and_neighbours(search: int) -> None:
    kit = modem()
    ask(kit, "AT+CFUN=1")
    ok, notice = ask(kit, f"AT%NCELLMEAS={search}" if search else "AT%NCELLMEAS")
    fields = notice.removeprefix("%NCELLMEAS: ").split(",")
    assert (ok, fields[0]) == ("OK", "0")
    assert (len(fields) - 10) % 5 == 1  # the time of the timing advance stands at the end
    assert 1 <= (len(fields) - 11) // 5 <= 17


def test_a_second_measurement_waits_and_the_first_can_be_stopped() -> None:
    kit = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    kit.receive(b"AT+CFUN=1\r", now=0.0)
    kit.advance(20.0)
    kit.data_to_send()
    assert ask(kit, "AT%NCELLMEAS=5,4") == ["OK"]
    assert ask(kit, "AT%NCELLMEAS") == ["ERROR"]
    answer = ask(kit, "AT%NCELLMEASSTOP")
    assert answer[0] == "OK"
    assert answer[1].startswith("%NCELLMEAS: 2,")
    kit.advance(60.0)
    assert kit.data_to_send() == b""
    assert ask(kit, "AT%NCELLMEAS") == ["OK"]


def test_the_companion_hears_what_is_around_the_kit() -> None:
    kit = modem()
    companion = VirtualCompanion(kit.kit)
    companion.receive(b"ATE0\r\nAT+CWLAP\r\nAT+CWMODE=1\r\nAT+CWLAP\r\n")
    text = companion.data_to_send().decode()
    assert text.startswith("ATE0\r\n\r\nOK\r\n\r\nERROR\r\n\r\nOK\r\n")
    heard = re.findall(r'\+CWLAP:\(3,"([^"]*)",(-\d+),"([0-9a-f:]{17})",(\d+),', text)
    assert {"phone", "cafe_nomap", "net-000"} <= {ssid for ssid, *_ in heard}
    levels = [int(level) for _, level, *_ in heard]
    assert levels == sorted(levels, reverse=True)


def test_a_crash_prints_its_dump_and_restarts() -> None:
    kit = modem(faults=("crash=5",))
    ask(kit, "AT+CMEE=1")
    kit.advance(4.9)
    assert kit.data_to_send() == b""
    kit.advance(5.1)
    text = kit.data_to_send().decode()
    dump = bytes.fromhex("".join(re.findall(r"#CD:([0-9a-f]+)\r", text)))
    assert dump[:2] == b"ZE"
    assert text.index("#CD:BEGIN#") < text.index("#CD:END#") < text.index("*** Booting")
    assert re.findall(r"MC:([A-Za-z0-9+/=]+):", text)
    assert ask(kit, "AT+CMEE?") == ["+CMEE: 0", "OK"]


def test_the_console_exports_what_is_pending_once() -> None:
    kit = modem(console_apart=True)
    kit.receive_console(b"mflt test heartbeat\rmflt export\r", now=1.0)
    text = kit.data_to_send(Port.CONSOLE).decode()
    chunks = [base64.b64decode(part) for part in re.findall(r"MC:([^:]+):", text)]
    assert chunks[0][0] == 0x48
    message = chunks[0][2:] + chunks[1][2:-2]
    assert int.from_bytes(chunks[1][-2:], "little") == crc16(message)
    assert kit.data_to_send() == b""


@pytest.mark.parametrize("size", [0, 1, 76, 77, 78, 79, 80, 155, 156, 157, 300])
def test_chunks_add_up(size: int) -> None:
    message = bytes(range(256))[:size] * 1 if size <= 256 else bytes(size)
    chunks = list(split(message))
    assert all(len(chunk) <= 80 for chunk in chunks)
    if len(chunks) == 1:
        assert chunks[0] == b"\x08" + message + crc16(message).to_bytes(2, "little")
    assert crc16(b"123456789") == 0x31C3


def test_identities_are_test_identities() -> None:
    kit = modem()
    imei = kit.kit.saved.imei
    assert imei.startswith("00")  # no device that was sold has such a TAC
    assert check_digit(imei[:14]) == imei[14]
    assert modem(imei="35265610036787").kit.saved.imei == "352656100367872"


def test_power_saving_is_kept_as_it_was_asked_for() -> None:
    kit = modem()
    assert ask(kit, "AT+CPSMS?")[0].startswith("+CPSMS: 0,,,")
    own = ask(kit, "AT+CPSMS?")[0].partition(",")[2]
    assert ask(kit, 'AT+CPSMS=1,,,"00101000","00000101"') == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == '+CPSMS: 1,,,"00101000","00000101"'
    assert ask(kit, "AT+CPSMS=0") == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == '+CPSMS: 0,,,"00101000","00000101"'
    assert ask(kit, 'AT+CPSMS=1,,,"0010"') == ["ERROR"]
    assert ask(kit, "AT+CPSMS=") == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == f"+CPSMS: 0,{own}"


def test_a_paging_cycle_is_granted_once_the_kit_is_registered() -> None:
    kit = modem()
    assert ask(kit, "AT+CEDRXS?") == ["OK"]
    assert ask(kit, 'AT+CEDRXS=2,4,"0101"') == ["OK"]
    assert ask(kit, "AT+CEDRXS?") == ['+CEDRXS: 4,"0101"', "OK"]
    assert ask(kit, "AT+CEDRXRDP") == ["+CEDRXRDP: 0", "OK"]
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+CEDRXRDP")[0].startswith('+CEDRXRDP: 4,"0101","0101",')
    assert ask(kit, "AT+CEDRXS=3") == ["OK"]
    assert ask(kit, "AT+CEDRXRDP")[0] == "+CEDRXRDP: 0"
    assert ask(kit, 'AT+CEDRXS=2,9,"0101"') == ["ERROR"]
