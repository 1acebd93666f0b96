"""What happened in a session, and the causes that it has: none that is not there."""

from __future__ import annotations

import pytest

from at.causes.diagnosis import causes_of_log
from at.protocol.errors import TranscriptError
from tests.support.modem.causes_of_lines import causes_of

ENDED = (
    ("AT+CNACT=0,0", "+APP PDP: 0,DEACTIVE"),
    ("AT+QICLOSE=0", '+QIURC: "closed",0'),
    ("AT+QIDEACT=1", '+QIURC: "pdpdeact",1'),
    ("AT+QMTDISC=0", "+QMTSTAT: 0,1"),
    ("AT+SAPBR=0,1", '+SAPBR: 1,3,"0.0.0.0"'),
    ("AT+CGACT=0,1", "+CGEV: ME PDN DEACT 1"),
    ("AT#XTCPCLI=0", '#XTCPCLI: -1,"disconnected"'),
    ("AT#SH=1", "NO CARRIER"),
    ('AT#SD=1,0,80,"host.example"', "NO CARRIER"),
    ("ATD+49301234567;", "NO CARRIER"),
    ("RING", "NO CARRIER"),
    ("ATH", "NO CARRIER"),
)


DIAL, UP, DOWN = "ATD*99#", "CONNECT 150000000", "NO CARRIER"


@pytest.mark.parametrize(
    ("log", "certainties"),
    [
        ((DIAL, DOWN), ["likely"]),
        ((DIAL, UP, DOWN), ["possible"]),
        ((DIAL, UP, DOWN, DIAL, DOWN), ["likely"]),
        ((DIAL, UP, DOWN, DIAL, UP), []),
    ],
)
def test_a_call_that_was_connected_was_not_refused(
    log: tuple[str, ...], certainties: list[str]
) -> None:
    found = [cause for cause in causes_of_log("\n".join(log).encode()) if cause.is_trouble]
    assert [cause.certainty for cause in found] == certainties
    assert all(cause.cause == "pdn-inactive" for cause in found)


@pytest.mark.parametrize(("asked", "told"), ENDED)
def test_what_was_ended_on_request_is_no_trouble(asked: str, told: str) -> None:
    online = ("AT+CEREG?", "+CEREG: 0,1", "OK")
    assert causes_of(*online, asked, "OK", told) == ["registered"]
    assert (
        causes_of(*online, asked, "OK", "AT+CFUN=1", "OK", told) != ["registered"] or "pdp" in told
    )


@pytest.mark.parametrize(
    "line",
    [
        "[00:00:09.100,000] <inf> mqtt: MQTT client disconnected: 0",
        "[00:00:09.500,000] <inf> downloader: Connection closed",
        "ModemManager[1]: <info>  [modem0] state changed (disconnecting -> registered)",
    ],
)
def test_what_ended_without_an_error_is_no_trouble(line: str) -> None:
    assert causes_of("AT+CEREG?", "+CEREG: 0,1", "OK", line) == ["registered"]


@pytest.mark.parametrize(
    "line",
    [
        '{"rx":"SARA-R410M"}',
        "2024-05-06T10:00:00Z [debug    ] rx                    data=SARA-R410M",
        "[DEBUG] [CellularLib] Recv: SARA-R410M",
        "+CME ERROR:[3216] < 3 > /+CME ERROR:",
    ],
)
def test_a_modem_answers_whose_answers_stand_in_no_form_that_is_known(line: str) -> None:
    sent = "[DEBUG] AT cmd AT+CGMM"
    assert causes_of(sent, line) == ["nothing-found"]
    for nothing in ("RX timeout", "rx: 0 bytes", "received: None", "no response"):
        assert "line-end" in causes_of(sent, nothing)


@pytest.mark.parametrize("fix", ["+CGPSINFO: 3113.3,N,12121.2,E", "+CGNSINF: 1,1,20260210,31.8"])
def test_a_position_that_was_found_later_was_found(fix: str) -> None:
    assert causes_of("AT+CGPSINFO", "+CGPSINFO: ,,,,,,,,", "OK", fix, "OK") == ["nothing-found"]


def test_a_network_that_was_open_already_is_no_trouble() -> None:
    already = ("AT+NETOPEN", "+IP ERROR: Network is already opened", "ERROR")
    reached = ('AT+CIPOPEN=0,"TCP","host.example",80', "OK", "+CIPOPEN: 0,0")
    assert causes_of(*already, *reached) == ["nothing-found"]


