"""The lines of a log, one by one: what is a command, an answer or a log line, and its time."""

from __future__ import annotations

import io

import pytest

from at.transcripts.logs.lines import LogLine, Side
from at.transcripts.logs.reader import read_lines, read_log

SENT, RECEIVED, LOG = Side.SENT, Side.RECEIVED, Side.LOG


@pytest.mark.parametrize(
    ("line", "records"),
    [
        ("%XSYSTEMMODE: 0,0,0,0,1 OK", ["%XSYSTEMMODE: 0,0,0,0,1", "OK"]),
        (
            "AT%XSYSTEMMODE? %XSYSTEMMODE: 0,0,0,0,1 OK",
            ["AT%XSYSTEMMODE?", "%XSYSTEMMODE: 0,0,0,0,1", "OK"],
        ),
        ("AT+CFUN=1 OK", ["AT+CFUN=1", "OK"]),
        ("AT+CFUN? -> +CFUN: 1 -> OK", ["AT+CFUN?", "+CFUN: 1", "OK"]),
        ("AT+CFUN=1 +CME ERROR: 13", ["AT+CFUN=1", "+CME ERROR: 13"]),
        ('+COPS: 0,2,"an OK"', ['+COPS: 0,2,"an OK"']),
        ("AT+CGMR mfw_nrf91x1_2.0.4 OK", ["AT+CGMR", "mfw_nrf91x1_2.0.4", "OK"]),
        ("AT+CGSN 001009990000010 OK", ["AT+CGSN", "001009990000010", "OK"]),
        ("AT+CFUN?+CFUN: 1OK", ["AT+CFUN?", "+CFUN: 1", "OK"]),
        ("AT+CFUN=1OK+CEREG: 2+CEREG: 5,1", ["AT+CFUN=1", "OK", "+CEREG: 2", "+CEREG: 5,1"]),
        ("AT+CPIN?+CME ERROR: 10", ["AT+CPIN?", "+CME ERROR: 10"]),
        ('AT#XSEND="say +CEREG: 1OK"', ['AT#XSEND="say +CEREG: 1OK"']),
        ("%HWVERSION: nRF9160 SICA B1A", ["%HWVERSION: nRF9160 SICA B1A"]),
        ("+CPIN: SIM PIN", ["+CPIN: SIM PIN"]),
    ],
)
def test_the_words_of_one_line_are_records_of_their_own(line: str, records: list[str]) -> None:
    assert [found.text for found in read_log(f"AT\n{line}\n".encode()).lines[1:]] == records


def test_the_kits_log_lines_are_told_from_answers_and_keep_their_time() -> None:
    lines = read_log(
        b"uart:~$ at AT+CEREG?\n+CEREG: 5,2\nOK\n"
        b"uart:~$ [00:00:01.500,000] <err> lte_lc: refused\n"
        b"uart:~$ +CEREG: 3\nuart:~$ kernel version\nuart:~$ \n"
    ).lines
    assert lines[3:] == (
        LogLine(LOG, "[00:00:01.500,000] <err> lte_lc: refused", 1.5),
        LogLine(RECEIVED, "+CEREG: 3"),
        LogLine(LOG, "kernel version"),
    )
    alone = read_log(b"[00:00:01.500,000] <err> lte_lc: refused\n").lines
    assert alone == (LogLine(LOG, "[00:00:01.500,000] <err> lte_lc: refused", 1.5),)


def test_a_log_line_of_the_kit_that_is_indented_keeps_its_time() -> None:
    log = "[00:00:01.500,000] <inf> app: up"
    assert read_log(f"      {log}\n      +CEREG: 2\n".encode()).lines == (
        LogLine(LOG, log, 1.5),
        LogLine(RECEIVED, "+CEREG: 2"),
    )


@pytest.mark.parametrize("command", ["AT+CLAC", "AT#XCLAC", "at+clac"])
def test_a_list_of_commands_that_was_asked_for_is_the_answer(command: str) -> None:
    log = f"{command}\nAT+CFUN\nAT%XICCID\n{command.upper()}\nOK\nAT+CFUN\nERROR\n"
    assert [line.side for line in read_log(log.encode()).lines] == [
        *(SENT, RECEIVED, RECEIVED, RECEIVED, RECEIVED),
        *(SENT, RECEIVED),
    ]


