"""What the virtual modem answers is what the manual of its firmware has, and no more."""

from __future__ import annotations

import pytest

from at.commands.catalog import command_of, timeout_of
from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions


def modem(*lines: str, **options: object) -> VirtualModem:
    kit = VirtualModem(VirtualOptions(instant=True, **options), now=0.0, unix_time=1_700_000_000.0)  # type: ignore[arg-type]
    for line in lines:
        ask(kit, line)
    return kit


def ask(kit: VirtualModem, line: str) -> list[str]:
    kit.receive(line.encode() + b"\r", now=kit.kit.now)
    return [text for text in kit.data_to_send().decode().split("\r\n") if text]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("AT+CEMODE?", "+CEMODE: 0"),
        ("AT+CEMODE=?", "+CEMODE: (0,2)"),
        ("AT+CGATT?", "+CGATT: 1"),
        ('AT+CPINR="SIM PUK"', '+CPINR: "SIM PUK",10'),
        ("AT+CRSM=176,12258,0,0,10", '+CRSM: 144,0,"989909101038040000F1"'),
        ("AT+CRSM=176,28423,0,0,0", '+CRSM: 144,0,"080910108143000010"'),
        ("AT+CRSM=176,28423,0,8,2", '+CRSM: 103,0,""'),
        ("AT+CRSM=192,28480", '+CRSM: 106,130,""'),
        ('AT+CRSM=214,28589,0,0,1,"00"', '+CRSM: 105,130,""'),
        ("AT+CGCONTRDP=0", '+CGCONTRDP: 0,,"iot.example","","","10.160.0.1","10.160.0.2",,,,,1500'),
        ("AT%COPS=?", '%COPS: (2,"","","00101",7)'),
        ("AT%XDATAPRFL?", "%XDATAPRFL: 2"),
        ("AT+CNEC=?", "+CNEC: (0,8,16,24)"),
        ("AT+CEDRXS=?", '+CEDRXS: (0-3),(4-5),("0000"-"1111")'),
    ],
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    kit = modem("AT+CFUN=1")
    line, final = ask(kit, command)
    assert (line, final) == (answer, "OK")
    typed = command_of(command)
    if typed is not None:
        typed.parse([line])