@pytest.mark.parametrize(
    "line",
    [
        '%XMONITOR: 5,"","","26295","00B7",7,20,"00011B07",7,6300,52,31,...',
        '[00:00:04.000,100] <inf> app: %XMONITOR: 1,"","","26295","00B7",7,20,"0001',
        '+CEREG: 5,"00B7","0001...',
        '+CEREG: 2,1,"00B7","0001…',
    ],
)
def test_an_answer_whose_end_was_cut_still_says_its_status(line: str) -> None:
    assert causes_of("AT+CEREG=2", "OK", line) == ["registered"]


def test_fields_without_their_commas_are_no_status() -> None:
    assert causes_of("AT+CEREG?", "+CEREG: 5 3", "OK") == ["nothing-found"]


def test_a_script_that_timed_out_after_answers_says_nothing_of_a_line_that_never_answered() -> None:
    found = causes_of_log(
        b"[00:00:34.067,841] <dbg> modem_chat: modem_chat_log_received_command: +CEREG:  5\n"
        b"[00:00:40.276,943] <dbg> modem_chat: modem_chat_script_next: sending: AT+CGATT?\n"
        b"[00:00:50.287,688] <wrn> modem_chat: nordic_dial_chat_script: timed out\n"
    )
    assert not any("Nothing answered" in one.says for one in found)


@pytest.mark.parametrize("told", ["+CNEC_EMM: 11", '+CEREG: 2,"00B7","00011B07",7'])
def test_a_modem_that_was_refused_or_names_its_cell_hears_one(told: str) -> None:
    found = causes_of("AT+CFUN=1", "OK", "+CEREG: 2", told, "%MDMEV: SEARCH STATUS 2", "+CSCON: 0")
    assert "no-cell" not in found
    assert "first-search" not in found or not told.startswith("+CNEC")


def test_a_modem_that_does_not_search_after_a_refusal_is_not_off() -> None:
    rejected = "[00:00:09.653,045] <wrn> lte_lc: Registration rejected, EMM cause: 8"
    assert causes_of(rejected, "registration status: not registered") == ["emm-8"]


def test_a_modem_that_crashed_was_started_by_its_library() -> None:
    assert causes_of("Modem error: 0x10, PC: 0x2e4c6") == ["modem-crashed"]
    assert causes_of("Modem init error: -14") == ["modem-lib-off"]


def test_a_modem_that_detached_itself_was_not_refused() -> None:
    left = ('+CEREG: 1,"00B7","00011B07",7', "+CEREG: 0", "+CGEV: ME DETACH", "+CSCON: 0")
    assert causes_of(*left) == ["modem-off"]
    assert "denied" in causes_of(*left, left[0], "+CEREG: 0")


def test_a_kit_that_was_told_where_it_is_is_meant_for_satellites() -> None:
    lines = ('AT%LOCATION=2,"61.4","24.2","140",0,0', "OK", "+CEREG: 2", "%MDMEV: SEARCH STATUS 2")
    assert "system-mode" not in causes_of(
        "AT%XSYSTEMMODE=0,0,0,0,1", "OK", "AT+CFUN=1", "OK", *lines
    )


def test_a_pin_that_was_wrong_is_said_to_be_so() -> None:
    log = b'AT+CPIN?\n+CPIN: SIM PIN\nOK\nAT+CPIN="9999"\n+CME ERROR: 16\n'
    assert causes_of_log(log)[0].says == "The PIN or password was wrong; each try counts."


@pytest.mark.parametrize("mode", ["0", "4", "7", "15,1"])
def test_a_mode_that_turns_nothing_on_was_not_refused_to_be_switched_on(mode: str) -> None:
    assert causes_of(f"AT+CFUN={mode}", "ERROR") == ["command-refused"]
    assert causes_of("AT+CFUN=1,0", "ERROR") == ["system-mode-refused"]


def test_a_device_of_the_host_that_is_missing_is_no_trouble_with_the_apn() -> None:
    line = "Couldn't open the /dev/ppp device: No such file or directory"
    assert "pdn-inactive" not in causes_of(line)
    assert causes_of("pppd: Couldn't set up ppp0") == ["pdn-inactive"]


def test_a_question_that_is_refused_is_no_setting_that_was_refused() -> None:
    refused = [
        line for name in ("+CFUN", "%XSYSTEMMODE", "+CGATT") for line in (f"AT{name}?", "ERROR")
    ]
    assert not {"system-mode-refused", "apn"} & {*causes_of(*refused)}