@pytest.mark.parametrize(
    ("clock", "hour"),
    [
        ("[2026-11-02_12:05:00:000]", 12),
        ("12:05:00 AM", 0),
        ("3:05:00 PM", 15),
        ("12:05:00 PM", 12),
        ("3:05:00", 3),
    ],
)
def test_a_time_of_half_a_day_is_one_of_the_whole(clock: str, hour: int) -> None:
    (line,) = read_log(f"{clock} TX: AT+CFUN?\n".encode()).lines
    assert line.at_s == hour * 3600 + 300


@pytest.mark.parametrize(
    "lead",
    [
        "Nov 28 12:05:00.25 pi lted[612]: ",
        "<6>Nov 28 12:05:00.25 pi lted: ",
        "[Sat Nov 28 12:05:00.250 2026] ",
        "Sat Nov 28 12:05:00.25 2026: ",
        "Sat Nov 28 12:05:00.25 2026 daemon.notice lted[612]: ",
    ],
)
def test_the_time_of_a_log_that_names_the_month_is_one(lead: str) -> None:
    (line,) = read_log(f"{lead}TX: AT+CFUN?\n".encode()).lines
    assert line == LogLine(SENT, "AT+CFUN?", 12 * 3600 + 300.25)


def test_commands_of_a_modems_first_manual_are_commands() -> None:
    sent = ["ATS0=0", "AT S7=45 S0=0 L1 V1", "ATV1", "ATDT*99***1#", "ATD+491701;", "ATH", "ATO0"]
    sent += ["AT$QCPDPP=1,0", "ATX4"]
    lines = read_log("".join(f"{one}\nOK\n" for one in sent).encode()).lines
    assert [line.text for line in lines if line.side is SENT] == sent
    words = b"Attached\nAT command\nat home\nATA: done\nAT\nOK\n"
    assert [line.text for line in read_log(words).lines if line.side is SENT] == ["AT"]


def test_the_commands_and_answers_of_a_sierra_are_known_by_their_sign() -> None:
    lines = read_log(b"AT!PCTEMP?\n!PCTEMP: 29\nOK\nNote! see the manual\n").lines
    assert [line.side for line in lines] == [SENT, RECEIVED, RECEIVED, RECEIVED]


def test_of_chats_own_words_none_is_the_modems() -> None:
    log = (
        "abort on (\\nERROR\\r)\nsend (ATD*99#^M)\nexpect (CONNECT)\n^M\nATD*99#^M^M\n"
        "CONNECT 115200^M\n -- got it\nalarm\nsend (AT^M)\nAT^M\nOK\nConnect: ppp0 <--> tty\n"
    )
    lines = read_log(log.encode()).lines
    assert [line.text for line in lines if line.side is SENT] == ["ATD*99#", "AT"]
    received = ["ATD*99#", "CONNECT 115200", "AT", "OK"]
    assert [line.text for line in lines if line.side is RECEIVED] == received


def test_a_command_behind_a_result_whose_line_end_was_lost_is_one() -> None:
    lines = read_log(b"AT+CPIN?\n+CPIN: READY\nOKat+cereg?\n+CEREG: 2,3\nERRORAT%XSIM?\n").lines
    assert [(line.side, line.text) for line in lines] == [
        (SENT, "AT+CPIN?"),
        (RECEIVED, "+CPIN: READY"),
        (RECEIVED, "OK"),
        (SENT, "at+cereg?"),
        (RECEIVED, "+CEREG: 2,3"),
        (RECEIVED, "ERROR"),
        (SENT, "AT%XSIM?"),
    ]


@pytest.mark.parametrize(
    "lead",
    [
        "[  9916][D][modem.cpp:150] send(): {}",
        "[12:34:56][D][modem:123]: {}",
        "\x1b[0;36m[12:34:56.250][D][sim800l:062]: {}\x1b[0m",
        "Sat 2019/11/16 12:00:00 gammu-smsd[123]: {}",
        "2024/05/06 10:00:00 modem.go:31: {}",
        "[2024-05-06T10:00:00Z DEBUG modem::at] {}",
        "2024-05-06 10:00:00,100 [Thread-1] DEBUG com.example.Modem - {}",
        "2024-05-06 10:00:00.100 | DEBUG    | modem:send:31 - {}",
        "D/AT      ( 1234): {}",
        "(10:00:00.100) (COM5) {}",
        "20240506 10:00:00.100 - INFO - {}",
    ],
)
def test_what_a_logger_sets_before_a_mark_is_no_part_of_it(lead: str) -> None:
    log = "\n".join(map(lead.format, ("TX: AT+CFUN?", "RX: SARA-R410M", "RX: OK")))
    lines = read_log(log.encode()).lines
    assert [(line.side, line.text) for line in lines] == [
        (SENT, "AT+CFUN?"),
        (RECEIVED, "SARA-R410M"),
        (RECEIVED, "OK"),
    ]


