"""What a log is wrapped in changes nothing of what it says."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts.logs.lines import Side
from at.transcripts.logs.reader import read_log
from at.transcripts.logs.records import elements

TEXTS = st.text("abc'\\,;|&=é[]{}()", max_size=12)
CELLS = st.lists(
    st.one_of(
        st.tuples(st.just("tx"), TEXTS.map('AT+COPS=1,0,"{}"'.format)),
        st.tuples(st.just("rx"), TEXTS.map('+COPS: 1,0,"{}"'.format)),
    ),
    max_size=6,
).map(lambda cells: [("tx", "AT"), *cells])
SIDES = {"tx": Side.SENT, "rx": Side.RECEIVED}


def read(log: str) -> list[tuple[Side, str]]:
    return [(line.side, line.text) for line in read_log(log.encode()).lines]


@given(cells=CELLS, delimiter=st.sampled_from(",;\t"))
def test_a_table_says_what_its_cells_say(cells: list[tuple[str, str]], delimiter: str) -> None:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerows([("time", "direction", "data", "length"), *[("1.5", *c, 9) for c in cells]])
    assert read(file.getvalue()) == [(SIDES[side], text) for side, text in cells]


@given(cells=CELLS, marked=st.booleans())
def test_literals_say_what_python_reads_in_them(cells: list[tuple[str, str]], marked: bool) -> None:
    said = [(side, f"{text}\r\n".encode()) for side, text in cells]
    log = "\n".join(repr(pair if marked else pair[1]) for pair in said)
    assert read(log) == [(SIDES[side], text.decode().strip()) for side, text in said]


def test_several_literals_stand_on_one_line() -> None:
    assert read("TX b'AT+CFUN?\\r' RX b'\\r\\n+CFUN: 1\\r\\n' b'OK\\r\\n'\n") == [
        (Side.SENT, "AT+CFUN?"), (Side.RECEIVED, "+CFUN: 1"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    assert read("('AT+CFUN?', ['+CFUN: 1', 'OK'])\n")[1:] == [
        (Side.RECEIVED, "+CFUN: 1"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        '{{"log":"{}\\r\\n","stream":"stdout","time":"2026-02-10T12:00:00.25Z"}}',
        '{{"time":"2026-02-10T12:00:00.25Z","level":"DEBUG","msg":"{}"}}',
        'time=2026-02-10T12:00:00.25Z level=debug msg="{}"',
    ],
)
@pytest.mark.parametrize("marks", [("", ""), ("TX: ", "RX: ")])
def test_what_a_logger_writes_as_a_record_is_its_message(
    record: str, marks: tuple[str, str]
) -> None:
    said = (f"{marks[0]}AT+COPS?", f"{marks[1]}+COPS: 1,0,'a'", f"{marks[1]}OK")
    lines = read_log("\n".join(map(record.format, said)).encode()).lines
    assert [(line.side, line.text) for line in lines] == [
        (Side.SENT, "AT+COPS?"), (Side.RECEIVED, "+COPS: 1,0,'a'"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    assert {line.at_s for line in lines} == {12 * 3600 + 0.25}


@pytest.mark.parametrize(
    "line", ['{"message":"hello","ts":1}', "level=3", 'msg="OK"', '{"level":1,"msg":2}', '{"a"']
)
def test_a_record_that_no_logger_wrote_stays(line: str) -> None:
    assert read(f"AT\n{line}\nOK\n")[1] == (Side.RECEIVED, line)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        *(("[code]", "[/code]"), ("<pre>", "</pre>"), ("<code>", "</code>")),
        *(('<pre><code class="c">', "</code></pre>"), ("", "<br />")),
    ],
)
def test_what_a_forum_sets_around_a_log_is_no_part_of_it(begin: str, end: str) -> None:
    assert read(f"{begin}AT\nOK{end}\n") == [(Side.SENT, "AT"), (Side.RECEIVED, "OK")]


def test_the_text_that_a_logger_sets_behind_the_direction_by_its_name_is_said_in_it() -> None:
    log = (
        "2026-05-01T10:22:01.114Z [debug    ] tx                 data='AT+CFUN?\\r'\n"
        "2026-05-01T10:22:01.131Z [debug    ] rx                 data='+CFUN: 0\\r\\nOK\\r\\n'\n"
        "2026-05-01T10:22:02.000Z [warning  ] data='no direction'\n"
    )
    lines = read_log(log.encode()).lines
    assert [(line.side, line.text) for line in lines[:3]] == [
        (Side.SENT, "AT+CFUN?"), (Side.RECEIVED, "+CFUN: 0"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    assert [line.side for line in lines[3:]] == [Side.LOG]


def test_an_echo_in_a_literal_is_received() -> None:
    assert read("TX b'AT\\r'\nRX b'AT\\r\\r\\nOK\\r\\n'\n") == [
        (Side.SENT, "AT"), (Side.RECEIVED, "AT"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip


_PACKETS = {
    "CSV": (
        '"No.","Time","Source","Info"\n'
        '"1","0.25","host","URB_BULK out, Sent AT Command: AT+CGSN=1  "\n'
        '"2","0.26","host","URB_BULK in"\n'
        '"7","0.5","1.6.2","URB_BULK in, Rcvd AT Command:   +CGSN: ""17""    OK  "\n'
    ),
    "text": (
        "   1 0.25  host → 1.6.2  AT 9 Sent AT Command: AT+CGSN=1\n"
        '   7 0.5  1.6.2 → host  AT 9 Rcvd AT Command :   +CGSN: "17"    OK\n'
    ),
    "no direction": (
        "1\t0.25\t\t\tAT\t9\tUnknownDirection AT Command: AT+CGSN=1\n"
        '7\t0.5\t\t\tAT\t9\tUnknownDirection AT Command: +CGSN: "17"  OK\n'
    ),
}


@pytest.mark.parametrize("log", _PACKETS.values(), ids=_PACKETS)
def test_packets_of_wireshark_say_what_went_over_the_port(log: str) -> None:
    lines = [line for line in read_log(log.encode()).lines if line.side is not Side.LOG]
    assert [(line.side, line.text, line.at_s) for line in lines] == [
        (Side.SENT, "AT+CGSN=1", 0.25),
        (Side.RECEIVED, '+CGSN: "17"', 0.5),
        (Side.RECEIVED, "OK", 0.5),
    ]


def test_a_key_in_a_cell_of_several_lines_is_one_command() -> None:
    log = (
        'time,dir,data\n1.0,TX,"AT%CMNG=0,7,0,""-----BEGIN\nMII=\n-----END"""\n'
        "2026-11-02 10:00:00,RX,OK\nwhen it rained,note,nothing\n"
    )
    lines = read_log(log.encode()).lines
    assert [line.text for line in lines] == [
        'AT%CMNG=0,7,0,"-----BEGIN\nMII=\n-----END"', "OK", "when it rained note nothing",
    ]  # fmt: skip
    assert [line.number for line in lines] == [2, 5, 6]
    assert [line.at_s for line in lines] == [1.0, 36000.0, None]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('TX,AT+COPS=1,2,"24412"', "4 columns, the heading has 2"),
        ("TX", "1 column, the heading has 2"),
        ('TX,"AT+COPS=1,2,"24412""', "',' expected after '\"'"),
        ('TX,"AT', "unexpected end of data"),
    ],
)
def test_a_row_that_its_heading_does_not_fit_is_refused_by_its_line(row: str, reason: str) -> None:
    with pytest.raises(TranscriptError, match="line 3 is no row of the table") as refused:
        read(f"direction,data\nRX,OK\n{row}\n")
    assert reason in str(refused.value)
    assert "stands in quotes" in refused.value.hint


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("timestamp,message", '{0}000,"{1}"'),  # CloudWatch's; its Insights have @ before names
        ("@timestamp,@message", '2026-11-02 10:00:0{0}.000,"{1}"'),
        ('"Date","Host","Message"', '"2026-11-02T10:00:0{0}.000Z","gw-1","{1}"'),  # Datadog's
        ('"timestamp","source","message"', '"2026-11-02T10:00:0{0}.000Z","gw","{1}"'),  # Graylog's
        ("_time;_raw", '2026-11-02T10:00:0{0}.000+0000;"{1}"'),  # Splunk's
    ],
)
@pytest.mark.parametrize("newest_first", [False, True])
def test_an_export_of_a_store_of_logs_has_no_direction_and_may_begin_with_the_newest(
    heading: str, row: str, newest_first: bool
) -> None:
    said = [(3, "AT+CEREG?"), (4, '+CEREG: 5,3,""00B7"",""0001D003"",7,0,15'), (4, "OK")]
    first = "170000000" if row.startswith("{") else ""
    rows = [first + row.format(second, text) for second, text in said]
    lines = read_log("\n".join([heading, *rows[:: -1 if newest_first else 1]]).encode()).lines
    assert [(line.side, line.text) for line in lines] == [
        (Side.SENT, "AT+CEREG?"),
        (Side.RECEIVED, '+CEREG: 5,3,"00B7","0001D003",7,0,15'),
        (Side.RECEIVED, "OK"),
    ]
    times = [line.at_s for line in lines if line.at_s is not None]
    assert [time - times[0] for time in times] == [0, 1, 1]