@pytest.mark.parametrize(
    "line",
    [
        "<wrn> net_lwm2m_rd_client: Registration update failed with 4.04",
        "<err> app: shadow update failed: -5",
        "<wrn> lte: PSM parameter update failed",
        "ERROR Modem DFU failed with error: Errorcode: CouldNotCallFunction (0x9)",
        "MCUboot DFU failed. Errorcode: CouldNotOpenDevice (0x4)",
    ],
)
def test_not_each_update_is_a_download(line: str) -> None:
    assert "download-failed" not in causes_of(line)


@pytest.mark.parametrize(
    ("before", "mended"),
    [
        (("%MDMEV: INVALID BAND CONFIGURATION 1 0 0",), ("AT%XBANDLOCK=0", "OK")),
        (("%MDMEV: ME OVERHEATED", "+CFUN: 0"), ("AT+CFUN=1", "OK")),
        (("%MDMEV: ME BATTERY LOW", "+CFUN: 0"), ("AT+CFUN=1", "OK")),
        (('AT%CMNG=0,1,4,"kit"', "+CME ERROR: 528"), ('AT%CMNG=0,1,4,"kit"', "OK")),
        (("+CEREG: 5", "AT+CGACT?", "+CGACT: 0,0", "OK"), ("AT+CGACT=1,0", "OK")),
        (("Provisioning failed, device not claimed",), ("Provisioning done, rebooting...",)),
        (("<err> app: no private key found",), ("AT%KEYGEN=16842753,2,0", "OK")),
        (("%MDMEV: NO IMEI",), ("AT+CGSN=1", '+CGSN: "352656100000009"', "OK")),
        (("AT+CGMR", "mfw-pti_nrf91x1_2.3.8", "OK"), ("AT+CGMR", "mfw_nrf91x1_2.0.4", "OK")),
        (
            ("AT+CGMR", "mfw_nrf9160_1.2.3", "OK", "AT%JWT", "ERROR"),
            ("AT+CGMR", "mfw_nrf9160_1.3.7", "OK"),
        ),
    ],
)
def test_what_was_mended_later_is_no_certain_cause(
    before: tuple[str, ...], mended: tuple[str, ...]
) -> None:
    first = causes_of_log("\n".join(before).encode())[0]
    after = causes_of_log("\n".join((*before, *mended)).encode())
    assert first.is_trouble
    assert (first.cause, first.certainty) not in [(one.cause, one.certainty) for one in after]


@pytest.mark.parametrize(
    ("mode", "stays"), [("1,0,0,0", False), ("0,1,1,0", True), ("0,1,0,0", True)]
)
def test_no_cells_of_a_technology_says_nothing_of_the_other(mode: str, stays: bool) -> None:
    refused = (
        "AT%XSYSTEMMODE=0,1,0,0",
        "OK",
        "AT+CFUN=1",
        "OK",
        '+CEREG: 3,"0901","020A7716",9,0,15',
    )
    again = ("AT+CFUN=4", "OK", f"AT%XSYSTEMMODE={mode}", "OK", "AT+CFUN=1", "OK", "+CEREG: 2")
    found = causes_of(*refused, *again)
    assert ("emm-15" in found) is stays
    assert "denied" not in found


@pytest.mark.parametrize("mode", [31, 41])
def test_a_mode_of_gnss_or_the_card_is_no_search(mode: int) -> None:
    found = causes_of(f"AT+CFUN={mode}", "OK", "AT+CEREG?", "+CEREG: 0,0", "OK")
    assert found == ["modem-off"]


@pytest.mark.parametrize("mode", [31, 41])
def test_a_mode_of_gnss_or_the_card_leaves_a_search_on(mode: int) -> None:
    found = causes_of("AT+CFUN=1", "OK", f"AT+CFUN={mode}", "OK", "AT+CEREG?", "+CEREG: 0,2", "OK")
    assert found == ["first-search"]


def test_a_refused_message_has_the_words_of_its_number() -> None:
    assert "error 41" in causes_of_log(b"AT+CMGS=10\n+CMS ERROR: 41\n")[0].says