def test_literals_stand_behind_the_words_of_a_console() -> None:
    log = (
        "[2024-05-06 10:00:00,100] Console: Write b'AT+CGMM\\r'\n"
        "[2024-05-06 10:00:00,200] Console: Read b'\\r\\nSARA-R410M\\r\\nOK\\r\\n'\n"
    )
    assert [line.text for line in read_log(log.encode()).lines] == ["AT+CGMM", "SARA-R410M", "OK"]


def test_an_answer_over_several_lines_has_a_mark_on_its_first_one() -> None:
    log = "[10:00:00.100]发→◇AT+CGMM\n□\n[10:00:00.200]收←◆AT+CGMM\nSARA-R410M\n\nOK\n\n"
    assert [(line.side, line.text) for line in read_log(log.encode()).lines] == [
        (SENT, "AT+CGMM"),
        (RECEIVED, "AT+CGMM"),
        (RECEIVED, "SARA-R410M"),
        (RECEIVED, "OK"),
    ]


def test_an_echo_that_is_read_back_was_not_sent_again() -> None:
    log = (
        ">>> uart.write('AT+CGMM\\r')\n8\n>>> uart.read()\n"
        "b'AT+CGMM\\r\\r\\nSARA-R410M\\r\\n\\r\\nOK\\r\\n'\n"
    )
    lines = [line for line in read_log(log.encode()).lines if line.side is not Side.LOG]
    assert [(line.side, line.text) for line in lines] == [
        (SENT, "AT+CGMM"),
        (RECEIVED, "AT+CGMM"),
        (RECEIVED, "SARA-R410M"),
        (RECEIVED, "OK"),
    ]


@pytest.mark.parametrize(
    ("line", "sent", "received"),
    [
        ("ATI;Quectel;BG96;Revision: BG96MAR02", "ATI", ["Quectel", "BG96", "Revision: BG96MAR02"]),
        ("AT+CEREG?;+CEREG: 0,1;OK", "AT+CEREG?", ["+CEREG: 0,1", "OK"]),
        ('AT+COPS?;+COPS: 0,0,"a";OK', "AT+COPS?", ['+COPS: 0,0,"a"', "OK"]),
        ("AT+CSQ;+CGMM;+CSQ: 9,99;BG96;OK", "AT+CSQ;+CGMM", ["+CSQ: 9,99", "BG96", "OK"]),
        ("AT+CMEE=1;+CFUN=1", "AT+CMEE=1;+CFUN=1", []),
        ('AT#X="a;b;OK"', 'AT#X="a;b;OK"', []),
        ("### AT: AT+CFUN?", "AT+CFUN?", []),
        ("[2034] ### AT:AT+CFUN?", "AT+CFUN?", []),
    ],
)
def test_an_exchange_in_one_line_has_a_semicolon_for_each_line_end(
    line: str, sent: str, received: list[str]
) -> None:
    lines = read_log(f"{line}\n".encode()).lines
    assert [(one.side, one.text) for one in lines] == [
        (SENT, sent),
        *((RECEIVED, text) for text in received),
    ]


def test_noise_that_looks_like_the_mark_of_utf_16_is_noise() -> None:
    log = b"\xff\xfe\0\r\nAT+CFUN?\r\n+CFUN: 1\r\nOK\r\n"
    assert [line.text for line in read_log(log).lines][1:] == ["AT+CFUN?", "+CFUN: 1", "OK"]
    one_by_one = read_lines(io.BufferedReader(io.BytesIO(log)))
    assert [line.text for line in one_by_one][1:] == ["AT+CFUN?", "+CFUN: 1", "OK"]


@pytest.mark.parametrize("lead", ["[  9916][V][modem.h:7] loop(): ", "[12:34:56][D][modem:123]: "])
def test_the_level_and_the_file_before_a_line_without_a_mark_are_no_part_of_it(lead: str) -> None:
    lines = read_log(f"{lead}AT+CGMM\n{lead}SARA-R410M\n{lead}OK\n".encode()).lines
    assert [line.text for line in lines] == ["AT+CGMM", "SARA-R410M", "OK"]


