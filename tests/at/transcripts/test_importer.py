"""Logs of terminals and desktop tools, as people have them, become transcripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts import importer
from at.transcripts.importer import Imported
from at.transcripts.steps import Direction
from at.transcripts.transcript import format_transcript, parse_transcript
from tests.support.modem.secret_spellings import CANARY, spelled


def import_log(log: str, *, keep_identity: bool = False) -> Imported:
    return importer.import_log(log.encode(), keep_identity=keep_identity)


SENT, RECEIVED = Direction.SENT, Direction.RECEIVED

LOGS = {
    "bare terminal": "AT+CGMR\nmfw_nrf9160_1.3.7\nOK\n",
    "terminal with CR LF": "AT+CGMR\r\nmfw_nrf9160_1.3.7\r\nOK\r\n",
    "stamped terminal": (
        "[12:00:00.100] AT+CGMR\n[12:00:00.200] mfw_nrf9160_1.3.7\n[12:00:00.201] OK\n"
    ),
    "desktop tool": (
        "2026-02-10T12:00:00.100Z INFO Application data folder: /home/somebody\n"
        "2026-02-10T12:00:00.100Z DEBUG modem >> AT+CGMR\n"
        "2026-02-10T12:00:00.200Z DEBUG modem << mfw_nrf9160_1.3.7\n"
        "2026-02-10T12:00:00.201Z DEBUG modem << OK\n"
    ),
    "logger": "12:00:00.100 TX: AT+CGMR\n12:00:00.200 RX: mfw_nrf9160_1.3.7\n12:00:00.201 RX: OK\n",
    "bracketed": "[TX] AT+CGMR\n[RX] mfw_nrf9160_1.3.7\n[RX] OK\n",
    "arrows": "-> AT+CGMR\n<- mfw_nrf9160_1.3.7\n<- OK\n",
    "angles": "> AT+CGMR\n< mfw_nrf9160_1.3.7\n< OK\n",
    "only what was typed is marked": "> AT+CGMR\nmfw_nrf9160_1.3.7\n\nOK\n",
    "a phone's terminal": "\u27a4 AT+CGMR\nmfw_nrf9160_1.3.7\nOK\n",
    "milliseconds after a colon": (
        "[20:33:42:648] Tx: AT+CGMR\n[20:33:42:655] Rx: mfw_nrf9160_1.3.7\n[20:33:42:656] Rx: OK\n"
    ),
    "line ends spelt out": (
        "20:33:42.634 >> AT+CGMR\\r\n"
        "20:33:42.646 << mfw_nrf9160_1.3.7\\r\\n\n20:33:42.647 << OK<CR><LF>\n"
    ),
    "a host's shell, which prints a command again": (
        "uart:~$ slm AT+CGMR\nslm AT+CGMR\nmfw_nrf9160_1.3.7\nOK\nuart:~$ \n"
    ),
    "that shell on one line": "uart:~$ > slm AT+CGMR slm AT+CGMR\nmfw_nrf9160_1.3.7\nOK\n",
    "colours": "\x1b[1;32m>> AT+CGMR\x1b[0m\n<< mfw_nrf9160_1.3.7\n<< OK\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_the_same_session_comes_out_of_every_kind_of_log(name: str) -> None:
    imported = import_log(LOGS[name])
    assert [(step.direction, step.data) for step in imported.transcript.steps] == [
        (SENT, b"AT+CGMR\r"),
        (RECEIVED, b"mfw_nrf9160_1.3.7\r\n"),
        (RECEIVED, b"OK\r\n"),
    ]
    assert imported.transcript.header["firmware"] == "mfw_nrf9160_1.3.7"
    assert imported.skipped == (name == "desktop tool" or "slm AT" in LOGS[name])


def test_times_begin_with_the_session_and_pass_midnight() -> None:
    imported = import_log("[23:59:59.500] AT\n[00:00:00.250] OK\n")
    assert [step.at_s for step in imported.transcript.steps] == [0.0, 0.75]


@pytest.mark.parametrize(
    "typed",
    ['echo -e "AT+CPIN?\\r" > /dev/ttyUSB2', 'printf "AT+CPIN=\\"1234\\"\\r" > /dev/ttyUSB2'],
)
def test_what_follows_a_command_in_a_shells_quotes_is_imported(typed: str) -> None:
    made = import_log(f"~$ {typed}\n~$ cat /dev/ttyUSB2\n+CPIN: SIM PIN\nOK\nAT+CFUN?\n+CFUN: 1\n")
    steps = [step.data.strip() for step in made.transcript.steps]
    assert b"1234" not in b"".join(steps)
    assert steps[-4:] == [b"+CPIN: SIM PIN", b"OK", b"AT+CFUN?", b"+CFUN: 1"]


def test_times_go_on_over_a_second_midnight_and_where_the_clock_begins_anew() -> None:
    times = ("22:00:00", "02:00:00", "11:00:00", "20:00:00", "05:00:00", "04:00:00", "04:00:01")
    imported = import_log("".join(f"[{time}] RX: +CEREG: 1\n" for time in times))
    hours = [round((step.at_s or 0) / 3600, 3) for step in imported.transcript.steps]
    assert hours == [0, 4, 13, 22, 31, 31, 31]


def test_a_final_error_is_no_level_of_a_log() -> None:
    imported = import_log("AT+NOSUCH\nERROR\n")
    assert imported.transcript.steps[1].data == b"ERROR\r\n"


def test_the_kits_own_log_lines_stay_whole() -> None:
    line = "[00:00:01.123,456] <inf> app: started"
    imported = import_log(f"AT\n{line}\nOK\n")
    assert imported.transcript.steps[1].data == line.encode() + b"\r\n"
    imported = import_log(f"[10:00:00] AT\n[10:00:01] {line}\n[10:00:01] OK\n")
    assert imported.transcript.steps[1].data == line.encode() + b"\r\n"


def test_a_certificate_over_several_lines_is_one_command() -> None:
    imported = import_log(
        'AT%CMNG=0,7,0,"-----BEGIN CERTIFICATE-----\nVEVTVA==\n-----END CERTIFICATE-----"\nOK\n'
    )
    assert [step.direction for step in imported.transcript.steps] == [SENT, RECEIVED]
    assert imported.transcript.steps[0].data.endswith(b'VEVTVA==\n-----END CERTIFICATE-----"\r')


def test_secrets_do_not_pass() -> None:
    imported = import_log('AT%CMNG=0,7,3,"c0ffee"\nOK\n')
    assert "c0ffee" not in format_transcript(imported.transcript)


@pytest.mark.parametrize("cut", range(1, len('AT+CGAUTH=0,1,"u",')))
def test_secrets_do_not_pass_in_a_command_that_was_sent_in_parts(cut: int) -> None:
    command = f'AT+CGAUTH=0,1,"u","{CANARY}"'
    log = f"TX: AT\\r\nTX: {command[:cut]}\nTX: {command[cut:]}\\r\nRX: OK\\r\\n\n"
    assert [step.data for step in import_log(log).transcript.steps] == [
        b"AT\r",
        b'AT+CGAUTH=0,1,"{redacted:user}","{redacted:password}"\r',
        b"OK\r\n",
    ]


@pytest.mark.parametrize(
    ("log", "missing"),
    [
        ("AT\nOK\n", None),
        ("TX: AT\nRX: OK\n", None),
        ("TX: AT\nTX: AT+CGMR\n", RECEIVED),
        ("+CEREG: 2\n+CEREG: 1\n", SENT),
        ("[00:00:01.500,000] <err> lte_lc: refused\n", SENT),
    ],
)
def test_the_direction_that_a_log_lacks_is_named(log: str, missing: Direction | None) -> None:
    assert import_log(log).missing is missing


def test_a_transcript_is_imported_with_its_header_and_redacted() -> None:
    text = "# transcript: 1\n# device: a kit\n# origin: by hand\n"
    made = import_log(text + '@0.1 > AT+CPIN="4711"\n@0.2 < OK\n! closed\n').transcript
    assert made.header == {"device": "a kit", "origin": "by hand"}
    assert [step.data for step in made.steps] == [b'AT+CPIN="{redacted:pin}"\r', b"OK\r\n"]


@pytest.mark.parametrize("body", ["0001000A81123456" + CANARY, f"{CANARY}\nTX: {CANARY}"])
def test_a_message_that_a_log_shows_without_its_ctrl_z_is_a_payload(body: str) -> None:
    log = f"TX: AT+CMGS=20\nRX: >\nTX: {body}\nRX: +CMGS: 3\nRX: OK\nTX: AT\nRX: OK\n"
    text = format_transcript(import_log(log).transcript)
    assert CANARY not in text
    order = ["CMGS=20", "redacted:payload", "+CMGS: 3", "OK", "> AT\n"]
    assert sorted(order, key=text.index) == order


def test_what_firmware_notes_behind_a_command_and_its_answer_is_none_of_them() -> None:
    at = "[00:01:37.034,149] <inf> ntn_manager: NTN: AT"
    made = import_log(f"{at}> AT+CEREG=5 [CEREG]\n{at}< OK [CEREG] dt=7ms\n").transcript
    assert [step.data for step in made.steps] == [b"AT+CEREG=5\r", b"OK\r\n"]


@pytest.mark.parametrize("remark", ["// why?", "# no card"])
def test_an_error_with_a_remark_behind_it_is_an_answer_and_no_level_of_a_log(remark: str) -> None:
    made = import_log(f"AT+CIMI\nERROR {remark}\nAT\nOK\n").transcript
    assert made.steps[1].data == b"ERROR\r\n"


@pytest.mark.parametrize("behind", ["// no card in it", "# no card", "<-- here", "[CPIN] dt=2ms"])
def test_what_stands_behind_an_error_with_a_number_is_none_of_it(behind: str) -> None:
    made = import_log(f"AT+CPIN?\n+CME ERROR: 10  {behind}\n").transcript
    assert [step.data for step in made.steps] == [b"AT+CPIN?\r", b"+CME ERROR: 10\r\n"]


def test_a_log_that_lost_its_line_ends_is_read_exchange_by_exchange() -> None:
    log = (
        'AT+CGSN=1 +CGSN: "352656100000009" OK AT+CMEE=1 OK AT+CFUN=1 +CME ERROR: 514 '
        'AT+CFUN=1 OK +CEREG: 2,"0901","020A7716",7 +CEREG: 5'
    )
    made = import_log(log, keep_identity=True).transcript
    sent = [step.data for step in made.steps if step.direction is Direction.SENT]
    assert sent == [b"AT+CGSN=1\r", b"AT+CMEE=1\r", b"AT+CFUN=1\r", b"AT+CFUN=1\r"]
    received = [step.data for step in made.steps if step.direction is Direction.RECEIVED]
    assert received[:4] == [
        b'+CGSN: "352656100000009"\r\n',
        b"OK\r\n",
        b"OK\r\n",
        b"+CME ERROR: 514\r\n",
    ]


def test_a_log_of_nothing_is_refused() -> None:
    with pytest.raises(TranscriptError, match="no line that was sent or received"):
        import_log("\n\n")


@given(text=st.text(max_size=300))
def test_no_log_upsets_the_import(text: str) -> None:
    try:
        made = import_log(text).transcript
    except TranscriptError:
        return
    assert parse_transcript(format_transcript(made)).steps == made.steps


def test_the_log_of_modem_manager_is_read_off_its_quotes() -> None:
    text = (
        "<debug> [1700000000.500000] [modem0/ttyACM0/at] device open count is 2 (open)\n"
        "<debug> [1700000000.750000] [modem0/ttyACM0/at] --> 'AT+CIMI<CR>'\n"
        "<debug> [1700000001.000000] [modem0/ttyACM0/at] <-- "
        "'<CR><LF>001010123456789<CR><LF><CR><LF>OK<CR><LF>'\n"
    )
    made = import_log(text, keep_identity=True)
    assert [step.data for step in made.transcript.steps] == [
        b"AT+CIMI\r",
        b"001010123456789\r\n",
        b"OK\r\n",
    ]
    assert [step.at_s for step in made.transcript.steps] == [0.0, 0.25, 0.25]
    assert made.skipped == 1


def test_arrows_that_point_the_other_way_are_turned() -> None:
    made = import_log("<- AT+CEREG?\n-> \n-> +CEREG: 0,2\n-> \n-> OK\n")
    assert [step.direction for step in made.transcript.steps] == [
        Direction.SENT,
        Direction.RECEIVED,
        Direction.RECEIVED,
    ]


WAYS = {
    "bare": "AT\nOK\n{}\nOK\n",
    "marked": "TX: AT\nRX: OK\nTX: {}\nRX: OK\n",
    "marked as received": "TX: AT\nRX: OK\nRX: {}\nRX: OK\n",
    "stamped": "[12:00:00.100] INFO modem >> AT\n[12:00:00.200] INFO modem << OK\n"
    "[12:00:00.300] INFO modem >> {}\n[12:00:00.400] INFO modem << OK\n",
    "ModemManager": "<dbg> [1600000000.1] (tty) --> 'AT<CR>'\n<dbg> [1600000000.2] (tty) <-- 'OK'\n"
    "<dbg> [1600000000.3] (tty) --> '{}<CR>'\n",
    "literals": "TX 'AT'\nRX 'OK'\nTX {!r}\nRX 'OK'\n",
    "received literals": "('tx', 'AT')\n('rx', 'OK')\n('rx', {!r})\n('rx', 'OK')\n",
    "host and modem": "Host: AT\nModem: OK\nHost: {}\nModem: OK\n",
    "in a shell": "uart:~$ {}\r\nOK\r\nuart:~$ AT+CGMR\r\n",
    "cut at its end": "AT\nOK\n{}",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_spelling_of_a_secret_command_or_answer_is_imported(way: str) -> None:
    names = sorted({name for name, *_ in spelled()})
    chosen = names[list(WAYS).index(way) % 3 :: 3]  # every spelling of each name in three ways
    kept = [
        (name, spelling)
        for name, spelling, line, _sent in spelled()
        if name in chosen
        and CANARY in format_transcript(import_log(WAYS[way].format(line)).transcript)
    ]
    assert kept == []


@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("mark", ["> ", "TX: ", "", "[12:00:01.250] "])
def test_a_key_over_several_lines_is_left_out_in_any_quotes(mark: str, quote: str) -> None:
    key = [f"{CANARY}{number:052}" for number in range(3)]
    lines = ["-----BEGIN EC PRIVATE KEY-----", *key, "-----END EC PRIVATE KEY-----"]
    typed = f"AT%CMNG=0,7,2,{quote}" + "\n".join(lines) + quote
    log = f"{mark}AT\nOK\n{mark}{typed}\nERROR\n" + "\n".join(key)
    assert CANARY not in format_transcript(import_log(log).transcript)


@pytest.mark.parametrize("mark", ["TX: ", ""])
def test_a_key_over_several_lines_is_left_out_though_others_come_between(mark: str) -> None:
    between = "RX: +CEREG: 2\n" if mark else "+CEREG: 2\n"
    log = (
        f'{mark}AT%CMNG=0,7,2,"-----BEGIN EC PRIVATE KEY-----\n{between}'
        f'{mark}{CANARY}\n{between}{mark}-----END EC PRIVATE KEY-----"\n'
        f"{'RX: ' if mark else ''}OK\n{mark}AT+CGMR\n"
    )
    transcript = import_log(log).transcript
    assert CANARY not in format_transcript(transcript)
    assert [step.data for step in transcript.steps if step.direction is SENT] == [
        b'AT%CMNG=0,7,2,"{redacted:key}"\r',
        b"AT+CGMR\r",
    ]


@pytest.mark.parametrize("marked", [True, False])
def test_the_bytes_of_data_mode_are_not_imported(marked: bool) -> None:
    lines = ["> AT#XSEND=0,2,0", "< OK", f"> {CANARY}", f'> {{"a":"{CANARY}"}}+++']
    lines += ["< #XDATAMODE: 0", "> AT+CGMR", "< OK"]
    log = "\n".join(line if marked else line[2:] for line in lines)
    transcript = import_log(log).transcript
    assert CANARY not in format_transcript(transcript)
    assert transcript.steps[-2].data == b"AT+CGMR\r"


@pytest.mark.parametrize("start", ["Ready", "*** Booting nRF Connect SDK v3.4.0 ***"])
def test_data_mode_ends_where_a_log_without_marks_tells_of_a_start(start: str) -> None:
    log = f"AT#XSEND=0,2,0\nOK\n{CANARY}\n{start}\nAT+CGMR\nmfw_nrf91x1_2.0.2\nOK\n"
    steps = import_log(log).transcript.steps
    assert [step.data.strip().decode() for step in steps] == [
        *("AT#XSEND=0,2,0", "OK", f"{{redacted:payload:{len(CANARY) + 1}}}", start),
        *("AT+CGMR", "mfw_nrf91x1_2.0.2", "OK"),
    ]


def test_a_quote_whose_end_was_lost_ends_with_the_next_command() -> None:
    log = '> AT+CEREG?\n< +CEREG: 5,1,"00B7\n< OK\n> AT+CGMR\n< mfw_nrf9160_1.3.7\n< OK\n'
    steps = import_log(log).transcript.steps
    assert steps[-1].data == b"OK\r\n"
    assert steps[-3].data == b"AT+CGMR\r"


def test_a_long_log_with_an_open_quote_costs_no_more_than_its_length() -> None:
    import_log('TX: AT+CPIN="12\n' + "TX: 34\n" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "^M" * 200_000 + "!",
        "CRLF" * 100_000 + "!",
        "<CR>" * 100_000 + "!",
        'AT+X="' + "a\\n" * 300_000,
        "uart:~$ AT+X=" + "AB" * 200_000,
        "<br>" * 100_000 + "!",
        "AT\nDEBUG " + "-" * 400_000 + "!",
    ],
    ids=lambda text: text[:8],
)
def test_a_long_line_costs_no_more_than_its_length(text: str) -> None:
    import_log(f"TX: AT+CGMR\nRX: OK\nTX: {text}\n")  # the suite's time limit ends it otherwise