@pytest.mark.parametrize(
    ("number", "found"),
    [(310, "sim-missing"), (316, "sim-puk"), (331, "no-cell"), (513, "nothing-found")]
    + [(of_the_network, "nothing-found") for of_the_network in (5, 10, 30, 41, 42, 47, 111, 528)],
)
def test_the_number_of_an_error_of_messages_is_none_of_the_modem(number: int, found: str) -> None:
    """TS 24.011 numbers why a network did not take a message, and TS 27.005 goes on from there."""
    assert causes_of(f"+CMS ERROR: {number}") == [found]


def test_an_update_that_was_not_begun_is_no_modem_that_did_not_start() -> None:
    assert causes_of("<err> fota_download: dfu_target_init error -134") == ["download-failed"]


def test_what_firmware_notes_behind_an_answer_is_none_of_it() -> None:
    mark = "[00:01:37.034,149] <inf> ntn_manager: NTN: AT"
    assert causes_of(f"{mark}> AT+CEREG=5 [CEREG]", f"{mark}< OK [CEREG] dt=7ms") == [
        "nothing-found"
    ]


def test_a_kit_that_was_switched_off_was_registered() -> None:
    left = "AT+CEREG?\n+CEREG: 0,1\nOK\nAT+CFUN=0\nOK\n"
    (off,) = causes_of_log(left.encode())
    assert (off.cause, off.is_trouble, off.evidence) == ("registered", False, "AT+CFUN=0")
    assert "was registered" in off.says
    (on,) = causes_of_log(f"{left}AT+CFUN=1\nOK\n+CEREG: 1\n".encode())
    assert "is registered" in on.says


def test_an_imei_that_is_not_given_is_none_that_is_missing() -> None:
    assert causes_of("<inf> app: no IMEI override, asking the modem") == ["nothing-found"]
    assert causes_of("<err> app: No IMEI") == causes_of("No IMEI found!") == ["no-imei"]


@pytest.mark.parametrize("command", ["AT%CMNG=1,5,0", "AT%KEYGEN=5,2,0"])
def test_a_number_that_was_cut_of_an_error_of_credentials_tells_of_no_lock(command: str) -> None:
    assert causes_of(command, "+CME ERROR: 5") in (["command-refused"], ["key-refused"])
    assert causes_of("AT+CPIN?", "+CME ERROR: 5") == ["sim-locked"]


def test_a_level_of_the_supply_that_stands_alone_is_no_certain_loss_of_it() -> None:
    """It is what AT%XVBATLOWLVL? answers, or a notice, which the modem sends while it is on."""
    found = causes_of_log(b"%XVBATLOWLVL: 3300\nOK\n")
    assert [(one.cause, one.certainty) for one in found] == [("supply-low", "possible")]
    assert "offline" not in found[0].says


def test_a_list_of_forbidden_networks_that_was_emptied_forbids_none() -> None:
    filled = 'AT+CRSM=176,28539,0,0,12\n+CRSM: 144,0,"00F110FFFFFFFFFFFFFFFFFF"\nOK\n+CEREG: 2\n'
    emptied = f'AT+CRSM=214,28539,0,0,12,"{"F" * 24}"\n+CRSM: 144,0,""\nOK\n'
    assert "plmn-forbidden" in {one.cause for one in causes_of_log(filled.encode())}
    assert "plmn-forbidden" not in {one.cause for one in causes_of_log((filled + emptied).encode())}


@pytest.mark.parametrize("name", ["password", "contraseña", "пароль", "密码"])
def test_a_line_that_a_cause_rests_on_is_shown_without_the_password_that_it_names(
    name: str,
) -> None:
    log = f"<err> mqtt: connect failed, user: kit, {name}: hunter22, err -111\n"
    found = causes_of_log(log.encode())
    assert "connect failed" in found[0].evidence
    assert "hunter22" not in found[0].evidence


@pytest.mark.parametrize(
    ("before", "blamed"),
    [
        ("[00:00:40.300,000] <inf> app: sending 512 bytes", True),
        ("[00:00:40.300,000] <inf> app: update is whole, rebooting", False),
        ("AT#XRESET\nOK", False),
        ("[00:00:00.300,000] <inf> diag: reset reason: 0x00000004", False),
    ],
)
def test_a_restart_that_no_line_explains_is_told(before: str, blamed: bool) -> None:
    boot = "*** Booting nRF Connect SDK v2.9.0 ***"
    for log in (2 * (boot, before), 2 * (boot, "+CEREG: 5", before)):
        (found,) = causes_of_log("\n".join(log).encode())
        assert not found.is_trouble
        assert ("no line says why" in found.says) is blamed


