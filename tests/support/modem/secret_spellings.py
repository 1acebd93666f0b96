"""Every command and answer that carries a secret, and the ways in which one may be written."""

from collections.abc import Callable, Iterator

CANARY = "c0ffee5ec2e7"
SECRET = f'"{CANARY}"'
APDU = f'"0020000110{CANARY}FFFF"'

_OF_OTHER_MAKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("+QICSGP", ("1", "1", '"apn"', SECRET, SECRET, "1")),
    ("+QMTCONN", ("0", '"client"', SECRET, SECRET)),
    ("+CSTT", ('"apn"', SECRET, SECRET)),
    ("+CMQTTCONNECT", ("0", '"tcp://mqtt.example:1883"', "60", "1", SECRET, SECRET)),
    ("$QCPDPP", ("1", "1", SECRET, SECRET)),
    ("^AUTHDATA", ("1", "1", '"46000"', SECRET, SECRET)),
    ("#SGACT", ("1", "1", SECRET, SECRET)),
    ("#FTPOPEN", ('"ftp.example"', SECRET, SECRET, "1")),
    ("#MQCONN", ("1", '"client"', SECRET, SECRET)),
    ("+SQNSMQTTCFG", ("0", '"client"', SECRET, SECRET, "1")),
    ("+FTPUN", (SECRET,)),
    ("+FTPPW", (SECRET,)),
    ("+QFTPCFG", ('"account"', SECRET, SECRET)),
    ("+CNCFG", ("0", "1", '"apn"', SECRET, SECRET, "1")),
    ("+SMCONF", ('"PASSWORD"', SECRET)),
    ("+HTTPPARA", ('"USERDATA"', SECRET)),
    ("+SAPBR", ("3", "1", '"PWD"', SECRET)),
    ("+UAUTHREQ", ("1", "1", SECRET, SECRET)),
    ("+UPSD", ("0", "3", SECRET)),
    ("+UHTTP", ("0", "3", SECRET)),
    ("+UMQTT", ("4", SECRET, SECRET)),
    ("+UFTP", ("3", SECRET)),
    ("+UWSC", ("0", "8", SECRET)),
    ("+UWSSW", ("0", SECRET, "0")),
    ("+USECPRF", ("0", "8", SECRET)),
    ("+USECMNG", ("1", "2", '"name"', '"file.pem"', SECRET)),
    ("#PDPAUTH", ("1", "2", SECRET, SECRET)),
    ("#USERID", (SECRET,)),
    ("#PASSW", (SECRET,)),
    ("#HTTPCFG", ("0", '"http.example"', "80", "1", SECRET, SECRET, "0", "120", "1")),
    ("+CGSOCKAUTH", ("1", "1", SECRET, SECRET)),
    ("+CFTPSLOGIN", ('"ftp.example"', "21", SECRET, SECRET, "0")),
    ("+CFTPUN", (SECRET,)),
    ("+CFTPPW", (SECRET,)),
    ("+SMTPAUTH", ("1", SECRET, SECRET)),
    ("+QFTPUSER", (SECRET,)),
    ("+QFTPPASS", (SECRET,)),
    ("+QHTTPCFG", ('"auth"', SECRET)),
    ("+QMTCFG", ('"aliauth"', "0", SECRET, SECRET, SECRET)),
    ("+QSMTPCFG", ('"account"', SECRET, SECRET)),
    ("+KCNXCFG", ("1", '"GPRS"', '"apn"', SECRET, SECRET)),
    ("+QIREGAPP", ('"apn"', SECRET, SECRET)),
    *((name, ("1", "2", SECRET, SECRET)) for name in ("+XGAUTH", "+MGAUTH", "^SGAUTH", "+WPPP")),
    ("+ZGPCOAUTH", ("1", SECRET, SECRET, "1")),
    ("%IPDPCFG", ("1", "0", "1", SECRET, SECRET)),
    ("*EIAAUW", ("1", "1", SECRET, SECRET)),
    ("%CGPCO", ("1", SECRET, "2")),
    ("#TCPATRUNAUTH", ("1", "1", SECRET, SECRET)),
    ("#EUSER", (SECRET,)),
    ("#EPASSW", (SECRET,)),
    ("+CSMTPSAUTH", ("1", SECRET, SECRET)),
    ("+SQNHTTPCFG", ("1", '"http.example"', "80", "1", SECRET, SECRET, "0", "120", "1")),
    (
        "+KMQTTCFG",
        (
            *("0", '"mqtt.example"', "1883", "4", '"client"', "60", "1", "1", '"topic"', '"off"'),
            *("0", "0", SECRET, SECRET),
        ),
    ),
    ("+MQTTUSERCFG", ("0", "1", '"client"', SECRET, SECRET, "0", "0", '""')),
    ("+MQTTUSERNAME", ("0", SECRET)),
    ("+MQTTPASSWORD", ("0", SECRET)),
    ("+QSETPSK", (SECRET, SECRET)),
    ("^SLCK", ('"SC"', "1", SECRET)),
    ("^SPWD", ('"SC"', SECRET, SECRET)),
    ("^CARDLOCK", (SECRET,)),
    ("#DWCFG", ('"api.example"', "0", SECRET)),
    ("+USMTP", ("3", SECRET)),
    ("^SICS", ("0", '"passwd"', SECRET)),
    ("^SISS", ("0", '"address"', f'"ftp://user:{CANARY}@ftp.example/x"')),
    ("+SHAHEAD", ('"Authorization"', SECRET)),
    ("+SHPARA", ('"token"', SECRET)),
    ("+QLWCFG", ('"security"', "1", SECRET, SECRET)),
    ("+QSSLCFG", ('"psk"', "1", SECRET, SECRET)),
)
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("+CPIN", (SECRET,)),
    ("+CPIN", (SECRET, SECRET)),
    ("+CPINR", (SECRET,)),
    ("+CPWD", ('"SC"', SECRET, SECRET)),
    ("+CPWD", ('"P2"', '""', SECRET)),
    ("+CLCK", ('"SC"', "1", SECRET)),
    ("+CLCK", ('"PN"', "0", SECRET, "7")),
    ("+CGAUTH", ("0", "1", SECRET, SECRET)),
    ("+CGAUTH", ("", "", SECRET, SECRET)),
    ("+CSIM", ("26", APDU)),
    ("+CGLA", ("1", "26", APDU)),
    ("+CRSM", ("214", "28448", "0", "0", "9", SECRET)),
    ("+CUSD", ("1", SECRET, "15")),
    ("%XUSIMLCK", ("1", SECRET)),
    *(("%CMNG", ("0", "7", kind, SECRET)) for kind in ("2", "3", "4", "7", "8", "9", "03", "12")),
    ("%CMNG", ("0", "16842753", "2", SECRET, SECRET)),
    ("%CMNG", ("", "7", "", SECRET)),
    ("#XCMNG", ("0", "7", "3", SECRET)),
    ("%KEYINJECT", (SECRET,)),
    ("%XPMNG", ("0", SECRET)),
    ("%XSUDO", ("64", SECRET)),
    ("%XSUDO", ("64", SECRET, "17")),
    ("+CMGS", (SECRET,)),
    ("+CMGSEX", (SECRET, "5")),
    ("+CMGW", (SECRET, "145")),
    ("#XSMS", ("2", SECRET, SECRET)),
    ("#XMQTTCON", ("1", SECRET, SECRET, '"mqtt.example"', "1883")),
    ("#XMQTTCON", ("1", '""', SECRET, '"mqtt.example"', "8883", "42")),
    ("#XMQTTCON", ("1", '"client"', '"u"', SECRET, '"mqtt.example"', "1883")),
    ("#XMQTTCON", ("2", '"client"', SECRET, SECRET, '"mqtt.example"', "8883", "42")),
    ("#XMQTTCON", ("1", '"u"', SECRET)),
    ("#XMQTTPUB", ('"topic"', SECRET, "1", "0")),
    ("#XMQTTSUB", (SECRET, "1")),
    ("#XHTTPCREQ", ("0", '"https://host/x"', "1", "1", "0", "12", SECRET, SECRET)),
    ("#XHTTPCREQ", ("0", SECRET, "0")),
    ("#XCOAPCREQ", ("0", '"path"', "2", "1", "0", "1", "50", "12", "15", SECRET)),
    ("#XSEND", ("0", "0", "0", SECRET)),
    ("#XSEND", (SECRET,)),
    ("#XSENDTO", ("0", "0", "0", '"host"', "1234", SECRET)),
    ("#XSENDTO", ('"host"', "1234", SECRET)),
    ("#XTCPSEND", (SECRET,)),
    ("#XUDPSEND", (SECRET,)),
    ("#XFTP", ('"open"', SECRET, SECRET, '"host"', "21")),
    ("#XCARRIER", ('"app_data_set"', SECRET, "1")),
    ("#XCARRIER", ('"LOG_DATA"', SECRET)),
    ("#XNRFCLOUDOBSAUTO", ("1", "3600", SECRET)),
    ("#XNRFCLOUDOBSAUTO", ("1", SECRET)),
    ("#XNRFCLOUDOBSUPLOAD", (SECRET,)),
    ("#XNRFCLOUDOBSFORWARD", (SECRET, SECRET)),
    ("#XNRFCLOUDFOTA", ("1", SECRET)),
    ("#XNRFCLOUDFOTA", ('"app"', SECRET)),
    ("%NRFCLOUDFOTA", ("3", SECRET)),
    ("%NRFCLOUDFOTA", ("0", SECRET, '"hw"', '"main"', '"1.2.3"')),
    ("%NRFCLOUDOBSUPLOAD", (SECRET,)),
    ("%NRFCLOUDOBSFORWARD", (SECRET,)),
    ("%NRFCLOUDMESSAGE", (f'{{"data":"{CANARY}","n":1}}',)),
    ("%NRFCLOUDSHADOW", ("config.wifi.password", CANARY)),
    ("+CWJAP", ('"home"', SECRET)),
    ("+CWJAP", ('"home"', SECRET, '"00:00:5e:00:53:01"', "0", "1")),
    *((f"+CWJAP{kept}", ('"home"', SECRET)) for kept in ("_CUR", "_DEF")),
    *((f"+CWSAP{kept}", ('"home"', SECRET, "5", "3")) for kept in ("", "_CUR", "_DEF")),
    ("+CWJEAP", ('"home"', "2", SECRET, SECRET, SECRET, "3")),
    *_OF_OTHER_MAKERS,
    ("#XFOTA", ("1", f'"https://files.example/image?token={CANARY}"', "42")),
    ("%HTTPFOTADL", (f'"https://files.example/image?token={CANARY}"',)),
)
"""Name and parameters as they are written; those that hold `CANARY` are secret."""