@pytest.mark.parametrize(
    "line",
    [
        "Command: {}, Response: +CFUN: 1 OK",
        "INFO:at.port:Sent: {}; Received: b'+CFUN: 1\\r\\nOK\\r\\n'",
        "TX: {} | RX: ['+CFUN: 1', 'OK']",
    ],
)
@pytest.mark.parametrize("command", ["AT+CFUN?", 'AT#X="a, RX: b"', "AT"])
def test_the_answer_that_is_marked_on_its_commands_line_is_no_part_of_it(
    line: str, command: str
) -> None:
    lines = read_log(line.format(command).encode()).lines
    assert [(found.side, found.text) for found in lines] == [
        (SENT, command),
        (RECEIVED, "+CFUN: 1"),
        (RECEIVED, "OK"),
    ]


def test_a_remark_behind_a_line_is_no_part_of_it() -> None:
    lines = read_log(
        b'at+cops=1,2,"00101" //Our SIM is another one\'s\n'
        b"+CNEC_EMM: 11 // refused\nAT+CFUN=4    # off\nOK  <-- at last\n"
        b"+CFUN: 4 (port.py:43)\n"
        + "AT+CMEE=1  【注意】 ERROR\n".encode()
        + b'AT#XSEND="a // b # c"\nAT+CPIN=1111\n#XHTTPC: http://host.example # 1\n'
    ).lines
    assert [line.text for line in lines] == [
        'at+cops=1,2,"00101"', "+CNEC_EMM: 11", "AT+CFUN=4", "OK", "+CFUN: 4", "AT+CMEE=1",
        'AT#XSEND="a // b # c"', "AT+CPIN=1111", "#XHTTPC: http://host.example",
    ]  # fmt: skip


@pytest.mark.parametrize("between", ["{} => {}", "{} : {}", "{} -> {}", "'{}' -> '{}'"])
def test_an_answer_behind_its_command_on_the_line_is_one(between: str) -> None:
    log = f"{between.format('AT+CFUN?', '+CFUN: 1')}\n{between.format('AT+CSQ', '+CSQ: 9,9')}\n"
    assert [(line.side, line.text) for line in read_log(log.encode()).lines] == [
        (SENT, "AT+CFUN?"),
        (RECEIVED, "+CFUN: 1"),
        (SENT, "AT+CSQ"),
        (RECEIVED, "+CSQ: 9,9"),
    ]


@pytest.mark.parametrize(("sent", "received"), [("TX: ", "RX: "), (">> ", "<< ")])
def test_an_answer_whose_first_line_alone_is_marked_is_whole(sent: str, received: str) -> None:
    log = (
        f"{sent}AT#XPING=1\n{received}OK\n{received}#XPING: 0.6\n\n#XPING: 0.5\n"
        f"{sent}AT+CFUN?\n{received}+CFUN: 1\n\nOK\n\nOK\nthe modem is on\n"
    )
    assert [(line.side, line.text) for line in read_log(log.encode()).lines] == [
        (SENT, "AT#XPING=1"),
        *((RECEIVED, text) for text in ("OK", "#XPING: 0.6", "#XPING: 0.5")),
        (SENT, "AT+CFUN?"),
        *((RECEIVED, text) for text in ("+CFUN: 1", "OK")),
        *((Side.LOG, text) for text in ("OK", "the modem is on")),
    ]


@pytest.mark.parametrize("line", ["uart:~$ at {}", 'uart:~$ at "{}"', "{}", "> {}"])
def test_quotes_that_were_escaped_for_a_shell_went_over_the_port_without(line: str) -> None:
    command = 'AT+CGDCONT=0,"IP","iot.example"'
    log = f"{line.format(command.replace(chr(34), chr(92) + chr(34)))}\nOK\n"
    assert read_log(log.encode()).lines[0].text == command
    kept = r'AT#XSEND="{\"a\":1}"'
    assert read_log(f"> {kept}\nOK\n".encode()).lines[0].text == kept


@pytest.mark.parametrize("end", ["{0D}{0A}", "<0Dh><0Ah>", "[CR][LF]", "<CR>", "{0d}"])
def test_the_line_end_that_a_tool_shows_by_name_or_in_hex_is_no_part_of_a_line(end: str) -> None:
    lines = read_log(f"AT{end}\nOK\nAT+CFUN?{end}\n+CFUN: 1\nOK\n".encode()).lines
    assert [line.text for line in lines if line.side is SENT] == ["AT", "AT+CFUN?"]