@pytest.mark.parametrize(
    "command",
    [
        *("AT+CREG?", "AT+CGREG?", "AT+C5GREG?", "AT+CSQ", "ATI", "ATZ"),  # of other makers' modems
        *("AT+CEMODE=1", "AT+CEMODE=3", "AT+CEMODE", "AT+CGATT=0", "AT%XDATAPRFL=5"),
        *("AT+CRSM=1,28423", "AT+CRSM=176", 'AT+CPINR="CUSTOM PIN"', "AT+CNEC=1"),
        *("AT%XDATAPRFL", "AT+CGCONTRDP=1", "AT+CLAC=1", "AT#XCLAC", "AT#XNRFCLOUD?"),
    ],
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(modem("AT+CFUN=1"), command) == ["ERROR"]


@pytest.mark.parametrize("command", ["AT+CRSM=176,12258,0,0,10", 'AT+CPINR="SIM PIN"'])
def test_a_sim_that_is_not_there_is_not_read(command: str) -> None:
    kit = modem("AT+CMEE=1", "AT+CFUN=1", faults=("no-sim",))
    assert ask(kit, command) == ["+CME ERROR: 10"]


def test_settings_survive_a_restart() -> None:
    kit = modem("AT+CEMODE=2", "AT%XDATAPRFL=4")
    kit.restart()
    kit.advance(kit.kit.now)
    kit.data_to_send()  # of the boot
    assert ask(kit, "AT+CEMODE?")[0] == "+CEMODE: 2"
    assert ask(kit, "AT%XDATAPRFL?")[0] == "%XDATAPRFL: 4"


def test_a_rejection_is_told_with_its_cause() -> None:
    kit = modem("AT+CNEC=24", "AT+CEREG=5", faults=("not-registered=3",))
    assert ask(kit, "AT+CFUN=1") == ["OK", "+CNEC_EMM: 15", "+CEREG: 3,,,,0,15"]


def test_a_scan_waits_for_the_connection_to_end() -> None:
    kit = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    for line in (b"AT+CMEE=1\r", b"AT+CFUN=1\r"):
        kit.receive(line, now=kit.kit.now)
    kit.advance(5.0)
    assert kit.kit.session.connected
    kit.data_to_send()
    assert ask(kit, "AT+COPS=?") == ["+CME ERROR: 516"]


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem"])
def test_the_list_of_commands_names_those_that_are_answered(dialect: str) -> None:
    kit = modem(dialect=dialect)
    lists = ["AT+CLAC", "AT#XCLAC"] if dialect == "serial-modem" else ["AT+CLAC"]
    for command in lists:
        *names, final = ask(kit, command)
        assert final == "OK"
        assert len(names) == len(set(names))
        assert command in names[1:]  # in front it would look like an echo
        assert not any("+CW" in name for name in names)  # a companion's
    assert timeout_of("AT+CPSMS?") is not None


MAC = '"02:00:00:00:00:0{}"'


def in_the_cloud(**options: object) -> VirtualModem:
    return modem(
        *("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1,1"),
        dialect="serial-modem",
        **options,
    )


def test_a_kit_without_a_key_or_a_network_reaches_no_cloud() -> None:
    assert ask(modem("AT+CFUN=1", dialect="serial-modem"), "AT#XNRFCLOUD=1") == ["ERROR"]
    kit = modem("AT%KEYGEN=16842753,2,0", dialect="serial-modem")
    assert ask(kit, "AT#XNRFCLOUD=1") == ["ERROR"]
    assert ask(kit, "AT#XNRFCLOUDPOS=1,0") == ["ERROR"]


def test_the_cloud_is_joined_written_to_and_left() -> None:
    kit = modem("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", dialect="serial-modem")
    assert ask(kit, "AT#XNRFCLOUD=1,1") == ["OK", "#XNRFCLOUD: 1,1"]
    state = f'#XNRFCLOUD: 1,1,16842753,"{kit.kit.saved.uuid}"'
    assert ask(kit, "AT#XNRFCLOUD?") == [state, "OK"]
    assert ask(kit, "AT#XNRFCLOUD=1") == ["ERROR"]
    assert ask(kit, "AT#XNRFCLOUD=2") == ["OK"]
    kit.receive(b'{"msg":"hello"}+++', now=kit.kit.now)
    assert kit.data_to_send() == b"\r\n#XDATAMODE: 0\r\n"
    assert ask(kit, "AT#XNRFCLOUD=0") == ["OK", "#XNRFCLOUD: 0,1"]
    assert ask(kit, "AT#XNRFCLOUD=2") == ["ERROR"]


def test_a_place_is_told_by_one_cell_by_several_and_by_what_the_host_heard() -> None:
    kit = in_the_cloud()
    where = kit.kit.position
    place = f"{where.lat:.6f},{where.lon:.6f}"
    assert ask(kit, "AT#XNRFCLOUDPOS=1,0") == ["OK", f"#XNRFCLOUDPOS: 0,0,{place},1094"]
    ok, cells, told = ask(kit, "AT#XNRFCLOUDPOS=4,0")
    assert (ok, told) == ("OK", f"#XNRFCLOUDPOS: 0,1,{place},270")
    assert cells.startswith("%NCELLMEAS: 0,")
    first, second = (point.access_point.bssid for point in kit.kit.world.access_points(where)[:2])
    command = f'AT#XNRFCLOUDPOS=0,1,"{first}",-40,"{second}"'
    assert ask(kit, command) == ["OK", f"#XNRFCLOUDPOS: 0,2,{place},25"]
    nobody = f"AT#XNRFCLOUDPOS=0,1,{MAC.format(1)},{MAC.format(2)}"
    assert ask(kit, nobody) == ["OK", "#XNRFCLOUDPOS: -1"]


@pytest.mark.parametrize(
    "given",
    ["0,0", "16,0", "0,1", f"0,1,{MAC.format(1)}", '0,1,"nonsense","02:00:00:00:00:01"', "1"],
)
def test_a_question_for_a_place_that_makes_no_sense_is_refused(given: str) -> None:
    assert ask(in_the_cloud(), f"AT#XNRFCLOUDPOS={given}") == ["ERROR"]


def test_a_level_that_no_radio_hears_is_refused() -> None:
    given = f"0,1,{MAC.format(1)},1,{MAC.format(2)}"
    assert ask(in_the_cloud(), f"AT#XNRFCLOUDPOS={given}") == ["ERROR"]


def test_switched_off_meanwhile_it_locates_nothing() -> None:
    kit = VirtualModem(VirtualOptions(dialect="serial-modem"), now=0.0, unix_time=0.0)
    kit.kit.session.cloud_ready = True
    kit.kit.session.fun = 1
    assert ask(kit, "AT#XNRFCLOUDPOS=4,0") == ["OK"]
    assert ask(kit, "AT%NCELLMEAS") == ["ERROR"]  # the firmware uses it itself
    ask(kit, "AT+CFUN=4")
    kit.advance(100.0)
    assert b"NCELLMEAS" not in kit.data_to_send()


def moving(kit: VirtualModem, until: float) -> list[tuple[float, str]]:
    """Return the notices up to a time, each with its own."""
    found = []
    while kit.next_at is not None and kit.next_at <= until:
        kit.advance(kit.next_at)
        lines = [line for line in kit.data_to_send().decode().split("\r\n") if line]
        found += [
            (round(kit.kit.now, 1), line.partition(",")[0] if "POS" in line else line)
            for line in lines
        ]
    return found


def test_a_single_fix_is_where_the_kit_is() -> None:
    kit = modem("AT+CFUN=31", dialect="serial-modem")
    started, fix, slept = ask(kit, "AT#XGNSS=1,0,0,0")[1:]
    where = kit.kit.position
    assert (started, slept) == ("#XGNSS: 1,1", "#XGNSS: 1,4")
    assert fix.startswith(f"#XGNSSPOS: {where.lat:.6f},{where.lon:.6f},")
    assert fix.endswith(',"2023-11-14 22:13:20"')
    assert ask(kit, "AT#XGNSS?") == ["#XGNSS: 1,4", "OK"]


def test_fixes_come_each_second_or_in_periods_until_they_are_stopped() -> None:
    kit = modem("AT+CFUN=31", dialect="serial-modem")
    ask(kit, "AT#XGNSS=1,0,1")
    place = f"#XGNSSPOS: {kit.kit.position.lat:.6f}"
    assert moving(kit, 2.5) == [(1.0, place), (2.0, place)]
    assert ask(kit, "AT#XGNSS=1,0,1") == ["ERROR"]
    assert ask(kit, "AT#XGNSS=0") == ["OK", "#XGNSS: 1,0"]
    assert ask(kit, "AT#XGNSS=0") == ["ERROR"]
    ask(kit, "AT#XGNSS=1,0,10")
    begun = kit.kit.now
    woken = [(begun + 10, "#XGNSS: 1,2"), (begun + 10, place), (begun + 10, "#XGNSS: 1,4")]
    assert moving(kit, begun + 15) == woken
    ask(kit, "AT+CFUN=30")
    assert moving(kit, begun + 100) == []
    assert ask(kit, "AT#XGNSS?") == ["#XGNSS: 0,0", "OK"]


def test_a_search_ends_where_its_time_is_over() -> None:
    kit = VirtualModem(VirtualOptions(dialect="serial-modem"), now=0.0, unix_time=0.0)
    ask(kit, "AT+CFUN=31")
    kit.advance(1.0)
    ask(kit, "AT#XGNSS=1,0,0,10")
    assert moving(kit, 100) == [(11.0, "#XGNSS: 1,3")]


@pytest.mark.parametrize(
    "command",
    [
        *("AT#XGNSS=1,0,5", "AT#XGNSS=1,0,1,60", "AT#XGNSS=0,0", "AT#XGNSS=1,1,0", "AT#XGNSS=1"),
        "AT#XGNSSDEL=0",
    ],
)
def test_navigation_that_the_firmware_does_not_take_is_refused(command: str) -> None:
    assert ask(modem("AT+CFUN=31", dialect="serial-modem"), command) == ["ERROR"]
    assert ask(modem("AT+CFUN=4", dialect="serial-modem"), "AT#XGNSS=1,0,0") == ["ERROR"]