_SHA = '"' + "A" * 64 + '"'
ANSWERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("+CGAUTH", ("0", "1", SECRET, SECRET)),
    *(("%CMNG", ("7", kind, _SHA, SECRET)) for kind in ("2", "3", "4", "8")),
    ("#XCMNG", ("7", "3", _SHA, SECRET)),
    ("%KEYINJECT", (SECRET,)),
    ("%XPMNG", (SECRET,)),
    ("%XSUDO", (SECRET,)),
    ("+CSIM", ("36", f'"{CANARY}9000"')),
    ("+CGLA", ("36", f'"{CANARY}9000"')),
    ("+CUSD", ("0", SECRET, "15")),
    ("+CMT", (SECRET, "24")),
    ("+CDS", (SECRET,)),
    ("#XSMS", (SECRET, SECRET, SECRET)),
    ("#XNRFCLOUDOBSAUTO", ("1", "3600", SECRET)),
    *((f"+CWSAP{kept}", ('"home"', SECRET, "5", "3")) for kept in ("", "_CUR", "_DEF")),
    ("+CWJEAP", ('"home"', "2", SECRET, SECRET, SECRET, "3")),
    ("+QICSGP", ("1", '"apn"', SECRET, SECRET, "1")),
    *_OF_OTHER_MAKERS,
)

