"""What is redacted, and what keeps its shape."""

from __future__ import annotations

import re

import pytest

from at.transcripts.redaction.redactor import Redactor
from tests.support.modem.secret_spellings import CANARY as SPELLED_SECRET
from tests.support.modem.secret_spellings import spelled

CANARY = "c0ffee5ec2e7"
LOG = "[00:00:07.250,000] <inf> app: up"
PROFILE = f"01120809101010325406360214980010325476981032140320{CANARY}"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0." + CANARY * 7


def test_a_token_keeps_its_claims_and_loses_its_signature() -> None:
    cleaned = Redactor().clean(f'%JWT: "{TOKEN}"'.encode())
    assert cleaned.startswith(b'%JWT: "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.')
    assert re.fullmatch(rb'.*\."?A{86}"', cleaned)


def test_no_spelling_of_a_secret_command_or_answer_is_kept() -> None:
    redactor = Redactor()
    kept = [
        (name, spelling)
        for name, spelling, line, _sent in spelled()
        if SPELLED_SECRET in redactor.clean(line.encode() + b"\r\n").decode()
    ]
    assert kept == []


@pytest.mark.parametrize(
    "said",
    [
        f"wifi: password: {CANARY}",
        f'app: {{"user":"kit","password":"{CANARY}","port":1}}',
        f"app: Passwd={CANARY}, retrying",
        f"app: api_key = {CANARY}",
        f"pdn: user=kit pass={CANARY}",
        f"coap: PSK: {CANARY}",
        f'wifi: psk "{CANARY}", channel 6',
        f'wifi: passphrase="in words {CANARY}", channel 6',
        f"http: X-Auth: token={CANARY}{CANARY}",
        f"shell: settings set golioth/psk {CANARY}",
        f"Setting golioth/psk to {CANARY}",
        f"Setting golioth/psk saved as {CANARY}",
        f"softsim: SoftSIM APDU request0020000108{CANARY}",
        f"softsim: SoftSIM APDU response08{CANARY}9000",
        f"softsim: SoftSIM APDU response: 08 {' '.join(re.findall('..', CANARY))} 90 00",
        f"card: APDU={CANARY}9000",
        f"app: {PROFILE}",
        f'app: CONFIG_SOFTSIM_STATIC_PROFILE="{PROFILE}"',
        f"softsim: SoftSIM APDU request00dc010436a{CANARY}c",
        f'{{"status": "success", "msg": "setting wifi/psk saved as {CANARY}"}}',
        f'shell: settings write string wifi/pass "{CANARY}"',
        f"app: client_secret = {CANARY}",
        f"mflt: Memfault-Project-Key: {CANARY}",
        f"az: HostName=x.example;SharedAccessKey={CANARY}=",
        f"az: SharedAccessSignature sr=x&sig={CANARY}&se=1",
        f"http: GET /v1?x=1&token={CANARY} HTTP/1.1",
        f'http: {{"Authorization": "Bearer {CANARY}"}}',
        f"mqtt: mqtt://kit:{CANARY}@host.example:1883",
        f'http: Authorization: Digest username="kit", response="{CANARY}"',
        f"http: Set-Cookie: a=b; session={CANARY}; Path=/",
        f"http: X-ThingSpeak-Key: {CANARY}",
        f"http: X-THINGSPEAKAPIKEY: {CANARY}",
        f"http: x-amz-security-token: {CANARY}",
        f"uart:~$ golioth psk set {CANARY}",
        f"uart:~$ app psk {CANARY}",
        f"requestSetProfile[1] internet/kit/{CANARY}/2/IPV4",
        f"uart:~$ cred add 42 PSK DEFAULT bin {CANARY}",
        f"uart:~$ cred buf {CANARY}",
        f"mosh:~$ link connect -U kit -P {CANARY} -A 1",
        f"# curl -u kit:{CANARY} https://host.example",
        f"# mosquitto_pub -u kit -P '{CANARY}' -t x",
        f"# uqmi -d /dev/cdc-wdm0 --username kit --password {CANARY}",
        f"# nmcli c mod lte gsm.password {CANARY}",
        f"uci: option password '{CANARY}'",
        f"wifi: ssid: lab, pass: {CANARY}",
        f"wifi: joins lab with password {CANARY}",
        f"wifi: password is {CANARY}",
        f"pppd: Passwort: {CANARY}",
        f"pppd: Kennwort: {CANARY}",
        f"pppd: Mot de passe : {CANARY}",
        f'http: {{"accessToken":"{CANARY}"}}',
        f'http: {{"privateKey":"{CANARY}"}}',
        f"tb: token: {CANARY}{CANARY}",
        f'umbim: connect internet pap "kit" "{CANARY}"',
        f"# umbim -d /dev/cdc-wdm0 connect internet chap kit {CANARY}",
        f"# quectel-CM -s internet kit {CANARY} 2 &",
        f"# wpa_passphrase lab {CANARY}",
        f"# nmcli dev wifi connect lab password {CANARY}",
        f'>>> wlan.connect("lab", "{CANARY}")',
        f"app: password {CANARY}",
        f"app: token={CANARY}",
        f"app: golioth psk set {CANARY}",
        f"wifi: joins lab with PSK {CANARY}",
        f'at: AT+XCFG="keypwd",0,"{CANARY}"',
        f'at: AT+XBODY="{{\\"password\\":\\"{CANARY}\\"}}"',
        f"app: {{'password': '{CANARY}'}}",
        f"app: <password>{CANARY}</password>",
        f'app: gprsPass[] = "{CANARY}"',
        f'cfg: #define WIFI_PASS "{CANARY}"',
        f"pppd: Passwort eingeben: {CANARY}",
        f"pppd: password for kit: {CANARY}",
        f"pppd: пароль: {CANARY}",
        f"pppd: 密码\uff1a{CANARY}",
        f"pppd: Hasło: {CANARY}",
        f"app: deviceSecret={CANARY}",
        f"app: PSK key: {CANARY}",
        f"app: pre-shared key: {CANARY}",
        f"app: private key: {CANARY}",
        f"app: Ki={CANARY}{CANARY}c0ffee5e",
        f"app: OPc: {CANARY}{CANARY}c0ffee5e",
        f"smtp: AUTH PLAIN {CANARY}",
        f"# fw_setenv wifi_psk {CANARY}",
        f"# sshpass -p {CANARY} ssh kit",
        f"# mysql -uroot -p{CANARY} -e 'select 1'",
        f"# netsh wlan set profileparameter name=kit keyMaterial={CANARY}",
        f"netsh: Key Content            : {CANARY}",
        f"# user / password: kit / {CANARY}",
        f"# curl --user kit:{CANARY} host.example",
        f"# mosquitto_pub --username kit --pw {CANARY}",
        f"# memfault --project-key {CANARY}",
        f">>> client.username_pw_set('kit', '{CANARY}')",
        '>>> modem.begin("7193")',
        "sim: ADM1: 71937193",
        "sim: network unlock code 71937193",
        "modem: PIN eingeben: 7193",
        "modem: PIN-Code: 7193",
        "modem: Enter SIM PIN> 7193",
        "modem: setting PIN to 7193",
        "modem: ПИН-код: 7193",
        "modem: PIN码\uff1a7193",
        ">>> cell.simPIN('7193')",
        "# umbim -d /dev/cdc-wdm0 unlock 7193",
        "# quectel-CM -p 7193 -s internet",
        "# qmicli --dms-uim-change-pin=PIN,0000,7193",
        "uci: option pincode '7193'",
        "# qmicli --dms-uim-verify-pin=PIN,7193",
        "app: SIM PIN: 7193",
        "modem: using PIN 7193",
        "modem: PIN code is '7193'",
        f"sms: PDU: 0691{CANARY}0691",
        f"app: received sms 0691{CANARY}0691",
        f"sms: sms_at_cmt: PDU 0691{CANARY}0691",
        f"sim: K: {CANARY}{CANARY}c0ffee5e",
        f"sim: k={CANARY}{CANARY}c0ffee5e",
        f"ftp: > PASS {CANARY}",
        f"dtls: PSK (12): {CANARY}",
        f"dtls: psk: 01 02 03 {' '.join(re.findall('..', CANARY))}",
        f"aes: key: 01:02:03:{':'.join(re.findall('..', CANARY))}",
        f'app: Config {{ password: Some("{CANARY}") }}',
        f"aes: AES key: {CANARY}{CANARY}",
        f"aes: session key = 0x{CANARY}{CANARY}c0ffee5e",
        f"lora: AppKey: {CANARY}{CANARY}",
        f"app: encryption_key={CANARY}{CANARY}",
        f"dtls: identity 'kit', key '{CANARY}{CANARY}'",
        f"app: Device key {CANARY}{CANARY}",
        f"az: AccountKey={CANARY}{CANARY}AB==;EndpointSuffix=x",
        f'az: {{"primaryKey":"{CANARY}{CANARY}AB="}}',
        f"wg: PrivateKey = {CANARY}{CANARY}TFxXJte14tji3zlMNqhd2=",
        f"app: psk = b'{CANARY}'",
        f'wifi: wep_key0="{CANARY}"',
        f"cfg: password => {CANARY}",
        f"cfg: mqtt_password -> {CANARY}",
        f"cfg: WIFI_PASS: {CANARY}",
        f"mqtt: connects as user kit pass {CANARY}",
        f"mqtt: user kit pass throughout{CANARY}",
        f"wifi: password: none{CANARY}",
        f"wifi: password: no.{CANARY}",
        f"wifi: password = set){CANARY}",
        f"mqtt: user kit pass all-4-{CANARY}",
        f"mqtt: user kit pass true:{CANARY}",
        f'wifi: password: "not set {CANARY}"',
        f"mqtt: username (kit) and password ({CANARY})",
        f'http: {{"token":"{CANARY}"}}',
        f'cfg: token = "{CANARY}"',
        f'http: {{"idToken":"{CANARY}"}}',
        f"app: device token {CANARY}{CANARY}",
        f"http: {{'Authorization': 'Basic {CANARY}'}}",
        f"rest: using Bearer {CANARY}{CANARY} for it",
        f"http: GET /x?auth={CANARY}&x=1",
        f"uart:~$ lwm2m write 0/0/5 -s {CANARY}",
        f"shell: settings set mqtt/auth {CANARY}",
        f"git: https://ghp_{CANARY}{CANARY}@host.example",
        f"ci: remote: glpat-{CANARY}{CANARY}",
        f"mflt: oat_{CANARY}{CANARY}",
        f"http: POST /api/v1/{CANARY}A1b2C3d4/telemetry HTTP/1.1",
        f"http: https://api.telegram.org/bot123456789:AA{CANARY}{CANARY}/x",
        f"http: https://hooks.slack.com/services/T0/B0/{CANARY}",
        f"qr: WIFI:S:lab;T:WPA;P:{CANARY};;",
        f"sim: LPA:1$host.example${CANARY}",
        f"# curl -ukit:{CANARY} https://host.example",
        f"# curl --user=kit:{CANARY} https://host.example",
        f"# coap-client -m get -u kit -k {CANARY} coaps://host.example",
        f"# ./demo -u coaps://host.example -s psk -i 6b6974 -k {CANARY}",
        f"# gnutls-cli --pskusername kit --pskkey {CANARY}",
        f"# docker login -u kit -p {CANARY} host.example",
        f'chap-secrets: "kit" * "{CANARY}"',
    ],
)
def test_what_firmware_logs_by_the_name_of_a_secret_is_hidden(said: str) -> None:
    said = said.replace("0691", "0" * 12)  # a PDU has 24 digits at least
    cleaned = Redactor().clean(f"[00:00:01.000,000] <inf> {said}\r\n".encode()).decode()
    assert CANARY not in re.sub("[ :]", "", cleaned)
    assert "7193" not in cleaned
    assert cleaned.startswith(f"[00:00:01.000,000] <inf> {said.split()[0]} ")