@pytest.mark.parametrize(
    ("reasons", "blamed"), [(("0x0", "0x1"), False), (("0x1", "0x0"), True), (("0", "0"), True)]
)
def test_a_supply_is_blamed_where_the_last_start_has_no_reason(
    reasons: tuple[str, str], blamed: bool
) -> None:
    starts = [
        ("*** Booting nRF Connect SDK v3.1.0 ***", f"<inf> diag: reset reason: {reason}")
        for reason in reasons
    ]
    assert ("supply-low" in causes_of(*starts[0], *starts[1])) is blamed


def test_a_modem_that_was_not_turned_on_again_after_a_restart_was_not_refused() -> None:
    boot = "*** Booting nRF Connect SDK v2.9.0 ***"
    status = ("AT+CEREG?", "+CEREG: 0,0", "OK")
    assert causes_of("AT+CFUN=1", "OK", boot, *status) == ["modem-off"]
    assert causes_of(boot, "AT+CFUN=1", "OK", *status)[0] == "denied"


def test_the_number_of_a_supply_that_no_modem_runs_on_is_none() -> None:
    assert causes_of("AT%XVBAT", "%XVBAT: 3", "OK") == ["nothing-found"]
    assert causes_of("AT%XVBAT", "%XVBAT: 3099", "OK") == ["supply-low"]


@pytest.mark.parametrize(
    ("line", "certainty"),
    [("GNSS blocked by LTE activity", "possible"), ("GNSS: no fix after 300 s", "likely")],
)
def test_gnss_that_waits_for_lte_has_not_failed_yet(line: str, certainty: str) -> None:
    found = causes_of_log(f"[00:02:06.300,000] <wrn> gnss: {line}\n".encode())
    assert [(one.cause, one.certainty) for one in found] == [("gnss-no-fix", certainty)]


def test_a_shell_that_knows_no_command_has_answered() -> None:
    assert causes_of("uart:~$ at AT+CEREG?", "at: command not found") == ["at-behind-shell"]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("[00:00:01.000,000] <err> lte_lc: Could not send AT command, error: -5", "line-end"),
        (
            "[00:00:50.287,688] <wrn> modem_chat: nordic_dial_chat_script: timed out",
            "stopped-answering",
        ),
    ],
)
def test_a_command_that_was_not_answered_tells_of_no_network_and_no_connection(
    line: str, cause: str
) -> None:
    assert causes_of("+CEREG: 5", line)[0] == cause
    assert not {"no-cell", "pdn-inactive"} & {*causes_of("+CEREG: 5", line)}


def test_a_card_that_was_ready_before_it_asked_for_its_pin_is_no_certain_lock() -> None:
    asked = ("AT+CREG?", "+CME ERROR: 11")
    for before, certainty in (((), "certain"), (("+CPIN: READY",), "possible")):
        found = causes_of_log("\n".join((*before, *asked)).encode())[0]
        assert (found.cause, found.certainty) == ("sim-pin", certainty)


def test_a_log_with_two_kits_is_not_told_of_as_one() -> None:
    log = "".join(
        f"{kit}  | AT+CEREG?\n{kit}  | +CEREG: 0,{stat}\n{kit}  | OK\n"
        for kit, stat in (("one", 3), ("two", 1))
    )
    with pytest.raises(TranscriptError, match="several kits: one, two"):
        causes_of_log(log.encode())


def test_an_answer_whose_fields_are_not_known_is_an_answer() -> None:
    lines = ("AT+QTEMP", "+QTEMP: 38,255,255", 'AT+qeng="x"', '+QENG: "x","NOCONN","LTE","FDD"')
    assert causes_of(*lines) == ["nothing-found"]


def test_a_notice_that_was_lost_is_said_behind_what_is_surer() -> None:
    lost = "<wrn> at_monitor: No heap space for incoming notification: +CSCON: 0"
    assert causes_of(lost) == ["no-memory"]
    assert causes_of(lost, "<err> app: coap connect failed: -116")[0] == "server-unreachable"


def test_a_modem_that_crashed_has_so_wherever_it_was() -> None:
    crashed = "<err> nrf_modem: Modem has crashed, reason 0x{:x}, PC: 0x{:x}"
    assert causes_of(crashed.format(1, 0xFFF))[0] == "modem-crashed"
    assert causes_of(crashed.format(0xFFF, 0)) == ["modem-lib-off"]