def test_a_folders_name_in_a_path_of_windows_is_no_line_end() -> None:
    saved = "INFO saved to C:\\Users\\noah\\AppData\\Roaming\\nrfconnect\\run.txt"
    lines = read_log(f"{saved}\n> AT+CFUN?\\r\\n\n+CFUN: 1\\r\nOK\\r\n".encode()).lines
    assert [line.text for line in lines] == [
        saved.removeprefix("INFO "), "AT+CFUN?", "+CFUN: 1", "OK",
    ]  # fmt: skip


def test_a_command_behind_what_a_program_prints_of_it_is_one() -> None:
    lines = read_log(b'Waiting for network...AT+CEREG?\n+CEREG: 0,2\nOK\nAT#X="...AT+X"\n').lines
    assert [(line.side, line.text) for line in lines] == [
        (RECEIVED, "Waiting for network..."),
        (SENT, "AT+CEREG?"),
        (RECEIVED, "+CEREG: 0,2"),
        (RECEIVED, "OK"),
        (SENT, 'AT#X="...AT+X"'),
    ]


@pytest.mark.parametrize("prompt", ["uart:~$ ", "00> rtt:~$ ", "rtt:~$ rtt:~$ "])
def test_a_prompt_before_a_log_line_is_no_part_of_it(prompt: str) -> None:
    log = "[00:00:02.500,000] <inf> app: will send AT+CREG=1"
    assert read_log(f"{prompt}{log}\n".encode()).lines == (LogLine(Side.LOG, log, 2.5),)


def test_a_prompt_of_ones_own_is_no_part_of_what_stands_behind_it() -> None:
    read = read_log(b"kit-2> AT+CEREG?\n+CEREG: 5,1\nOK\nkit-2> +CEREG: 2\nkit-2> \n")
    assert [(line.side, line.text) for line in read.lines] == [
        (SENT, "AT+CEREG?"),
        (RECEIVED, "+CEREG: 5,1"),
        (RECEIVED, "OK"),
        (RECEIVED, "+CEREG: 2"),
        (LOG, "kit-2>"),
    ]


def test_a_mark_in_the_kits_log_says_nothing_on_the_port_itself() -> None:
    log = "[00:00:02.500,000] <inf> app: at: > AT+CFUN?"
    read = read_log(f"AT+CFUN?\n{log}\n+CFUN: 1\nOK\n".encode())
    assert [(line.side, line.text) for line in read.lines] == [
        (SENT, "AT+CFUN?"),
        (LOG, log),
        (RECEIVED, "+CFUN: 1"),
        (RECEIVED, "OK"),
    ]


def test_a_command_that_firmware_logs_with_a_mark_is_sent_once() -> None:
    log = "[00:00:02.500,000] <inf> app: at: > AT+CFUN?"
    read = read_log(f"> AT+CFUN?\n{log}\n+CFUN: 1\nOK\n".encode())
    sides = [line.side for line in read.lines]
    assert (sides, read.lines[1].text) == ([SENT, LOG, RECEIVED, RECEIVED], log)


def test_a_command_that_a_shell_does_not_know_is_its_answer() -> None:
    lines = read_log(b"uart:~$ AT+CEREG?\nAT+CEREG?: command not found\n").lines
    assert [line.side for line in lines] == [SENT, RECEIVED]


def test_a_command_whose_prompt_names_the_one_who_typed_it_was_sent() -> None:
    read = read_log(b"[bench-2] > at AT+CFUN?\n+CFUN: 1\nOK\n[me] > kernel uptime\n[me] > at AT\n")
    sent = [line.text for line in read.lines if line.side is SENT]
    assert (sent, read.of_the_kit) == (["AT+CFUN?", "AT"], True)


def test_a_sentence_that_begins_with_a_command_is_none() -> None:
    read = read_log(b'AT+CFUN=4\nAT+CFUN? then says +CFUN: 4, as it should\nAT#XSEND="so it is"\n')
    assert [line.text for line in read.lines if line.side is SENT] == [
        "AT+CFUN=4", 'AT#XSEND="so it is"',
    ]  # fmt: skip


def test_a_command_in_a_shell_whose_prompt_went_to_a_line_of_the_kit_was_sent() -> None:
    log = (
        b"mosh:~$ Modem domain event: No IMEI\nat AT+CGMM\nnRF9151-LACA\n\nOK\nmosh:~$ at AT\nOK\n"
    )
    assert [(line.side, line.text) for line in read_log(log).lines] == [
        (LOG, "Modem domain event: No IMEI"),
        (SENT, "AT+CGMM"), (RECEIVED, "nRF9151-LACA"), (RECEIVED, "OK"),
        (SENT, "AT"), (RECEIVED, "OK"),
    ]  # fmt: skip