@pytest.mark.parametrize(
    "said",
    [
        "wifi: password accepted",
        "app: enter the password:",
        "coap: token=5, parser: unexpected token: x",
        "shell: settings read golioth/psk",
        "sms: 3 SMS, PDU mode, 24 s",
        "test: pass: 12, fail: 0",
        "gpio: pin: 12, pin=31",
        "mqtt: mqtt://host.example:1883",
        "key_mgmt: sec tag 42, key type: 2",
        "+CPIN: SIM PIN",
        "sim: PIN 1 of 2, 3 tries left for PIN1",
        "requestGetProfile[pdp:1 index:1] internet///0/IPV4V6",
        "uart:~$ golioth psk",
        "uart:~$ cred add 42 CA DEFAULT string",
        "uart:~$ cred buf clear",
        "wifi: password is wrong",
        "wifi: password authentication failed, password required",
        "wifi: username and password are stored",
        "pppd: sent [PAP AuthReq id=0x1 user=kit password=<hidden>]",
        "app: password: ********",
        "app: token=7, token bucket 12, psk length 16",
        "# umbim -d /dev/cdc-wdm0 connect internet",
        "# quectel-CM -s internet -4",
        "wifi: WPA2-PSK 802.11n, psk 12 bytes, unlock code needed",
        "app: Serial.begin(115200), KI: 3, key: 3",
        "app: CA: No, Private Key: No; private key: provisioned",
        "# ssh -p 2222 host.example --user kit",
        "# ssh -P 2222 host.example",
        "# netsh wlan show profile name=kit key=clear",
        "# mysql -p kit",
        "test: > PASS",
        'calc: 3 * "x',
        "PASS tests/at/test_at.py",
        "PASS - test_at in 0.1 s",
        "tune: k: 3.5, k=12",
        f"app: public key: {CANARY}{CANARY}AB==",
        f"app: Public_Key={CANARY}{CANARY}",
        "nvs: key: nrf_cloud/device/settings/configuration1",
        "app: first_pass: int, key: 0x2000123420001234",
        f"ci: Cache key: {CANARY}{CANARY}",
        "mm: bearer /org/freedesktop/ModemManager1/Bearer/0",
        "pdn: bearer activated, default bearer 5",
        "coap: token: 0x1a2b3c4d5e, token: 12",
        "uart:~$ lwm2m write 3/0/15 -s Europe/Oslo",
        "mqtt: user kit pass",
        "mqtt: user data pass through, all login attempts pass the check",
        "mqtt: password: none, psk: (null), api_key=None; Project-Key: not set",
        'mqtt: (password: none). {"all": [{"password":null}], "now": {"password":null},"x": 1}',
        "wifi: with password protection, the password is too short",
        'app: {"password": null, "secret": "missing"}',
        "app: key value (optional), password (required)",
        "http: POST /api/v1/devices/telemetry HTTP/1.1",
        "wifi: mode: sta; p: 3",
        "http: /api/v1/organizations/telemetry",
        "# ./demo -u coaps://host.example -s psk",
        "# docker run -p 8080:80 kit",
        "# curl -k https://host.example",
    ],
)
def test_what_names_a_secret_and_shows_none_stays(said: str) -> None:
    assert Redactor().clean(said.encode()) == said.encode()


