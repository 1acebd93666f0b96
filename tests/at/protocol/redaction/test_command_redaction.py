"""No secret of a command or answer in any spelling, and no other byte changed."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from at.commands.catalog import TYPES
from at.protocol import notices
from at.protocol.redaction.command_redaction import MARKER, without_secrets
from at.protocol.redaction.secret_parameters import ANSWER, NOT_DAMAGED, SET
from at.virtual.modem import COMMANDS as COMMANDS_OF_THE_KIT
from tests.support.modem.secret_spellings import ANSWERS, CANARY, COMMANDS, spelled

_TYPED = {name for name, _form in TYPES}
SPELLED = list(spelled())
BY_NAME = {
    (name, sent): [(spelling, line) for _, spelling, line, _ in group]
    for (name, sent), group in itertools.groupby(SPELLED, key=lambda row: (row[0], row[3]))
}


def test_the_table_of_spellings_has_every_command_and_answer() -> None:
    assert {name for name, _ in COMMANDS} == set(SET)
    assert {name for name, _ in ANSWERS} == set(ANSWER)


@pytest.mark.parametrize(("name", "sent"), BY_NAME)
def test_no_spelling_keeps_the_secret(name: str, sent: bool) -> None:
    assert len(BY_NAME[name, sent]) >= 6
    for spelling, line in BY_NAME[name, sent]:
        shown = without_secrets(line)
        assert CANARY not in shown, spelling
        assert MARKER.search(shown), spelling
        assert without_secrets(shown) == shown, spelling


@pytest.mark.parametrize(("name", "given_"), COMMANDS)
def test_a_secret_is_replaced_within_its_quotes_and_nothing_else(
    name: str, given_: tuple[str, ...]
) -> None:
    line = f"AT{name}={','.join(given_)}\r\n"
    shown = without_secrets(line)
    if name in {"%NRFCLOUDMESSAGE", "%NRFCLOUDSHADOW"} or (name == "#XMQTTCON" and len(given_) < 5):
        assert shown == f"AT{name}{{redacted:rest}}\r\n"
        return
    for written, left in zip(given_, _parameters(shown, name), strict=True):
        if CANARY in written:
            assert MARKER.search(left)
            assert left[0] == left[-1] == '"'
    pieces = re.split(r"\{redacted:[a-z-]+\}", shown)
    assert re.fullmatch(r"[^\",]*".join(map(re.escape, pieces)), line)


def _parameters(shown: str, name: str) -> list[str]:
    return shown.removeprefix(f"AT{name}=").strip().split(",")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('AT+CPWD="SC","1111","2222"', 'AT+CPWD="SC","{redacted:pin}","{redacted:pin}"'),
        (
            'AT#XMQTTCON=1,"user","password","host",1883',
            'AT#XMQTTCON=1,"{redacted:user}","{redacted:password}","host",1883',
        ),
        ('AT+CGAUTH=0, 1, "u", "p"', 'AT+CGAUTH=0, 1, "{redacted:user}", "{redacted:password}"'),
        ('+CGAUTH: 0,1,"u","p"', '+CGAUTH: 0,1,"{redacted:user}","{redacted:password}"'),
        ("AT+CPIN=1234", "AT+CPIN={redacted:pin}"),
        ('AT+CPIN="PINs"', 'AT+CPIN="{redacted:pin}"'),
        ('AT+CWJAP="USER","PASSWORD"', 'AT+CWJAP="USER","{redacted:password}"'),
        ('AT%CGPCO=1,"PAP,me,pw",2', 'AT%CGPCO=1,"{redacted:password}",2'),
        ('+CSTT: "apn","me","pw"', '+CSTT: "apn","{redacted:user}","{redacted:password}"'),
        ('AT%CMNG=0,7,3,"12', "AT%CMNG{redacted:rest}"),
        (
            'AT%XSUDO=9,"sig";%CMNG=0,7,3,"psk"',
            'AT%XSUDO=9,"{redacted:signature}";%CMNG=0,7,3,"{redacted:key}"',
        ),
        ("at 'AT+CPIN='1234''", "at 'AT+CPIN{redacted:rest}"),
        ('AT#XFOTA=1,"https://me:pw@host/a?b=c",42', 'AT#XFOTA=1,"https://{redacted:query}",42'),
        (
            '%COAP: DATA,40,{"data": {"url": "https://h/f?key=1"}}',
            '%COAP: DATA,40,{"data": {"url": "https://h/f?{redacted:query}"}}',
        ),
        ("MC:CAKmAgMBB2lURVNU:", "MC:{redacted:chunk}:"),
        (
            "uart:~$ wifi connect -s lab -k 1 -p canary\r\nConnection requested",
            "uart:~$ wifi connect {redacted:password}\r\nConnection requested",
        ),
        ("wifi_cred add 'lab' WPA2-PSK canary", "wifi_cred add {redacted:password}"),
        ("wifi connect lab 3 canary", "wifi connect {redacted:password}"),
        ("<wrn> wifi connect failed: -110", "<wrn> wifi connect failed: -110"),
        ('AT+CPIN="12"\r\nOK\r\n', 'AT+CPIN="{redacted:pin}"\r\nOK\r\n'),
        ('AT+CPIN="12"34\r\nOK\r\n', "AT+CPIN{redacted:rest}\r\nOK\r\n"),
        ('AT+CPWD="SC";"1111";"2222"', "AT+CPWD{redacted:rest}"),
        ("AT+CPIN=1234; no answer", "AT+CPIN={redacted:pin}; no answer"),
        (
            "AT%CMNG=0,7,2,'-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----'\nOK",
            "AT%CMNG=0,7,2,{redacted:key}\nOK",
        ),
        # A name that no row has, and that tells by itself.
        ('AT+EMAILPWD="canary"', 'AT+EMAILPWD="{redacted:password}"'),
        (
            'AT$NWQMIAUTH=1,1,"me","pw"',
            'AT$NWQMIAUTH=1,1,"{redacted:password}","{redacted:password}"',
        ),
        ('AT#WLKEY=1,"canary",5', 'AT#WLKEY=1,"{redacted:password}",5'),
        ("AT+ENTERPIN=1,4711", "AT+ENTERPIN=1,{redacted:pin}"),
        ('AT+CIPSSLCPSK=0,"c0ff"', 'AT+CIPSSLCPSK=0,"{redacted:password}"'),
        # Quoted in a message: what follows stays.
        (
            "sent `AT+CPIN=12`, yet line 3 has `AT+CPIN=13`",
            "sent `AT+CPIN={redacted:pin}`, yet line 3 has `AT+CPIN={redacted:pin}`",
        ),
    ],
)
def test_what_is_left_of_a_line(line: str, shown: str) -> None:
    assert without_secrets(line) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "line",
    [
        "AT+CPIN?",
        "AT+CPIN=?",
        "AT%CLOUDACCESSKEY",
        'AT+CASSLCFG=0,"SSL",1',
        "AT+SQNSCFG=1,1,300,90,600,50",
        "AT+UMQTTSNC=1",
        "AT+CIPPING=4",
        "AT+BYPASS=1",
        "AT+GPIOPIN=1,27",
        'AT^SICS=0,"apn","internet"',
        'AT^SISS=0,"srvType","Socket"',
        'AT^SICS=0,"conType","GPRS0"',
        'AT+SAPBR=3,1,"APN","internet"',
        'AT+SMCONF="KEEPTIME",60',
        'AT+CSSLCFG="sslversion",0,4',
        'AT+CSSLCFG="cacert",0,"ca.pem"',
        "+CPIN: SIM PIN",
        'AT+CPINR="SIM PIN"',
        '+CPINR: "SIM PIN",3',
        'AT+CLCK="SC",2',
        "AT+CGAUTH=0,0",
        "AT+CGAUTH?",
        '+CGAUTH: 0,0,"",""',
        "AT%CMNG=1",
        "AT%CMNG=2,16842753,3",
        'AT%CMNG=0,7,0,"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"',
        '%CMNG: 7,3,"' + "A" * 64 + '"',
        '%CMNG: 7,0,"' + "A" * 64 + '","-----BEGIN CERTIFICATE-----"',
        "%CMNG: (0,1,2,3),(0-2147483647)",
        "AT#XMQTTCON=0",
        "#XMQTTCON: (0,1,2),<username>,<password>,<url>,<port>,<sec_tag>",
        "AT#XSEND=0,2,0",
        "AT+CMGS=24",
        "AT#XNRFCLOUDOBSAUTO=1,3600",
        '#XNRFCLOUDOBSAUTO: 0,3600,""',
        "#XNRFCLOUDOBSAUTO: (0,1),(60-86400),<project_key>",
        "#XNRFCLOUDOBSUPLOAD: 0,512",
        'AT#XFOTA=1,"https://host/app.bin",42',
        '+CSIM: 4,"9000"',
        'AT+CSIM=14,"00A40004022FE2"',
        "AT%NRFCLOUDFOTA=1,12",
        'AT+QHTTPCFG="contextid",1',
        'AT+QMTCFG="keepalive",0,60',
        "+QMTCONN: 0,0,0",
        "+CMQTTCONNECT: 0,0",
        "#SGACT: 10.12.0.7",
        "^CARDLOCK: 2,10,0",
        'AT+CMQTTCFG="version",0,4',
        'AT+QSSLCFG="ciphersuite",1,0XFFFF',
        'AT+QSSLCFG="cacert",1,"ca.pem"',
        "AT^SISW=0,100",
        "^SISR: 0,1",
        "^SLCC: 1,1,0,1,0,0",
        "AT+UFTPC=1",
        "at+cops? +cme error: 10",
        "+cms error: 310",
        'AT+USECMNG=0,0,"ca",1706',
        # Messages of ours.
        "unlock the SIM: AT+CPIN=<pin>",
        "unlock the SIM: `cellagent modem at 'AT+CPIN=\"PIN\"'`",
        "nothing is there by that tag: `cellagent modem at 'AT%CMNG=1'` lists what is",
        "/dev/ttyACM0: no answer to +CPIN within 5 s",
        "%XSUDO: the modem answered +CME ERROR 520 (authentication failed)",
        "#XSMS: the modem answered ERROR",
        "sign the command with the key that the modem was given (AT%XPMNG)",
        "delete what is stored under the tag first (AT%CMNG=3), if nothing needs it any more",
        'AT+CPING="host.example",1,4',
        "+CPING: 1,192.0.2.1,64,410,255",
        "+USIM: 1",
    ],
)
def test_a_line_without_a_secret_stays(line: str) -> None:
    assert without_secrets(line) == line


@given(
    st.sampled_from([row for row in SPELLED if row[3] or row[1] != "in a log"]),
    st.integers(0, 300),
    st.text(st.sampled_from("AT+=,;\"\r\n \t\x08'x1"), max_size=12),
)
def test_a_line_cut_anywhere_keeps_no_secret(
    row: tuple[str, str, str, bool], cut: int, before: str
) -> None:
    line = row[2][: len(row[2]) - cut % len(row[2])]
    assert CANARY not in without_secrets(line)
    assert CANARY not in without_secrets(before + "\r\n" + line)


PLAIN = [row for row in SPELLED if row[3] and row[1] in {"as in the manual", "without quotes"}]


@given(
    st.sampled_from(PLAIN),
    st.lists(
        st.tuples(st.integers(0, 200), st.text("\",=?:'`()<>[]{} \t~/", min_size=1, max_size=2)),
        max_size=3,
    ),
)
@example(next(row for row in PLAIN if row[0] == "+CPIN"), [(0, "> "), (0, "?")])
def test_noise_behind_the_name_keeps_no_secret(
    row: tuple[str, str, str, bool], noise: list[tuple[int, str]]
) -> None:
    name, _spelling, line, _sent = row
    begins = len(f"AT{name}")
    for at, text in noise:
        place = begins + at % (len(line) - begins + 1)
        line = line[:place] + text + line[place:]
    assert CANARY not in without_secrets(line)


_SIGNED_NAMES = re.compile("|".join(re.escape(name) for name in {*SET, *ANSWER}), re.IGNORECASE)


@pytest.mark.parametrize("colon", ["", ";", ">", "\x1a", ":"])
@pytest.mark.parametrize("login", ['1,2,"user","{}"', '0,1,"","{}"', "0,1,user,{}"])
def test_an_answer_whose_colon_was_lost_or_damaged_keeps_no_secret(colon: str, login: str) -> None:
    shown = without_secrets(f"+CGAUTH{colon} {login.format(CANARY)}")
    assert CANARY not in shown
    assert shown.startswith("+CGAUTH")


@given(st.text())
@example("AT+CEREG=5;+CFUN=1\r\n+CEREG: 5,1\r\n")
@example("+CPI\x08N")
def test_a_text_that_names_none_of_them_stays(text: str) -> None:
    names = _SIGNED_NAMES.search(re.sub(r"[ \t\x08\x7f\x1b]", "", text))
    if names is None and "MC:" not in text and "%COAP" not in text.upper():
        assert without_secrets(text) == text


@given(st.text(st.sampled_from("AT+CPIN%MNG=,;:\"'`()<>? \t\r\n\x08071x{}"), max_size=60))
def test_hiding_twice_is_hiding_once(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once


@pytest.mark.parametrize(
    "text",
    [
        'AT+CPIN="' + "x" * 1_000_000,
        'AT+CPIN=1,"\n' * 50_000,
        "+C P" * 200_000,
        "%COAP:" * 100_000 + "://",
        "://?" * 200_000 + "%COAP:",
        "MC:" * 200_000,
        "wifi connect " * 50_000,
        "\x08" * 200_000 + "+CPIN=",
        "AT+CPIN=" + "\0" * 200_000 + "x",
    ],
    ids=lambda text: text[:12],
)
def test_a_long_line_costs_no_more_than_its_length(text: str) -> None:
    without_secrets(text)  # seconds where it is not linear: the suite's time limit ends it


def _pieces_of_the_secret_in(text: str) -> bool:
    return any(CANARY[at : at + 8] in text for at in range(len(CANARY) - 7))


@pytest.mark.parametrize(
    "line",
    [
        *(f"AT{name}={','.join(given_)}" for name, given_ in COMMANDS),
        *(f"{name}: {','.join(given_)}" for name, given_ in ANSWERS),
    ],
)
def test_one_byte_of_noise_anywhere_shows_no_eight_characters_of_a_secret(line: str) -> None:
    """But a line end, which leaves another line, and a name that is another command's."""
    name = re.match(r"(?:AT)?([^=:]+)", line)
    assert name is not None
    others = {*SET, *ANSWER, *NOT_DAMAGED} - {name[1]}
    damaged = [line[:at] for at in range(len(line))]
    for at, byte in enumerate(line):
        turned = {chr(ord(byte) ^ (1 << bit)) for bit in range(8)} - {"\r", "\n"}
        noise = ["", byte * 2, "\0", f"\0{byte}", *sorted(turned)]
        damaged += [line[:at] + one + line[at + 1 :] for one in noise]
    assert [
        one
        for one in damaged
        if _pieces_of_the_secret_in(without_secrets(one))
        and re.split("[=:]", one.removeprefix("AT"))[0] not in others
    ] == []


@pytest.mark.parametrize("name", sorted({*COMMANDS_OF_THE_KIT, *notices._parsers, *_TYPED}))
def test_a_name_of_a_command_without_secrets_is_no_damaged_one(name: str) -> None:
    if name not in SET and name not in ANSWER:
        for line in (f'AT{name}=1,"text"', f'{name}: 1,"text"'):
            assert without_secrets(line) == line


@pytest.mark.parametrize("lead", ["at%cmg", "%cmg", "at+cpwd2", "#xmqttco"])
def test_a_damaged_name_in_small_letters_shows_no_secret_either(lead: str) -> None:
    assert (
        without_secrets(f'{lead}=1,"hidden-test-value"') == f"{lead.rstrip('2')}{{redacted:rest}}"
    )