def test_a_table_of_the_time_of_day_may_go_over_midnight() -> None:
    assert read("time,data\n23:59:59,AT+CGMM\n00:00:01,nRF9151-LACA\n00:00:01,OK\n") == [
        (Side.SENT, "AT+CGMM"), (Side.RECEIVED, "nRF9151-LACA"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "row"),
    [  # Saleae's Logic 1 and 2
        ("Time [s],Value,Parity Error,Framing Error", "{0:.15f},{1},,"),
        ("name,type,start_time,duration,data", '"Async Serial","data",{0},8e-05,{2}'),
    ],
)
def test_a_logic_analyser_on_one_line_of_a_port_names_no_direction(heading: str, row: str) -> None:
    said = "AT+CFUN?\r\r\n+CFUN: 1\r\n\r\nOK\r\n"
    rows = [
        row.format(number / 1000, repr(sign)[1:-1], f"0x{ord(sign):02X}")
        for number, sign in enumerate(said)
    ]
    lines = read_log("\n".join([heading, *rows]).encode()).lines
    assert [(line.side, line.text, line.at_s) for line in lines] == [
        (Side.SENT, "AT+CFUN?", 0.0),
        (Side.RECEIVED, "+CFUN: 1", 0.011),
        (Side.RECEIVED, "OK", 0.023),
    ]


