"""Which lines name somebody, and where; what is no name stays byte for byte."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from at.protocol.check_digit import luhn_digit
from at.transcripts.redaction.identity import IdentityRedactor
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.redaction.resigning import PUBLISHED_KEY_ID, PUBLISHED_PEM
from at.transcripts.step_matching import Playback
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import Transcript
from tests.support.modem.virtual_modems import printed, switched_on

IMEI = "352656100367872"
IMSI = "262011234567890"
ICCID = "8949020000001234567"
UUID = "50363154-3930-44d9-80d9-0b2d1f3f2b1f"
BUILD = "25c95751-efa4-40d4-8b4a-1dcaab81fac9"
PEM = "-----BEGIN CERTIFICATE-----\nQ0VSVA==\n-----END CERTIFICATE-----\n"

NAMING = {
    "IMEI in quotes": ["AT+CGSN=1\r", f'+CGSN: "{IMEI}"\r\n'],
    "IMEI bare": ["AT+CGSN\r", f"{IMEI}\r\n"],
    "IMEI in blanks": [f'+CGSN : "{IMEI}" \r\n'],
    "IMEISV": ["AT+CGSN=2\r", f'+CGSN: "{IMEI[:14]}01"\r\n'],
    "IMEI and a serial number": ["AT+CGSN\r", f"{IMEI},NX1234567890\r\n"],
    "IMEI after its echo": ["uart:~$ at 'AT+CGSN'\r\n", f"{IMEI}\r\n"],
    "IMEI behind a shell's colours": ["\x1b[1;32muart:~$ \x1b[mat 'AT+CGSN=1'\r\n", IMEI],
    "IMEI in a colour": ["AT+CGSN\r", f"\x1b[32m{IMEI}\x1b[0m\r\n"],
    "IMEI in place of a prompt": [f"\x1b[8D\x1b[J{IMEI}\r\n"],
    "IMSI in place of a prompt": ["AT+CIMI\r", f"\x1b[8D\x1b[J{IMSI}\x1b[m\r\n"],
    "IMSI in a coloured log line": [f"\x1b[1;33m<wrn> sim: \x1b[mimsi {IMSI}\x1b[0m\r\n"],
    "UUID in a colour": [f"up, id \x1b[1m{UUID}\x1b[0m\r\n"],
    "serial number of a name": ['#XNRFCLOUDOBSDEVINFO: "pump 17","app","1.0.0","board"\r\n'],
    "IMEI in a log line": [f"[00:00:01.000,000] <inf> app: id nrf-{IMEI} up\r\n"],
    "IMEI in a topic": [f'AT#XMQTTPUB="d/nrf-{IMEI}/up"\r'],
    "IMEI with a label": [f"boot: imei={IMEI[:14]}9 ok\r\n"],
    "MEID, the IMEI without its check digit": [f"MEID: {IMEI[:14]}\r\n"],
    "IMEI in groups": [f"label 35-265610-036787-2, {IMEI[:2]} {IMEI[2:8]} {IMEI[8:14]}\r\n"],
    "ICCID in groups": [
        f"card {ICCID[:4]} {ICCID[4:8]} {ICCID[8:12]} {ICCID[12:16]} {ICCID[16:]}\r\n"
    ],
    "IMSI": ["AT+CIMI\r", f"{IMSI}\r\n"],
    "IMSI of nobody's question": [f"{IMSI}\r\n"],
    "IMSI with a label": [f'{{"imsi": "{IMSI}"}}\r\n'],
    "ICCID": ["AT%XICCID\r", f"%XICCID: {ICCID}F\r\n"],
    "ICCID bare": ["AT+CCID\r", f"{ICCID}\r\n"],
    "ICCID in a log line": [f"sim {ICCID} found\r\n"],
    "ICCID of a file": ["AT+CRSM=176,12258,0,0,10\r", '+CRSM: 144,0,"989420000000214365F7"\r\n'],
    "IMSI of a file": ["AT+CRSM=176,28423,0,0,9\r", '+CRSM: 144,0,"082926102143658709"\r\n'],
    "EID": [f"eUICC 8904903200{'1234567890' * 2}12\r\n"],
    "UUID": ["AT%DEVICEUUID\r", f"%DEVICEUUID: {UUID}\r\n"],
    "UUID of Serial Modem": ["AT#XUUID\r", f"#XUUID: {UUID.upper()}\r\n"],
    "UUID without dashes, once known": [f"#XUUID: {UUID}\r\n", f"id {UUID.replace('-', '')}\r\n"],
    "own number": ['+CNUM: "Ada Example","+4917012345678",145\r\n'],
    "own number in a log line": [
        '+CNUM: ,"+4917012345678",145\r\n',
        "[00:00:01.000,000] <inf> app: my number is 4917012345678\r\n",
    ],
    "a number that is dialled": ["ATD+4917012345678;\r", "ATDT4917012345678;\r"],
    "a caller that is told": ['+CLIP: "4917012345678",129,"",,"Ada",0\r\n'],
    "a caller who waits": ['+CCWA: "017012345678",129,1\r\n', '+CDIP: "017012345678",129\r\n'],
    "who was called": ['+COLP: "017012345678",129\r\n'],
    "where calls are sent on": [
        'AT+CCFC=0,3,"017012345678"\r',
        '+CCFC: 1,1,"017012345678",129\r\n',
    ],
    "a number in the country's own form": [
        '+CMGR: "REC READ","017012345678",,"26/03/03,12:00:00+04"\r\n',
        '+CMGL: 1,"REC READ","017012345678",,"26/03/03,12:00:00+04"\r\n',
    ],
    "the book of numbers": [
        'AT+CPBW=1,"017012345678",129,"Ada Example"\r',
        '+CPBR: 1,"017012345678",129,"Ada Example"\r\n',
    ],
    "a caller in a log line": ["[00:00:01.000,000] <inf> sms: from +4917012345678: on\r\n"],
    "a caller in a line of nobody": ["SMS to +4917012345678.\r\n", "phone=+4917012345678\r\n"],
    "a caller in groups": [
        "SMS to +49 170 12345678.\r\n",
        "call (+49-170-123-456-78) or +49 (170) 1234 5678\r\n",
        "[00:00:01.000,000] <inf> sms: from +49 (0)170 1234 5678: on\r\n",
    ],
    "a caller": ['+CMT: "+4917012345678","","26/03/14,12:00:00+04"\r\n'],
    "device id of a name": ['#XNRFCLOUD: 1,0,16842753,"pump 17"\r\n'],
    "sub of a name": ['AT%JWT=0,60,"pump 17"\r'],
    "subject of a name": ['AT%KEYGEN=1,2,0,"O=Acme,CN=pump 17"\r'],
    "client of a broker": ['AT#XMQTTCFG="pump 17"\r'],
    "certificate": [f'AT%CMNG=0,17,1,"{PEM}"\r'],
    "certificate read back": [f'%CMNG: 17,1,"{"AB" * 32}","{PEM}"\r\n'],
    "IMSI behind an echo": [f"AT+CIMI\r{IMSI}\r\n"],
    "IMSI with a turned digit": ["AT+CIMI\r", "2620112345x7890\r\n", "1234567890\r\n"],
    "ICCID that lost a digit": [f"%XICCID: {ICCID[:-3]}\r\n"],
    "IMEI in a quote that lost its end": [f'+CGSN: "{IMEI}\r\n'],
    "UUID that lost a dash": [f"%DEVICEUUID: {UUID.replace('-', '', 1)}\r\n"],
    "token that lost its end": ['%JWT: "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJRVUZCIn0QUFB"\r\n'],
    "token with a quote within": ['%JWT: "eyJhbGciOiJFUzI1N".eyJzdWIiOiJRVUZCIn0QUFB"\r\n'],
    "rest of a token in a log line": ["log eyJhbGciOiJFUzI1NiJ9eyJzdWIiOiJRVUZCIn0QUFB\r\n"],
    "serial number of a probe": [
        "Probe: S/N 481712345678\r\n",
        "Probe: S/N 48123456\r\n",
        "J-Link serial: 481712345678\r\n",
        "port /dev/serial/by-id/usb-SEGGER_J-Link_000481712345678-if00\r\n",
        "port /dev/tty.usbmodem0004817123456781\r\n",
        '{"serialNumber": "481712345678"}\r\n',
        "found: 481712345678.\r\n",
    ],
    "IMSI in groups": [
        "imsi 262-01-1234567890\r\n",
        "IMSI: 262 011234567890\r\n",
        "IMSI: 262/011/234567890\r\n",
    ],
    "serial number in a name": [
        "mqtt: client ID: kit_b-481712345678\r\n",
        "mqtt: topic kit_b-481712345678/state\r\n",
        '{"deviceId": "481712345678"}\r\n',
        "west flash --dev-id 481712345678\r\n",
        "J-Link SN 1234567890\r\n",
    ],
    "serial number of a kit on USB": [
        "kit THINGY91X_AB1234567890 <- that one\r\n",
        "port /dev/serial/by-id/usb-Acme_Kit_X_UART_AB1234567890-if02\r\n",
        "ID_SERIAL=Acme_Kit_AB1234567890\r\n",
    ],
    "serial number that is an IMEI": [f"modem: serial number: {IMEI}\r\n", f"log {IMEI}\r\n"],
    "a person whose directory it is": [
        "INFO data in C:\\Users\\Ada E\\AppData\\Local\r\n",
        '{"path": "c:\\\\Users\\\\Ada\\\\ncs"}\r\n',
        "INFO image (/home/ada/ncs/build/app.bin), /Users/ada/Downloads/a.zip\r\n",
        "INFO image /home/ada/fw/app.hex, HOME=/home/ada, kept in /Users/ada\r\n",
        "ada@ada-pc:~/fw$ picocom /dev/ttyACM0\r\n",
        "(sdk) ada@pc-of-ada ~ % west flash\r\n",
    ],
    "attestation that cannot be read": ['%ATTESTTOKEN: "QUFB.QkJC"\r\n'],
}
NAMES = re.compile(
    rf"{IMEI[:14]}|{IMSI}|{ICCID[:16]}|{UUID.replace('-', '-?')}|1234567890|17012345678|Ada|pump"
    r"|265610|1234 567|170\W|345[- ]?6|Q0VSVA|QUFB|NX1|214365F7|2143658709|ABAB",
    re.IGNORECASE,
)

NO_NAMES = [
    '%XTIME: "40","62110221219440","00"\r\n',
    '+CCLK: "26/03/14,12:00:00+04"\r\n',
    "%NCELLMEAS: 0,\"0199F10A\",\"24202\",\"0DB7\",64,4800,5700,70,28,150344,5700,7,44,24\r\n",
    "%NCELLMEAS: 0,\"00011B07\",\"26295\",\"00B7\",65535,0,490000000000003,70,28,150344\r\n",
    '%XMONITOR: 1,"","","26201","0DB7",7,20,"0199F10A",115,6400,53,22\r\n',
    "+CEREG: 5,1,\"0DB7\",\"0199F10A\",7\r\n",
    f'%CMNG: 7,0,"{"AB" * 32}"\r\n',
    f"%XMODEMUUID: {BUILD}\r\n",
    "%DEVICEUUID: creating device uuid...\r\n",
    "+CGSN: (0-3)\r\n",
    "+CGSN: (0,1,2,3)\r\n",
    "mfw_nrf91x1_2.0.4\r\n",
    "1234567890123\r\n",
    "[00:00:01.000,000] <inf> app: took 1700000000123456 ns\r\n",
    "[00:00:01.000,000] <dbg> clock: ahead by +12345678 ns, +123456789 ticks, +0012345678\r\n",
    "[00:00:01.000,000] <dbg> clock: 26/03/14+12345678, +123456789.5, a+12345678\r\n",
    "[00:00:01.000,000] <dbg> adc: +10 -200 +300, +100 200 300 us, +1 2 3 4, 12:00 +0100 2026\r\n",
    "service 0000180a-0000-1000-8000-00805f9b34fb\r\n",
    'AT%XBANDLOCK=1,"1111111111111111111"\r',
    '#XSEND: "89014103211181157024A1B2"\r\n',
    "log: kit352656100367873 x352656100367872a deed352656100367872\r\n",
    "log: t202612011200000 n89470800123456789012, own 12345678 bytes\r\n",
    "serial: 1000000 baud, SNR 12, serial 0 of 16, J-Link V7.94, /dev/tty.usbmodem14101\r\n",
    "SN 20260314, client id: 7, device id 00 00 00 00\r\n",
    "usb-Acme_Kit-if00, THINGY91X_UART, FEED_CAFE-if0, kit_DEADBEEF-iface\r\n",
    "Subscribing to /home/kitchen/temp, https://host.example/Users/list/all\r\n",
    "GET /Users/list HTTP, topics /home/kitchen, mqtt://kit@host.example:1883/home\r\n",
    "OK\r\n",
    "AT\r",
    "\r\n",
    "AT+CMEE=1\r",
]  # fmt: skip


def cleaned(lines: list[str]) -> list[str]:
    redactor = Redactor(identity=True)
    return [redactor.clean(line.encode("latin-1")).decode("latin-1") for line in lines]


@pytest.mark.parametrize("name", NAMING)
def test_nobody_is_named(name: str) -> None:
    lines = NAMING[name]
    after = cleaned(lines)
    assert NAMES.search("".join(lines))
    assert not NAMES.search("".join(after))
    assert cleaned(after) == after, "made-up values stay"
    for before, line in zip(lines, after, strict=True):
        assert re.search(r"\r?\n?\Z", line).group() == re.search(r"\r?\n?\Z", before).group()  # type: ignore[union-attr]


LOG = "[00:00:01.000,000] <dbg> modem: "
QUOTED: dict[str, Callable[[str], str]] = {
    "in a log line": lambda line: LOG + line,
    "with a mark in a log line": lambda line: LOG + ("TX: " if line[:2] == "AT" else "RX: ") + line,
    "in HTML": lambda line: LOG + html.escape(line),
    "in JSON": lambda line: LOG + json.dumps(line),
    "as bytes of Python": lambda line: f"2026-11-02 10:00:00,123 DEBUG at: {line.encode()!r}",
    "with spelt ends": lambda line: f"{LOG}--> '{line}<CR><LF>'",
    "in angle brackets": lambda line: f"{LOG}modem said <{line}>",
}


@pytest.mark.parametrize("way", QUOTED)
def test_nobody_is_named_by_a_log_line_that_quotes_a_session(way: str) -> None:
    for name, session in NAMING.items():
        lines = [f"{QUOTED[way](line.rstrip())}\r\n" for line in session]
        after = cleaned(lines)
        assert not NAMES.search("".join(after)), name
        assert cleaned(after) == after, (name, "made-up values stay")


def test_a_log_line_does_not_change_what_the_port_was_asked() -> None:
    lines = [
        "AT+CRSM=176,28423,0,0,9\r",
        f"{LOG}AT+CIMI\r\n",
        '+CRSM: 144,0,"082926102143658709"\r\n',
    ]
    assert not NAMES.search("".join(cleaned(lines)))


@pytest.mark.parametrize("line", NO_NAMES)
def test_what_names_nobody_stays(line: str) -> None:
    assert cleaned([line]) == [line]


EVERY_LINE = [line for lines in (*NAMING.values(), NO_NAMES) for line in lines]


@given(lines=st.lists(st.sampled_from(EVERY_LINE), max_size=12))
@example(["AT+CGSN=1\r", "MEID: 35265610036787\r\n"])
@example(["AT+CIMI\r", "MEID: 35265610036787\r\n"])
@example(["AT+CGSN=1\r", "IMSI: 262 011234567890\r\n"])
@example(["AT+CIMI\r", "IMEI: 352656100367872\r\n"])
@example(["AT+CGSN=1\r", "2620112345x7890\r\n", 'AT%JWT=0,60,"p"\r', "2620112345x7890\r\n"])
def test_a_redacted_session_is_left_as_it_is(lines: list[str]) -> None:
    once = cleaned(lines)
    assert cleaned(once) == once


@given(line=st.binary(max_size=200), shape=st.sampled_from([b"%b", b'+CGSN: "%b"', b"AT+CGSN\r%b"]))
def test_no_line_upsets_it(line: bytes, shape: bytes) -> None:
    redactor = Redactor(identity=True)
    redactor.clean(b"AT+CGSN\r")
    redactor.clean(shape % line)


@given(number=st.from_regex(r"[1-9][0-9]{13}", fullmatch=True))
def test_an_imei_is_the_same_made_up_one_in_all_lines(number: str) -> None:
    imei = number + luhn_digit(number)
    lines = [
        "AT+CGSN=1\r",
        f'+CGSN: "{imei}"\r\n',
        f'AT%JWT=0,60,"nrf-{imei}"\r',
        f"log {imei}\r\n",
    ]
    after = cleaned(lines)
    (made,) = re.findall(r"[0-9]{15}", after[1])
    assert made[-1] == luhn_digit(made[:-1])
    assert after[2] == f'AT%JWT=0,60,"nrf-{made}"\r'
    assert after[3] == f"log {made}\r\n"


@pytest.mark.parametrize("word", ["kit", "nrf", "device", "client"])
def test_an_imei_right_behind_a_word_is_another_one(word: str) -> None:
    (line,) = cleaned([f"log: id {word}{IMEI}\r\n"])
    made = line.removeprefix(f"log: id {word}").rstrip()
    assert re.fullmatch("00100999[0-9]{7}", made)
    assert cleaned([line]) == [line]


@pytest.mark.parametrize(
    "line", ["  Numbers  |  own: 4791234567\r\n", "app: Phone number: 4791234567\r\n"]
)
def test_a_telephone_number_behind_its_name_needs_no_plus(line: str) -> None:
    (after,) = cleaned([line])
    assert "4791234567" not in after
    assert len(after) == len(line)


SENT = [
    f'AT%JWT=0,60,"nrf-{IMEI}","aud"\r',
    'AT%JWT=0,60,"pump 17"\r',
    f'AT%KEYGEN=1,2,0,"O=Acme,CN={UUID},C=NO"\r',
    "at 'AT%KEYGEN=1,2,0,\"CN=pump 17\"'\r",
    f'AT#XMQTTCFG="{UUID}",60,1\r',
    f'AT#XMQTTSUB="d/nrf-{IMEI}/down",1\r',
    f"AT+UNKNOWN={IMEI},2\r",
]


@pytest.mark.contract("C9")
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("line", SENT)
def test_a_command_with_identity_is_matched_by_the_real_and_by_the_made_up_one(
    line: str, strict: bool
) -> None:
    other = line.replace(IMEI, "001009990000010").replace(UUID, UUID.replace("5", "0"))
    for sent in (line, other, line.replace("pump 17", "device-0001")):
        (command,) = cleaned([line])
        assert not NAMES.search(command)
        steps = (
            TranscriptStep(Direction.SENT, command.encode()),
            TranscriptStep(Direction.RECEIVED, b"+CFUN: 7\r\n"),
        )
        playback = Playback(Transcript(steps), strict=strict)
        assert b"".join(step.data for step in playback.sent(sent.encode())) == b"+CFUN: 7\r\n"


def test_the_firmware_s_uuid_is_no_identity_wherever_it_stands() -> None:
    assert cleaned([f"%XMODEMUUID: {BUILD}\r\n", f"log {BUILD}\r\n"])[1] == f"log {BUILD}\r\n"


def test_the_digest_of_what_was_redacted_is_that_of_what_the_recording_has() -> None:
    def digest(content: str) -> str:
        return sha256(content.encode()).hexdigest().upper()

    lines = [f'AT%CMNG=0,17,1,"{PEM}"\r', "OK\r\n", f'%CMNG: 17,1,"{digest(PEM)}"\r\n']
    placeholder = digest("{redacted:certificate}")
    after = cleaned(lines)
    assert after[2] == f'%CMNG: 17,1,"{placeholder}"\r\n'
    assert cleaned(after) == after  # a transcript that is imported again
    (key,) = cleaned([f'%CMNG: 4294967294,6,"{"AB" * 32}"\r\n'])
    assert key == f'%CMNG: 4294967294,6,"{digest(PUBLISHED_PEM)}"\r\n'


def test_the_digest_of_a_key_goes_with_the_key() -> None:
    modem = switched_on()
    lines = [printed(modem, line) for line in ("AT%KEYGEN=1,2,0", "AT%CMNG=1,1")]
    after = cleaned([line for text in lines for line in text.splitlines(keepends=True)])
    assert any(PUBLISHED_KEY_ID.upper() in line for line in after)


def test_the_public_key_of_a_module_is_that_of_its_signatures() -> None:
    """One without + and / looked like what is left of a signed text, and was not to be read."""
    key = (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEe4qIfxpQs33O7vCqIAFOP0YIENMn3KFhC5Xh8M0fIR3ELN3YeS4TOi"
        "M2hZ1sSXRnWRuJWY2fkkk8cXYrVx56UA=="
    )
    creating = "%CLOUDACCESSKEY: creating key...\r\n"
    after = cleaned(["AT%CLOUDACCESSKEY\r", creating, f"%CLOUDACCESSKEY: {key}\r\n"])
    published = "".join(PUBLISHED_PEM.splitlines()[1:-1])
    assert after[1:] == [creating, f"%CLOUDACCESSKEY: {published}\r\n"]
    assert cleaned(after) == after


def test_colours_do_not_cost_the_shape() -> None:
    redactor = IdentityRedactor()
    answer = f"\x1b[8D\x1b[J{IMSI}\x1b[m\r\n"
    lines = ["AT+CIMI\r", answer, f"OK\r\n\x1b[32m{IMEI}\x1b[0m\r\n"]
    cleaned = [redactor.clean(line.encode()).decode() for line in lines]
    assert re.fullmatch(r"\x1b\[8D\x1b\[J26201\d{10}\x1b\[m\r\n", cleaned[1])
    assert re.fullmatch(r"OK\r\n\x1b\[32m00100999\d{7}\x1b\[0m\r\n", cleaned[2])


def test_a_line_after_the_answer_is_no_answer() -> None:
    """What follows the final result is not read by the command before it."""
    redactor = IdentityRedactor()
    for line in (b"AT+CGSN\r", b"OK\r\n"):
        redactor.clean(line)
    assert redactor.clean(b"v1.2.3\r\n") == b"v1.2.3\r\n"