@pytest.mark.parametrize("line", [f"PASS {CANARY}", f'"kit"  *\t"{CANARY}"\t*'])
def test_a_secret_of_another_protocols_own_line_is_hidden(line: str) -> None:
    assert CANARY not in Redactor().clean(f"{line}\r\n".encode()).decode()


@pytest.mark.parametrize("prompt", ["uart:~$ ", ""])
@pytest.mark.parametrize(
    "asked", ["get golioth/psk", "read string wifi/pass", "get wifi/key --json"]
)
def test_a_setting_that_a_shell_prints_alone_on_the_next_line_is_hidden(
    asked: str, prompt: str
) -> None:
    redactor = Redactor()
    asked = f"{prompt}settings {asked}\r\n"
    assert redactor.clean_answer(asked.encode()).decode() == asked
    log = b"[00:00:01.000,000] <inf> app: tick\r\n"
    assert redactor.clean_answer(log) == log
    assert redactor.clean_answer(b"\r\n") == b"\r\n"
    assert redactor.clean_answer(CANARY.encode() + b"\r\n") == b"{redacted:password}\r\n"
    assert redactor.clean_answer(b"+CFUN: 1\r\n") == b"+CFUN: 1\r\n"


def test_of_an_apdu_its_header_and_its_status_stay() -> None:
    cleaned = Redactor().clean(
        b"softsim: APDU request00b0000009, APDU response0829430500975421439000"
    )
    assert cleaned == b"softsim: APDU request00b0000009, APDU response0000000000000000009000"
    request = b"softsim: APDU request0020000108" + CANARY.encode()
    assert Redactor().clean(request) == b"softsim: APDU request00200001" + b"0" * 14