def test_html_is_unescaped_where_all_is_escaped() -> None:
    assert read("&gt; AT+X=&quot;a&amp;b&quot;\n&lt; OK\n") == [
        (Side.SENT, 'AT+X="a&b"'), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    assert read('> AT+X="&quot;"\n< OK\n')[0] == (Side.SENT, 'AT+X="&quot;"')


@pytest.mark.parametrize("damaged", [b"b'OK\xff'", "b'é'".encode(), b"'\xff'", b"b'\\q'"])
def test_a_literal_that_python_would_not_read_is_left_out(damaged: bytes) -> None:
    log = b"b'AT\\r'\nb'OK\\r\\n'\n" + damaged + b"\n"
    lines = read_log(log).lines
    assert [line.text for line in lines if line.side is not Side.LOG] == ["AT", "OK"]


@given(
    fields=st.lists(st.integers(-200, 9999).map(str) | st.just('"0199F10A"'), max_size=60),
    indent=st.integers(0, 3),
)
def test_an_answer_that_a_terminal_broke_is_whole(fields: list[str], indent: int) -> None:
    answer = f"%NCELLMEAS: {'0' * indent}1,{','.join(fields)}".rstrip(",")
    screen = "\n".join(answer[at : at + 80] for at in range(0, len(answer), 80))
    assert read(f"AT%NCELLMEAS\nOK\n{screen}\nAT+CGSN\n001010009990000\nOK\n")[2:] == [
        (Side.RECEIVED, answer),
        (Side.SENT, "AT+CGSN"),
        (Side.RECEIVED, "001010009990000"),
        (Side.RECEIVED, "OK"),
    ]


def test_a_command_that_a_terminal_broke_within_its_quotes_is_whole() -> None:
    command = f'AT#XMQTTCON=1,"a name of the kit","a word","{"host-" * 9}.example",8883'
    log = f"{command[:80]}\n{command[80:]}\nOK\n"
    assert read(log) == [(Side.SENT, command), (Side.RECEIVED, "OK")]


def test_quotes_and_blanks_that_a_forum_made_its_own_are_plain_but_in_a_credential() -> None:
    pem = "AT%CMNG=0,1,0,\u201c-----BEGIN CERTIFICATE-----"
    log = f"AT+CGDCONT=0,\u201cIP\u201d,\u201ciot.example\u201d\xa0\n+CFUN:\xa01\nOK\n{pem}\n"
    assert read(log) == [
        (Side.SENT, 'AT+CGDCONT=0,"IP","iot.example"'),
        (Side.RECEIVED, "+CFUN: 1"),
        (Side.RECEIVED, "OK"),
        (Side.SENT, pem),
    ]


SESSION = [
    (Side.SENT, "AT+CGMR"),
    (Side.RECEIVED, "mfw_nrf91x1_2.0.4"),
    (Side.RECEIVED, "OK"),
    (Side.SENT, "AT+CEREG?"),
    (Side.RECEIVED, "+CEREG: 0,0"),
    (Side.RECEIVED, "OK"),
]


def by_socat(session: list[tuple[Side, str]], piece: int) -> str:
    """Return what `socat -v` prints of a session of which each write takes `piece` characters."""
    log = ""
    for side, text in session:
        arrow, line = (">", f"{text}\r") if side is Side.SENT else ("<", f"{text}\r\n")
        for at in range(0, len(line), piece):
            data = line[at : at + piece]
            spelled = data.replace("\r", "\\r")
            log += f"{arrow} 2026/11/02 12:05:00.250000  length={len(data)} from=0 to=9\n{spelled}"
    return log


@pytest.mark.parametrize("piece", [100, 5, 1])
def test_socat_tells_a_session_in_pieces_whose_ends_it_spells(piece: int) -> None:
    assert read(by_socat(SESSION, piece)) == SESSION


def test_an_answer_that_a_log_line_cut_is_whole_behind_it() -> None:
    tick = "[00:00:01.000,000] <inf> app: tick"
    assert read(f"AT+CPIN?\n+CPIN: SI{tick}\nM PIN\nOK\n") == [
        (Side.SENT, "AT+CPIN?"),
        (Side.LOG, tick),
        (Side.RECEIVED, "+CPIN: SIM PIN"),
        (Side.RECEIVED, "OK"),
    ]
    assert read(f"AT+CFUN=1{tick}\nOK\n+CEREG: 2{tick}\n+CEREG: 5\n%XTIME: ,{tick}\n") == [
        (Side.SENT, "AT+CFUN=1"),
        (Side.LOG, tick),
        (Side.RECEIVED, "OK"),
        (Side.LOG, tick),
        (Side.RECEIVED, "+CEREG: 2"),
        (Side.RECEIVED, "+CEREG: 5"),
        (Side.LOG, tick),
        (Side.RECEIVED, "%XTIME: ,"),
    ]


def test_an_object_of_json_a_line_says_what_a_row_of_a_table_does() -> None:
    records = [
        {"ts": 1.5, "dir": "tx", "data": "AT+CPIN?\r"},
        {"ts": 1.6, "dir": "rx", "data": "\r\n+CPIN: SIM PIN\r\n\r\nOK\r\n"},
        {"time": "2026-11-02T12:00:01Z", "direction": "sent", "message": "AT+CGMR"},
    ]
    lines = read_log("\n".join(map(json.dumps, records)).encode()).lines
    assert [(line.side, line.text, line.at_s) for line in lines] == [
        (Side.SENT, "AT+CPIN?", 1.5),
        (Side.RECEIVED, "+CPIN: SIM PIN", 1.6),
        (Side.RECEIVED, "OK", 1.6),
        (Side.SENT, "AT+CGMR", 43201.0),
    ]
    deep = '{"a":' * 100_000
    assert read(f"AT\nOK\n{deep}\n")[2] == (Side.RECEIVED, deep)


def test_a_message_with_colours_is_a_list_of_bytes_to_journald() -> None:
    messages = ("\x1b[32m> AT+CGMM\x1b[0m", "\x1b[32m< nRF9151-LACA\x1b[0m", "< OK")
    records = [{"PRIORITY": "6", "MESSAGE": list(message.encode())} for message in messages]
    assert read("\n".join(map(json.dumps, records))) == [
        (Side.SENT, "AT+CGMM"), (Side.RECEIVED, "nRF9151-LACA"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    for none in ([256], ["A"], [-1]):
        line = json.dumps({"PRIORITY": "6", "MESSAGE": none})
        assert read(f"> AT\n< OK\n{line}\n")[-1] == (Side.LOG, line)


def test_an_answer_that_each_line_cuts_costs_no_more_than_its_length() -> None:
    tick = "x[00:00:01.000,000] <inf> app: tick\n"
    lines = read(f"AT\nOK\n+X: {tick}{tick * 2000}")
    assert max(len(text) for _, text in lines) < 600


@pytest.mark.parametrize("quote", ["", ">> "])
def test_what_a_mail_breaks_of_modemmanagers_log_is_whole(quote: str) -> None:
    log = (
        "<debug> [1700000313.155742] [modem0/ttyUSB1/at] --> 'AT+CCLK?<CR>'\n"
        "<debug> [1700000313.168020] [modem0/ttyUSB1/at] <-- '<CR><LF>+CCLK:\n"
        '"26/12/27,21:08:32+04"<CR><LF><CR><LF>OK<CR><LF>\'\n'
        "<debug> [1700000313.168825] [modem0/ttyUSB1/at] device open count is 1\n(close)\n"
        "<debug> [1700000314.155742] [modem0/ttyUSB1/at] --> 'ATI<CR>'\n"
        "<debug> [1700000314.168020] [modem0/ttyUSB1/at] <-- '<CR><LF>an end that\n"
        "<debug> [1700000315.155742] [modem0/ttyUSB1/at] --> 'AT<CR>'\n"
    )
    log = "".join(quote + line for line in log.splitlines(keepends=True))
    assert [(side, text) for side, text in read(log) if side is not Side.LOG] == [
        (Side.SENT, "AT+CCLK?"),
        (Side.RECEIVED, '+CCLK: "26/12/27,21:08:32+04"'),
        (Side.RECEIVED, "OK"),
        (Side.SENT, "ATI"),
        (Side.SENT, "AT"),
    ]


def test_a_quote_of_modemmanager_says_more_than_the_mark_before_it() -> None:
    log = ">> AT\n>> (ttyUSB3): --> 'AT<LF><CR>'\n>> (ttyUSB3): <-- '<CR><LF>ERROR<CR><LF>'\n"
    said = [(side, text) for side, text in read(log) if side is not Side.LOG]
    assert said == [(Side.SENT, "AT"), (Side.RECEIVED, "ERROR")]


def test_a_mail_that_quotes_a_log_with_times_adds_nothing_to_it() -> None:
    assert read("> 10:00:01.250 TX: AT\n> 10:00:01.500 RX: OK\n") == [
        (Side.SENT, "AT"),
        (Side.RECEIVED, "OK"),
    ]


@pytest.mark.parametrize("lead", ["", "00> ", "seen: "])
def test_log_lines_that_a_forum_put_on_one_line_are_each_one(lead: str) -> None:
    head = "[00:00:01.250,000] <dbg> modem_chat: modem_chat_"
    glued = (
        f"{lead}{head}script_next: sending: AT+CGMR{head}log_received_command: mfw_nrf91x1_2.0.1"
        f"{head}log_received_command: OK\n"
    )
    found = [(line.side, line.text) for line in read_log(glued.encode()).lines]
    assert found[-2:] == [(Side.RECEIVED, "mfw_nrf91x1_2.0.1"), (Side.RECEIVED, "OK")]
    assert (found[0] == (Side.SENT, "AT+CGMR")) == (lead != "seen: ")


def test_a_sentence_about_a_command_is_no_command() -> None:
    log = b"uart:~$ at AT\nSending AT command failed with error code -1\nSending AT+CFUN?\nOK\n"
    assert [line.text for line in read_log(log).lines if line.side is Side.SENT] == ["AT"]


@pytest.mark.parametrize(
    ("heading", "row", "cell"),
    [
        ("name,type,start_time,duration,data", '"{side}","data",0.25,0.1,{cell}', "0x{:02X}"),
        ("name,type,start_time,duration,data", '"{side}","data",0.25,0.1,"{cell}"', "{:c}"),
        ("Time [s],Analyzer Name,Decoded Protocol Result", "0.25,{side},{cell}", "{:c}"),
    ],
)
def test_the_bytes_of_a_logic_analyser_are_put_together(heading: str, row: str, cell: str) -> None:
    session = (("TX", b"AT+CEER\r"), ("RX", b"\r\n+CEER: x y\r\n\r\nOK\r\n"), ("TX", b"AT\r"))
    spelt = {13: "\\r", 10: "\\n"} if "0x" not in cell else {}
    rows = [
        row.format(side=side, cell=spelt.get(byte, cell.format(byte)))
        for side, data in session
        for byte in data
    ]
    assert read("\n".join((heading, *rows))) == [
        (Side.SENT, "AT+CEER"), (Side.RECEIVED, "+CEER: x y"), (Side.RECEIVED, "OK"),
        (Side.SENT, "AT"),
    ]  # fmt: skip


def test_a_document_of_json_that_breaks_off_is_read_line_by_line() -> None:
    log = '[{"direction": "TX", "data": "AT"},\n {"direction": "RX", "da\n'
    assert read(log)[0] == (Side.SENT, "AT")


@pytest.mark.parametrize(
    "form",
    [
        '{{"MESSAGE":"{}","PRIORITY":"7","__REALTIME_TIMESTAMP":"{}000"}}',  # journald's
        '{{"message": "{}", "timestamp": {}, "ingestionTime": 1}}',  # CloudWatch's
        '{{"textPayload": "{}", "severity": "INFO", "timestamp": "{}"}}',  # Google's
    ],
)
@pytest.mark.parametrize("marks", [("", ""), ("TX: ", "RX: ")])
def test_what_a_store_of_logs_gives_in_json_is_its_messages(
    form: str, marks: tuple[str, str]
) -> None:
    said = ((1700000000250, f"{marks[0]}AT+CGMM"), (1700000000500, f"{marks[1]}nRF9151-LACA"))
    records = [form.format(text, millis) for millis, text in said]
    for log in (
        "\n".join(records),
        f'{{\n"events": [\n{{"a": 1}},\n{",".join(records)}\n],\n"next": "f/3"}}',
        f"[{','.join(reversed(records))}]",
    ):
        lines = [line for line in read_log(log.encode()).lines if "1}" not in line.text]
        assert [(line.side, line.text) for line in lines] == [
            (Side.SENT, "AT+CGMM"), (Side.RECEIVED, "nRF9151-LACA"),
        ], log  # fmt: skip
        assert [line.at_s for line in lines] == [1700000000.25, 1700000000.5]


@pytest.mark.parametrize("damage", ['{"dir": rx", "data": "+CFUN: 1"}', "x", '{"dir": "rx'])
@pytest.mark.parametrize("end", ["", "\n"])
def test_damage_within_an_array_of_json_costs_nothing_behind_it(damage: str, end: str) -> None:
    first, last = (f'{{"dir": "tx", "data": "AT+{name}"}}' for name in ("CFUN?", "CGMM"))
    log = f'[{first},{end}{damage},{end}{last},{end}{{"dir": "rx", "data": "OK"}}]\n'
    lines = read_log(log.encode()).lines
    assert [(line.side, line.text) for line in lines if line.side is not Side.LOG] == [
        (Side.SENT, "AT+CFUN?"), (Side.SENT, "AT+CGMM"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
    assert [line.number for line in lines] == ([1, 2, 3, 4] if end else [1, 1, 1, 1])


def test_what_is_damaged_throughout_is_no_array_of_json() -> None:
    lines = [(1, '[{"a": 1},' + "{" * 1000), (2, "AT")]
    assert list(elements(lines)) == lines


def test_a_line_of_an_array_of_json_has_its_number() -> None:
    log = '[\n  {"direction": "TX",\n   "data": "AT"},\n  {"direction": "RX", "data": "OK"}\n]\n'
    assert [line.number for line in read_log(log.encode()).lines] == [2, 4]


@pytest.mark.parametrize("program", ["at", "> slm", "modem at"])
def test_commands_in_a_shell_that_a_forum_put_on_one_line_are_each_one(program: str) -> None:
    log = "uart:~$ at AT+CFUN? +CFUN: 1 OK uart:~$ at AT+CEER +CEER: no OK uart:~$ \n"
    log = log.replace("$ at", f"$ {program}")
    assert read(log) == [
        (Side.SENT, "AT+CFUN?"), (Side.RECEIVED, "+CFUN: 1"), (Side.RECEIVED, "OK"),
        (Side.SENT, "AT+CEER"), (Side.RECEIVED, "+CEER: no"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip


def test_what_a_shell_prints_again_of_a_command_on_one_line_is_no_part_of_it() -> None:
    log = (
        "*** Booting My Application v1.0 *** uart:~$ > slm AT+CFUN=1 slm AT+CFUN=1 OK uart:~$ > slm"
        ' AT#XPING="192.0.2.7",4,9 slm AT#XPING="192.0.2.7",4,9 ERROR uart:~$ > slm AT slm AT OK\n'
    )
    echoes = [text for side, text in read(log) if side is Side.LOG]
    assert echoes == ["slm AT+CFUN=1", 'slm AT#XPING="192.0.2.7",4,9', "slm AT"]
    assert [line for line in read(log) if line[0] is not Side.LOG] == [
        (Side.RECEIVED, "*** Booting My Application v1.0 ***"),
        (Side.SENT, "AT+CFUN=1"), (Side.RECEIVED, "OK"),
        (Side.SENT, 'AT#XPING="192.0.2.7",4,9'), (Side.RECEIVED, "ERROR"),
        (Side.SENT, "AT"), (Side.RECEIVED, "OK"),
    ]  # fmt: skip
