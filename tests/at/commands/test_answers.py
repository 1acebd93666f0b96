"""Answers and notices of every family: what is read, what is refused. Written by hand."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.catalog import command_of, timeout_of
from at.commands.cells import MeasureCells, read_measurement
from at.commands.clock import clock_text, read_clock
from at.commands.credentials import (
    DeleteCredential,
    ListCredentials,
    WriteCredential,
    sha256_of,
)
from at.commands.network import ReadConnection
from at.commands.nrf_cloud import LocateByCloud
from at.commands.power_saving import SetEdrx, SetPowerSavingMode
from at.commands.registration import ReadRegistration
from at.commands.wifi import read_access_point
from at.protocol import notices
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.values import as_json

SHA = "0123456789ABCDEF" * 4


def value_of(command, *lines):
    return as_json(command_of(command).parse(lines))


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CGMR", ["mfw_nrf9160_1.3.7"], {"revision": "mfw_nrf9160_1.3.7"}),
        ("AT%SHORTSWVER", ["%SHORTSWVER: nrf9160_1.3.2"], {"version": "nrf9160_1.3.2"}),
        ("AT%HWVERSION", ["%HWVERSION: nRF9161 LACA A0A"], {"hw_version": "nRF9161 LACA A0A"}),
        ("AT+CGSN", ["352656100000009"], {"imei": "352656100000009"}),
        ("AT+CGSN=1", ['+CGSN: "352656100000009"'], {"imei": "352656100000009"}),
        ("AT+CGSN=3", ['+CGSN: "25"'], {"svn": "25"}),
        ("AT+CGSN=?", ["+CGSN: (0-3)"], {"snts": [0, 1, 2, 3]}),
        ("AT+CMEE?", ["+CMEE: 1"], {"n": 1}),
        ("AT+CFUN?", ["+CFUN: 4,0"], {"fun": 4, "rst": 0}),
        ("AT+CFUN=?", ["+CFUN: (0,1,4,44)"], {"funs": [0, 1, 4, 44]}),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,80"], {"rsrq_db": -10.0, "rsrp_dbm": -61}),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,255,255"], {"rsrq_db": None, "rsrp_dbm": None}),
        ("AT+CSQ", ["+CSQ: 20,99"], {"rssi": 20, "rssi_dbm": -73}),
        ("AT+COPS?", ["+COPS: 0"], {"mode": 0, "oper": None}),
        ("AT+COPS?", ['+COPS: 0,2,"00101",7'], {"oper": "00101", "act": 7}),
        ("AT+COPS=?", ["+COPS: "], {"networks": []}),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 0,0,0,0,1"], {"ntn_nb_iot": 1}),
        ("AT#XGNSS?", ["#XGNSS: 1,1"], {"service": 1, "state": 1}),
        ("AT#XGPS?", ["#XGPS: 1,0"], {"service": 1, "state": 0}),
        ("AT#XFOTA?", ["#XFOTA: 1,0,50"], {"stage": 1, "status": 0, "info": 50}),
        ("AT#XFOTA=7", ["#XFOTA: 2097152,2621440"], {"size": 2097152, "offset": 2621440}),
        (
            "AT%XMONITOR",
            ['%XMONITOR: 5,"","","00102","0901",7,20,"02024720",428,6300,255,255,"","","",""'],
            {"rsrp": 255, "rsrp_dbm": None, "snr": 255, "snr_db": None},
        ),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,5,255,255,127,"011B0780","00101",7,1575,3,1,1,23,16,32,130'],
            {"rsrp_dbm": None, "rsrq_db": None, "snr": 127, "snr_db": None},
        ),
        ("AT%COPS=?", ['%COPS: (1,"","","00101",9)'], {}),
        ("AT+CSCON?", ["+CSCON: 1,1,7,4"], {"n": 1, "mode": 1, "state": 7, "access": 4}),
        ("AT+CGACT?", ["+CGACT: 0,1", "+CGACT: 1,0"], {}),
        ("AT+CGDCONT?", ['+CGDCONT: 0,"","","",0,0'], {}),
        ("AT+CPIN?", ["+CPIN: READY"], {"code": "READY"}),
        ("AT+CIMI", ["001010123456789"], {"imsi": "001010123456789"}),
        ("AT%XICCID", ["%XICCID: 8988000000000000001F"], {"iccid": "8988000000000000001"}),
        ("AT%XSIM?", ["%XSIM: 0,1"], {"state": 0, "cause": 1}),
        ("AT+CRSM=176,1,0,0,2", ["+CRSM: 144, 0, 00FF"], {"sw1": 144, "response": "00FF"}),
        ("AT%XVBAT", ["%XVBAT: 5054"], {"vbat_mv": 5054}),
        ("AT%XTEMP?", ["%XTEMP: -24"], {"temperature_c": -24}),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1,0"], {"lte_m": 1, "gnss": 1}),
        ("AT%XCBAND=?", ["%XCBAND: (1,2,13)"], {"bands": [1, 2, 13]}),
        ("AT%XCONNSTAT?", ["%XCONNSTAT: 2,3,45,60,708,650"], {"data_rx": 60}),
        ("AT+CPSMS?", ['+CPSMS: 1,,,"00000110","00100001"'], {"requested_active_time_s": 60}),
        ("AT+CEDRXRDP", ['+CEDRXRDP: 4,"0011","0010","1001"'], {"paging_time_window": "1001"}),
        ("AT+CEMODE=?", ["+CEMODE: (0,2)"], {"modes": [0, 2]}),
        ("AT%CONEVAL", ["%CONEVAL: 1"], {"result": 1, "rsrp": None}),
        ("AT%XMONITOR", ["%XMONITOR: 2"], {"reg_status": 2, "plmn": None}),
        ("AT#XSMVER", ['#XSMVER: "v1.0.0","v3.1.0"'], {"git_describe": "v1.0.0"}),
        ("AT#XFOTA=7", ["#XFOTA: 100,2621440"], {"size": 100, "offset": 2621440}),
        ("AT%CMNG=1", [], {"credentials": []}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    found = value_of(command, *lines)
    assert {name: found[name] for name in part} == part


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20"]),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,98"]),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,80,"[:-1] + ",7"]),
        ("AT+CESQ", []),
        ("AT+CGMR", ["+CSCON: 1"]),
        ("AT+CGSN", ["+CSCON: 1"]),
        ("AT+CGSN=1", ['+CGSN: "35265610000000"']),
        ("AT%XMONITOR", ['%XMONITOR: 1,"a","b","00101","00B7",7,4,"00011B07"']),
        ("AT%XICCID", ["%XICCID: 12345"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,2,0"]),
        ("AT%XSYSTEMMODE?", ["%SYSTEMMODE: 1,0,1,0"]),
        ("AT+COPS=?", ['+COPS: (1,"a","b"']),
        ("AT+COPS=?", ['+COPS: (1,"a")']),
        ("AT+CSCON?", ["+CSCON: 1,2"]),
        ("AT+CGDCONT?", ["+CGDCONT: x"]),
        ("AT+CRSM=1", ["+CRSM: 144,0,0FF"]),
        ("AT+CCLK?", ['+CCLK: "XX/XX/XX,XX:XX:XX+XX"']),
        ("AT+CCLK?", ['+CCLK: "24/13/01,00:00:00+00"']),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 0,0,0,0"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1,0,2"]),
        ("AT+CEDRXRDP", ['+CEDRXRDP: 2,"0011","0010","1001"']),
        ("AT%CMNG=1", ['%CMNG: 1,0,"00"']),
        ("AT%CMNG=1", ["%CMNG: 4294967296,0"]),
        ("AT%CMNG=1", [f'%CMNG: 1,0,"{SHA}"', "%CMNG: 1"]),
        ("AT%JWT=0,60", ['%JWT: "a.b"']),
        ("AT%KEYGEN=1,2,0", ['%KEYGEN: "!!.!!"']),
        ("AT+CWLAP", ['+CWLAP:(3,"x",-300,"aa:bb:cc:dd:ee:ff",1)']),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,5,8,2,14,"011B0780\u201d,"26295",7,1575,3,1,1,23,16,32,130'],
        ),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        command_of(command).parse(lines)


MONITOR = (
    '%XMONITOR: 1,"EDAV","EDAV","26295","00B7",7,4,"00011B07",7,2300,63,39,"",'
    '"11100000","11100000","01001001"'
)
COUNTED = {
    "AT%XMONITOR": MONITOR,
    "AT%CONEVAL": '%CONEVAL: 0,1,5,8,2,14,"011B0780","26295",7,1575,3,1,1,23,16,32,130',
    "AT+CESQ": "+CESQ: 99,99,255,255,20,80",
    "AT%CMNG=1": f'%CMNG: 16842753,0,"{SHA}"',
    "AT%CMNG=2,1,0": f'%CMNG: 1,0,"{SHA}","a\r\nOK\r\nb"',
}


@given(st.sampled_from(sorted(COUNTED)), st.data())
def test_no_line_that_was_cut_within_its_fields_gives_half_a_record(command, data):
    line = COUNTED[command]
    whole = command_of(command).parse([line])
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    try:
        found = command_of(command).parse([cut])
    except ParseError:
        return
    # What can still be read must be a shorter, whole form of the grammar.
    found, whole = as_json(found), as_json(whole)
    if command == "AT%XMONITOR":
        assert (
            found["plmn"] is None
            or {**whole, "periodic_tau": None, "periodic_tau_s": None} == found
        )
    elif command == "AT%CONEVAL":
        assert found["cell_id"] is None or found["dl_pathloss"] in {1, 13}
    elif command == "AT+CESQ":
        assert found["rsrp"] == 8
    else:
        assert all(item["sha"] in {None, SHA} for item in found["credentials"])


def test_the_cells_of_a_serving_measurement_are_read():
    line = (
        '%NCELLMEAS: 0,"00011B07","26295","00B7",10512,2300,7,63,31,150344527,'
        "2300,8,60,29,0,2400,11,55,26,-184,9034"
    )
    found = as_json(read_measurement(line, 0))
    assert found == as_json(read_measurement(line))
    assert found["cells"][0]["rsrp_dbm"] == found["rsrp_dbm"] == -78
    assert [cell["time_diff"] for cell in found["neighbors"]] == [0, -184]
    assert found["neighbor_count"] == 2
    assert found["ta_meas_time"] == 9034


def test_both_shapes_are_told_apart_without_a_context():
    single = '%NCELLMEAS: 0,"014A0305","24201","8169",80,4659,6400,105,50,16,4758,1,0'
    several = (
        '%NCELLMEAS:0,"00011B07","26295","00B7",10512,9034,2300,7,63,31,150344527,1,1,'
        '2300,8,60,29,5,"00011B08","26295","00B7",65534,0,2300,9,62,30,150345527,0,0,'
    )
    assert len(read_measurement(single).cells) == 1
    found = read_measurement(several)
    assert [cell.serving for cell in found.cells] == [1, 0]
    assert len(found.cells[0].neighbors) == 1
    assert found == read_measurement(several, 3)


@pytest.mark.parametrize("gci", [False, True])
@given(cells=st.integers(1, 15), neighbors=st.integers(0, 20), cut=st.integers(1, 3))
def test_measurements_of_any_size_are_read_and_cut_ones_refused(gci, cells, neighbors, cut):
    near = ",2300,8,60,-3,-5" * neighbors
    if gci:
        one = ',"00011B07","26295","00B7",65535,0,2300,7,63,31,99,{serving},{count}{near}'
        line = "%NCELLMEAS: 0" + one.format(serving=1, count=neighbors, near=near)
        line += one.format(serving=0, count=0, near="") * (cells - 1)
    else:
        line = f'%NCELLMEAS: 0,"00011B07","26295","00B7",65535,2300,7,63,31,99{near}'
    found = read_measurement(line)
    assert len(found.neighbors) == neighbors
    assert len(found.cells) == (cells if gci else 1)
    short = ",".join(line.split(",")[:-cut])
    with pytest.raises(ParseError):
        read_measurement(short, 3 if gci else 0)


@pytest.mark.parametrize("line", ["%NCELLMEAS: 1", "%NCELLMEAS: 1,,,", "%NCELLMEAS:1"])
def test_a_failed_measurement_has_no_cells(line):
    assert read_measurement(line).cells == ()


@pytest.mark.parametrize(
    "bad",
    [MeasureCells(6), MeasureCells(0, 5), MeasureCells(3, 1), MeasureCells(4, 16)],
)
def test_a_measurement_that_no_modem_takes_is_not_sent(bad):
    with pytest.raises(UnsafeArgument):
        bad.encode()


def test_measurements_are_sent_as_the_sdk_sends_them():
    assert MeasureCells().encode() == "AT%NCELLMEAS"
    assert MeasureCells(2).encode() == "AT%NCELLMEAS=2"
    assert MeasureCells(5, 15).encode() == "AT%NCELLMEAS=5,15"


@pytest.mark.parametrize(
    ("line", "networks"),
    [
        ('(2,"A","B","31026",0),(1,"C, D","","310410"),2),(1,"E",,"00101"),,(0, 1,3),(0-2)', 3),
        ('(1,"A","B","31026",0),,(0,1,2,3,4),)', 1),
        ('(1,"A","B","31026",0),', 1),
        ('(1,"A","B","31026",0),,)', 1),
        ("(0,1,2,3),(1,2,3,4)", 0),
        ('(0,"A","B","310410",2)', 1),
    ],
)
def test_scans_of_many_vendors_are_read(line, networks):
    assert len(value_of("AT+COPS=?", f"+COPS: {line}")["networks"]) == networks


@pytest.mark.parametrize(
    ("line", "mask", "gateway"),
    [
        ('4,5,"a.b","2.3.4.5.255.255.255.255","2.3.4.6","1.1.1.1"', "255.255.255.255", "2.3.4.6"),
        ('4,5,"a.b","2.3.4.5","255.255.255.0","2.3.4.6"', "255.255.255.0", "2.3.4.6"),
        ("1,5,NAME,10.1.1.1,,10.2.2.2,10.3.3.3", None, None),
        ('4,5,""', None, None),
    ],
)
def test_context_parameters_of_both_forms_are_read(line, mask, gateway):
    (context,) = value_of("AT+CGCONTRDP", f"+CGCONTRDP: {line}")["contexts"]
    assert (context["subnet_mask"], context["gateway"]) == (mask, gateway)


@pytest.mark.parametrize(
    ("tail", "mtu"),
    [
        (",,,,,1028", 1028),
        (',"","",0,0,"1500"', None),
        (',"","","",0', None),
        (",,,,,", None),
        ("", None),
    ],
)
def test_the_size_of_a_packet_stands_behind_the_name_servers(tail, mtu):
    line = f'+CGCONTRDP: 0,,"internet","","","10.0.0.1","10.0.0.2"{tail}'
    (context,) = value_of("AT+CGCONTRDP=0", line)["contexts"]
    assert context["dns_secondary"] == "10.0.0.2"
    assert context["ipv4_mtu"] == mtu


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%CESQ: 54,2,16,2", {"rsrp": 54, "rsrp_dbm": -87, "rsrq_db": -12.0}),
        ("%MDMEV: PRACH CE-LEVEL 0", {"text": "PRACH CE-LEVEL 0"}),
        ("%XMODEMSLEEP: 1,36000", {"type": 1, "time_ms": 36000}),
        ("%XT3412: 35712000000", {"time_ms": 35712000000}),
        ('%XTIME: ,"62200141352180","01"', {"tz": None, "utc_time": "2026-02-10T14:53:12+00:00"}),
        ("+CGEV: ME PDN ACT 0,1", {"event": "ME PDN ACT", "cid": 0}),
        ("+CGEV: EXCE STATUS 0", {"event": "EXCE STATUS", "cid": None, "parameters": ["0"]}),
        ("+CNEC_ESM: 50,0", {"cause": 50, "cid": 0}),
        ("+CNEC_EMM: 15", {"cause": 15, "cid": None}),
        ('+C5GREG: 1,"00AB12","00000001C0FFEE01",11', {"ci": "00000001C0FFEE01", "act": 11}),
        ("+CGEV: NW DETACH", {"event": "NW DETACH", "cid": None}),
        ("+CSCON: 1,7,4", {"mode": 1, "state": 7, "access": 4}),
        ("%XSIM: 1", {"state": 1}),
        ("#XFOTA: 1,0,42", {"stage": 1, "info": 42}),
        ("#XDFU: 0,1,-1", {"operation": 1, "status": -1}),
        ("#XMODEM: FAULT,0x1,0x2a", {"event": "FAULT", "values": ["0x1", "0x2a"]}),
        ("#XNRFCLOUDPOS: 0,2,35.457335,139.624443,60", {"type": 2, "uncertainty": 60.0}),
        ("#XNRFCLOUDPOS: -1", {"status": -1, "lat": None}),
        ('+CEDRXP: 4,"0011","0010","1001"', {"act_type": 4}),
        ("#XNRFCLOUD: 1,0", {"ready": 1, "send_location": 0, "device_id": None}),
        ("#XGNSS: 1,4", {"service": 1, "state": 4}),
        ("#XGPS: 1,1", {"service": 1, "state": 1}),
        (
            '#XGPS: 63.42,10.39,162.850952,15.6,1.41,0.000000,"2026-02-10 14:53:12"',
            {"lat": 63.42, "alt": 162.850952, "datetime": "2026-02-10 14:53:12"},
        ),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    found = as_json(notices.parse(line.partition(":")[0], line).value)
    assert {name: found[name] for name in part} == part


@pytest.mark.parametrize(
    "line",
    [
        "+CSCON: 2",
        "%CESQ: 54,2,16",
        "%CESQ: 98,2,16,2",
        "%XMODEMSLEEP: 9",
        "%XT3412: -1",
        '%XTIME: "08","622001413521","01"',
        "#XFOTA: 9,0",
        "#XMODEM: HICCUP,1",
        "#XNRFCLOUDPOS: 0",
        "#XGPS: 1,1,1",
        "#XGNSS: 1,5",
        "%XSIM: x",
        "%MDMEV:",
    ],
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notices.parse(line.partition(":")[0], line), notices.Malformed)


def test_a_notice_of_the_same_name_is_not_the_reply():
    assert not ReadConnection().owns("+CSCON: 1")
    assert not ReadConnection().owns("+CSCON: 1,7,4")
    assert ReadConnection().owns("+CSCON: 1,0")


def test_credential_lists_are_read_with_and_without_blanks_and_with_odd_separators():
    lines = [f'%CMNG: 16842753,0,"{SHA}"\r\x0c%CMNG: 4294967293, 10, "{SHA}"', "%CMNG: 5,2"]
    found = ListCredentials().parse(lines).credentials
    assert [(item.sec_tag, item.type) for item in found] == [
        (16842753, 0),
        (4294967293, 10),
        (5, 2),
    ]


def test_a_credential_is_hashed_as_it_is_written():
    pem = "-----BEGIN CERTIFICATE-----\nTEST\n-----END CERTIFICATE-----\n"
    for text in (pem, pem.replace("\n", "\r\n")):
        command = WriteCredential(16842753, 0, text)
        assert command.encode() == f'AT%CMNG=0,16842753,0,"{text}"'
        assert command.sha == sha256_of(text.encode()) == sha256_of(text)


def test_a_secret_shows_in_no_repr():
    assert "canary" not in repr(WriteCredential(1, 3, "canary"))


@pytest.mark.parametrize(
    "command",
    [
        DeleteCredential(2**31, 0),
        WriteCredential(2**31, 0, "x"),
        WriteCredential(1, 0, 'a"b'),
        WriteCredential(1, 0, "a\x1ab"),
        LocateByCloud(16),
        LocateByCloud(1, (("aa:bb:cc:dd:ee:ff", -40),)),
        LocateByCloud(1, (("x", -40), ("y", -40))),
    ],
)
def test_what_could_do_harm_is_not_sent(command):
    with pytest.raises(UnsafeArgument):
        command.encode()


def test_a_position_by_the_cloud_is_asked_for_with_the_levels_that_are_known():
    spots = (("aa:bb:cc:dd:ee:ff", -40), ("aa:bb:cc:dd:ee:fe", None))
    assert (
        LocateByCloud(1, spots).encode()
        == 'AT#XNRFCLOUDPOS=1,1,"aa:bb:cc:dd:ee:ff",-40,"aa:bb:cc:dd:ee:fe"'
    )


@pytest.mark.parametrize(
    ("line", "ssid", "channel"),
    [
        ('+CWLAP:(3,"home",-40,"AA:bb:cc:dd:ee:ff",11,-6,0,4,4,7,1)', "home", 11),
        ('+CWLAP:(0,"a,"(b)",-3",-128,"aa:bb:cc:dd:ee:ff")', 'a,"(b)",-3', None),
        ('+CWLAP:("x",-40,"aa:bb:cc:dd:ee:ff")', "x", None),
        ('+CWLAP:(-40,"aa:bb:cc:dd:ee:ff",1)', None, 1),
        ('+CWLAP:(3,"",-40,"aa:bb:cc:dd:ee:ff",1)', "", 1),
    ],
)
def test_access_points_are_read_whatever_their_name_holds(line, ssid, channel):
    found = read_access_point(line)
    assert (found.ssid, found.channel, found.mac) == (ssid, channel, "aa:bb:cc:dd:ee:ff")


def test_clocks_are_local_time_with_a_zone_in_quarters():
    clock = read_clock("26/02/10,23:53:12+36")
    assert clock.utc_time.isoformat() == "2026-02-10T14:53:12+00:00"
    assert clock_text(clock.local_time) == "26/02/10,23:53:12+36"
    assert read_clock("14/08/05,04:00:21").utc_time is None
    assert value_of("AT+CCLK?", "+CCLK:   17/07/26,11:42:15+01")["zz"] == 1


@given(st.text(max_size=80), st.sampled_from([ReadRegistration(), ReadConnection()]))
def test_whose_line_it_is_can_be_told_of_any_line(text, command):
    assert command.owns(f"{command.prefix}: {text}") in {True, False}


@given(
    st.text(max_size=80), st.sampled_from(["AT+COPS=?", "AT%XMONITOR", "AT+CWLAP", "AT%JWT=0,9"])
)
def test_any_line_is_read_or_refused(text, command):
    name = command[2:].partition("=")[0]
    with contextlib.suppress(ParseError):
        command_of(command).parse([f"{name}: {text}"])


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("AT+CFUN=4", 60.0),
        ("AT+COPS=?", 600.0),
        ("AT+COPS=0", 180.0),
        ("AT%CMNG=1", 30.0),  # of all four operations the longest
        ("AT+FOO=1", None),
        ("ATE0", None),
    ],
)
def test_a_command_line_may_take_as_long_as_its_type_says(line, seconds):
    assert timeout_of(line) == seconds


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (SetPowerSavingMode(0), "AT+CPSMS=0"),
        (
            SetPowerSavingMode(1, "00101000", "00000101"),
            'AT+CPSMS=1,,,"00101000","00000101"',
        ),
        (SetEdrx(2, 5, "0011"), 'AT+CEDRXS=2,5,"0011"'),
        (SetEdrx(3, None), "AT+CEDRXS=3"),
    ],
)
def test_sleep_is_asked_for_in_bits(command, line):
    assert command.encode() == line


@pytest.mark.parametrize("command", [SetPowerSavingMode(1, "0010"), SetEdrx(2, 4, "00a1")])
def test_what_is_no_bits_is_not_sent(command):
    with pytest.raises(UnsafeArgument):
        command.encode()