def test_what_is_no_setting_that_was_asked_for_stays() -> None:
    redactor = Redactor()
    for line in (b"settings get app/period", b"3600", b"settings get golioth/psk-id", b"kit-7"):
        assert redactor.clean_answer(line) == line
    redactor.clean_answer(b"uart:~$ settings get golioth/psk\r\n")
    assert redactor.clean_answer(b"uart:~$ at AT+CFUN?\r\n") == b"uart:~$ at AT+CFUN?\r\n"
    assert redactor.clean_answer(b"+CFUN: 1\r\n") == b"+CFUN: 1\r\n"
    redactor.clean_answer(b"settings get golioth/psk\r\n")
    redactor.clean_command(b"AT+CFUN?\r")
    assert redactor.clean_answer(b"+CFUN: 1\r\n") == b"+CFUN: 1\r\n"


@pytest.mark.parametrize("what", ["\x1b[0m", "u\x1b[3", "requestSetProfile[", "username=:pass-"])
def test_what_may_begin_a_log_line_is_looked_at_once(what: str) -> None:
    """By the square of their number these would take minutes, beyond the limit of a test."""
    line = what.encode() * 100_000
    assert Redactor(identity=True).clean_answer(line) == line


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ('AT+CPWD="SC","7193"', 'AT+CPWD="SC","{redacted:pin}"'),
        ('AT+CIPSSLCPSK=0,"7193"', 'AT+CIPSSLCPSK=0,"{redacted:password}"'),
    ],
)
def test_the_name_of_a_command_is_no_name_of_a_setting(sent: str, left: str) -> None:
    assert Redactor().clean(sent.encode()).decode() == left