Spelling = Callable[[str, tuple[str, ...]], str]


def _bare(parameters: tuple[str, ...]) -> str:
    return ",".join(item.strip('"') for item in parameters)


def _mixed_case(name: str) -> str:
    return "".join(c.lower() if i % 2 else c for i, c in enumerate(name))


COMMAND_SPELLINGS: dict[str, Spelling] = {
    "as in the manual": lambda name, given: f"AT{name}={','.join(given)}",
    "without quotes": lambda name, given: f"AT{name}={_bare(given)}",
    "lower case": lambda name, given: f"at{name.lower()}={','.join(given)}",
    "mixed case": lambda name, given: f"aT{_mixed_case(name)}={','.join(given)}",
    "blanks everywhere": lambda name, given: f" AT {name} =  {' , '.join(given)} ",
    "blanks in the name": lambda name, given: f"AT{' '.join(name)} ={','.join(given)}",
    "tabs": lambda name, given: f"AT{name}\t=\t" + "\t,\t".join(given),
    "behind another command": lambda name, given: f"AT+CMEE=1;{name}={','.join(given)}",
    "before another command": lambda name, given: f"AT{name}={','.join(given)};+CMEE=1",
    "in a shell's quotes": lambda name, given: f"at 'AT{name}={','.join(given)}'",
    "in a shell": lambda name, given: f"uart:~$ modem at AT{name}={','.join(given)}",
    "in a shell's double quotes": lambda name, given: f'modem at "AT{name}={_bare(given)}"',
    "with escaped quotes": lambda name, given: (
        'modem at "' + f"AT{name}={','.join(given)}".replace('"', '\\"') + '"'
    ),
    "in a log": lambda name, given: f"[12:00:01.250] TX: AT{name}={','.join(given)}",
    "without AT": lambda name, given: f"{name}={','.join(given)}",
    "a quote that is not closed": lambda name, given: f"AT{name}={','.join(given)}".rstrip('"'),
    "a quote too many": lambda name, given: f"AT{name}={','.join(given)}" + '"',
    "text behind the quote": lambda name, given: f"AT{name}={','.join(given)}{CANARY}",
    "a sign too many": lambda name, given: f"AT{name}=={','.join(given)}",
    "no sign": lambda name, given: f"AT{name} {','.join(given)}",
    "no sign, no blank": lambda name, given: f'AT{name}"{CANARY}"',
    "a colon": lambda name, given: f"AT{name}: {','.join(given)}",
    "semicolons for commas": lambda name, given: f"AT{name}={' ; '.join(given)}",
    "single quotes": lambda name, given: f"AT{name}={','.join(given)}".replace('"', "'"),
    "typed with a correction": lambda name, given: f"AT{name[:3]}x\x08{name[3:]}={','.join(given)}",
    "typed with a delete": lambda name, given: f"AT{name}y\x7f={','.join(given)}",
    "a coloured echo": lambda name, given: f"AT{name}\x1b[0m={','.join(given)}\x1b[m",
    "too many parameters": lambda name, given: f"AT{name}={','.join(given)},{SECRET}" * 3,
}

ANSWER_SPELLINGS: dict[str, Spelling] = {
    "as in the manual": lambda name, given: f"{name}: {','.join(given)}",
    "no blank": lambda name, given: f"{name}:{','.join(given)}",
    "without quotes": lambda name, given: f"{name}: {_bare(given)}",
    "blanks everywhere": lambda name, given: f"{name} :  {' , '.join(given)} ",
    "lower case": lambda name, given: f"{name.lower()}: {','.join(given)}",
    "in a log": lambda name, given: f"[00:00:01.250,000] <inf> at: {name}: {','.join(given)}",
    "a quote that is not closed": lambda name, given: f"{name}: {','.join(given)}".rstrip('"'),
    "text behind the quote": lambda name, given: f"{name}: {','.join(given)}x" + SECRET,
}


def spelled() -> Iterator[tuple[str, str, str, bool]]:
    """Yield name, spelling, line and whether it is sent, for each pair of the two tables."""
    for name, given in COMMANDS:
        for spelling, write in COMMAND_SPELLINGS.items():
            yield name, spelling, write(name, given), True
    for name, given in ANSWERS:
        for spelling, write in ANSWER_SPELLINGS.items():
            yield name, spelling, write(name, given), False