def test_prints_of_a_program_with_commands_between_are_read() -> None:
    log = b"Initializing modem...\nAT+CEREG?\r\r\n+CEREG: 0,2\r\r\nOK\r\n[13290] ### TinyGSM\n"
    assert [line.side for line in read_log(log).lines] == [
        RECEIVED, SENT, RECEIVED, RECEIVED, RECEIVED,
    ]  # fmt: skip


def test_an_answer_that_lost_the_end_of_its_quotes_ends_before_the_next_command() -> None:
    data = b'AT%XMONITOR\n%XMONITOR: 5,"","","26295","00\nAT+CFUN?\n+CFUN: 1\nOK\n'
    texts = [line.text for line in read_log(data).lines]
    assert texts == data.decode().splitlines()


@pytest.mark.parametrize(
    ("log", "read"),
    [
        (
            b"10:00:00 TX: AT+CFUN?\n10:00:01 RX: +CFUN: 1\n10:00:01 RX: OK\n",
            ["AT+CFUN?", "+CFUN: 1", "OK"],
        ),
        (b"001018340000018\n", ["001018340000018"]),
    ],
    ids=["times before lines", "an IMEI alone"],
)
def test_a_log_with_hex_digits_is_no_dump_in_hex(log: bytes, read: list[str]) -> None:
    lines = read_lines(io.BufferedReader(io.BytesIO(log)))
    assert [line.text for line in lines] == read


def lines_of(log: str) -> list[tuple[Side, str]]:
    """Return the sides and texts of a log's lines."""
    return [(line.side, line.text) for line in read_log(log.encode()).lines]


@pytest.mark.parametrize("mark", ["", "10:00:01.250 -> "])
def test_a_command_that_comes_back_before_anything_else_is_its_echo(mark: str) -> None:
    texts = ["AT", "AT", "OK", "AT+CSQ", "AT+CSQ", "+CSQ: 9,99", "OK", "AT+CSQ", "OK"]
    log = "".join(f"{mark}{text}\n" for text in texts)
    sent = [index for index, line in enumerate(lines_of(log)) if line[0] is SENT]
    assert sent == [0, 1, 3, 7]  # AT is sent again and again till it is answered


@pytest.mark.parametrize(
    "printed",
    [".", "Modem started!", "Signal quality:27", "Connecting to iot.example", "+NETOPEN: 0"],
)
def test_what_a_program_prints_right_before_a_command_is_not_of_it(printed: str) -> None:
    log = f"AT+CPIN?\n+CPIN: READY\nOK\n{printed}AT+CEREG?\n+CEREG: 0,1\nOK\n"
    assert lines_of(log)[3:5] == [(RECEIVED, printed), (SENT, "AT+CEREG?")]


def test_a_blank_that_stands_alone_on_a_line_of_a_port_read_by_characters_is_kept() -> None:
    log = "TX: AT<cr>\n" + "".join(f"RX: {sign}\n" for sign in ("+CME ERROR:", " ", "10", "<cr>"))
    assert lines_of(log)[1] == (RECEIVED, "+CME ERROR: 10")


def test_a_sentence_that_ends_with_at_is_no_mark_of_a_command() -> None:
    log = "AT\nOK\nDone testing AT.\nAT+CPIN?\n+CPIN: READY\nOK\n"
    assert read_log(log.encode()).shape == "bare"


def test_what_a_driver_waits_for_was_not_received() -> None:
    log = "AT> AT+CEREG?\nAT? +CEREG: %d,%d\nAT< +CEREG: 0,2\nAT< OK\n"
    assert [text for side, text in lines_of(log) if side is RECEIVED] == ["+CEREG: 0,2", "OK"]


def test_a_notice_that_a_library_calls_so_was_received() -> None:
    log = "DEBUG: write: AT+CSQ\nDEBUG: response: ['OK']\nDEBUG: notification: ['+CUSD: 5']\n"
    assert lines_of(log) == [(SENT, "AT+CSQ"), (RECEIVED, "OK"), (RECEIVED, "+CUSD: 5")]


def test_the_name_of_a_function_of_esp_modem_is_no_response() -> None:
    log = "V (1) command_lib: at\nV (2) command_lib: Token: {AT}\nV (3) command_lib: Token: {OK}\n"
    assert [line for line in lines_of(log) if line[0] is not Side.LOG] == [
        (SENT, "AT"), (RECEIVED, "OK"),
    ]  # fmt: skip