def test_what_is_no_secret_stays() -> None:
    listed = b'%CMNG: 7,3,"' + b"A" * 64 + b'"'
    assert Redactor().clean(listed) == listed
    assert Redactor().clean(b'+CGSN: "352656100367872"\r\n') == b'+CGSN: "352656100367872"\r\n'
    public = (
        b"%CLOUDACCESSKEY: MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEJj1v48MnfCz3O1xS20/Jx5ZocfLeo9Vp1"
        b"9uggei8rs7mj/EGE/vbvS2L+nwbB4PeRhSBPVnOQ19NehbszNXF/Q=="
    )
    assert Redactor().clean(public) == public


def test_a_certificate_that_a_log_prints_line_by_line_is_hidden() -> None:
    redactor = Redactor()
    lines = ["-----BEGIN CERTIFICATE-----", "MIIBszCCAVmgAwIB" + "c0ffee5e" * 6, "c0ffee5e=",
             "-----END CERTIFICATE-----", "VEVTVEVTVEVTVEVT"]  # fmt: skip
    cleaned = [redactor.clean(f"app: {line}\r\n".encode()) for line in lines]
    assert cleaned[1:3] == [b"app: {redacted:certificate}\r\n"] * 2
    assert cleaned[4] == b"app: VEVTVEVTVEVTVEVT\r\n"


@pytest.mark.parametrize("begin", ["-----BEGIN EC PRIVATE KEY-----", "-----BEGIN EC PRIV", "lost"])
@pytest.mark.parametrize(
    "lead", ["{}", '"{}\\n"', "  '{}',", "2026-02-10\t{}\tDEBUG", "\x1b[32m{}\x1b[0m", "{}" + LOG]
)
def test_a_key_of_which_parts_were_lost_or_set_in_other_text_is_hidden(
    begin: str, lead: str
) -> None:
    redactor = Redactor()
    key = ["MHcCAQEEIB" + CANARY * 4, "qGSM49" + CANARY * 4, f"c{CANARY}=="]
    cleaned = [redactor.clean(f"{lead.format(line)}\r\n".encode()) for line in (begin, *key)]
    assert CANARY not in b"".join(cleaned).decode()
    assert redactor.clean(b"OK\r\n") == b"OK\r\n"
    assert redactor.clean(b"ReleaseOfTheFirmware\r\n") == b"ReleaseOfTheFirmware\r\n"


def test_a_key_that_a_log_prints_line_by_line_is_hidden() -> None:
    redactor = Redactor()
    key = ["-----BEGIN EC PRIVATE KEY-----", "MHcCAQEEIB" + "c0ffee5e" * 6, "c0ffee5ec2e7AB==",
           "-----END EC PRIVATE KEY-----", "wrote c0ffee5ec2e7c0ffee5e"]  # fmt: skip
    lines = [f"[00:00:01.000,000] <dbg> app: {line}\r\n".encode() for line in key]
    cleaned = [redactor.clean_answer(line) for line in lines]
    assert all(line.endswith(b"\r\n") for line in cleaned)
    assert b"c0ffee5e" not in b"".join(cleaned[:4])
    assert cleaned[4] == lines[4]
    assert all(line.startswith(b"[00:00:01.000,000] <dbg> app: ") for line in cleaned)
