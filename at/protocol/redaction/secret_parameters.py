"""Which parameters of which commands and answers are secret: the one table. Pure data.

Logs, messages, recordings and imports all hide by it: see `command_redaction`. A rule gets the
parameters of one command or answer and returns the name of each secret one by its index, or None if
it knows no such form: then all that follows the name is hidden. An empty value, and a manual's word
for one (<pin>), is no secret.

Sources: Serial Modem's own log, which leaves out the text of what is marked SM here; Nordic's
references of nRF91 and nRF93M1; 3GPP TS 27.007 (+CGAUTH, +CLCK, +CPIN, +CPWD, +CRSM, +CSIM, +CUSD)
and 27.005 (+CMGS, +CMT); Espressif's ESP-AT (+CW..., +MQTT...); for the logins of other modems, of
which `modem import` reads logs, too, the manuals of Quectel, SIMCom, u-blox, Sierra, Telit,
Cinterion, Sequans, Huawei, Qualcomm, ZTE, Fibocom, Neoway, Ericsson, Icera and TI.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter as it was written: its text without quotes, and where that text stands."""

    text: str
    quoted: bool
    start: int
    end: int


Hidden = Mapping[int, str]
Rule = Callable[[Sequence[Parameter]], Hidden | None]

QUERY = "query"
"""Of an address: only its query is hidden, and the password before its host, if it has one."""

# Credential types of %CMNG that others may know: certificates and public keys.
_PUBLIC_TYPES = frozenset({"0", "1", "5", "6", "10", "11"})
_PSK_IDENTITY = "4"
_SHORT_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)
_SIM_CODE = re.compile(r"SIM P(?:IN|UK)2?|PH-.*", re.IGNORECASE)
_STATUS_WORDS = re.compile(r"[0-9A-Fa-f]{4}")
# STATUS, GET RESPONSE, READ, and SELECT by file or by name: ISO 7816-4, ETSI TS 102 221. Each has a
# length of its own, so that no damaged byte makes one of VERIFY or AUTHENTICATE.
_HARMLESS_APDU = re.compile(
    r"(?i)[0-9a-f]{2}(?:(?:b0|b2|c0|f2)[0-9a-f]{6}|a4[0-9a-f]{4}02[0-9a-f]{4}"
    r"|a404[0-9a-f]{4}a0[0-9a-f]{0,32})"
)
_PUBLIC_CONTENT = "-----BEGIN "
_PUBLIC_SETTINGS = frozenset(
    {
        *("cacert", "clientcert", "clientkey", "ciphersuite", "sslversion", "ctxindex", "protocol"),
        *("apn", "cid", "contype", "conid", "srvtype", "contextid", "keeptime", "clientid", "qos"),
        *("filetype", "transmode", "timeout", "content", "bodylen", "headerlen", "cleanss"),
    }
)
"""Settings of many makers, in small letters, that hold no secret."""
_PIN_OR_PUK = re.compile(r"[0-9]{4,8}", re.ASCII)


def _places(most: int, hidden: Hidden, *, texts: Sequence[int] = ()) -> Rule:
    """Return the rule of a form of up to `most` parameters with secrets in these places.

    A text in quotes that stands neither there nor at `texts` may be a secret in a wrong place.
    """

    def rule(given: Sequence[Parameter]) -> Hidden | None:
        return hidden if _fits(given, most, (*hidden, *texts)) else None

    return rule


def _fits(given: Sequence[Parameter], most: int, texts: Sequence[int]) -> bool:
    """Return whether there are up to `most` parameters, with texts in these places alone."""
    return len(given) <= most and all(
        index in texts for index, item in enumerate(given) if item.quoted and item.text
    )


def _texts(
    name: str, *, data: int = 1 << 30, harmless: re.Pattern[str] | None = None
) -> Callable[[Sequence[Parameter]], Hidden]:
    """Return the rule that hides all but short bare numbers and texts that are `harmless`.

    Whatever stands from `data` on is hidden.
    """

    def shows(item: Parameter) -> bool:
        if harmless is not None and harmless.fullmatch(item.text):
            return True
        return not item.quoted and _SHORT_NUMBER.fullmatch(item.text) is not None

    return lambda given: {
        index: name for index, item in enumerate(given) if index >= data or not shows(item)
    }


def _credential_write(given: Sequence[Parameter]) -> Hidden | None:
    """%CMNG=<op>[,<tag>[,<type>[,<content>[,<password>]]]]; only op 0 writes."""
    operation = _number(given, 0)
    if operation in {"1", "2", "3"} and len(given) <= 3:
        return {}
    if operation not in {"0", ""} or not _fits(given, 5, (3, 4)):
        return None
    return {**_content(given), 4: "password"}


def _credential_read(given: Sequence[Parameter]) -> Hidden | None:
    """%CMNG: <tag>,<type>[,<sha>[,<content>]]."""
    return _content(given, kind=1) if _fits(given, 4, (2, 3)) else None


def _content(given: Sequence[Parameter], *, kind: int = 2) -> Hidden:
    number = _number(given, kind)
    content = given[3].text.lstrip() if len(given) > 3 else ""
    if number in _PUBLIC_TYPES and (not content or content.startswith(_PUBLIC_CONTENT)):
        return {}
    return {3: "psk-identity" if number == _PSK_IDENTITY else "key"}


def _mqtt_connect(given: Sequence[Parameter]) -> Hidden | None:
    """#XMQTTCON=<op>[,<user>,<password>,<host>,<port>[,<tag>]]; once a client id came first."""
    if len(given) <= 1:
        return {}
    for first, most in ((1, 6), (2, 7)):
        has_port = _SHORT_NUMBER.fullmatch(_number(given, first + 3))
        if has_port and _fits(given, most, range(1, first + 3)):
            return {**dict.fromkeys(range(1, first + 1), "user"), first + 1: "password"}
    return None


def _carrier(given: Sequence[Parameter]) -> Hidden:
    """#XCARRIER=<operation>,...: SM hides the data of two; a number of another tells nothing."""
    is_data = bool(given) and given[0].text.lower() in {"app_data_set", "log_data"}
    rule = _all("payload") if is_data else _texts("payload")
    return {index: name for index, name in rule(given).items() if index}


def _setting(at: int = 0) -> Rule:
    """Return the rule of <name>,<value>...: the name stands at `at`; a short number is no login."""

    def rule(given: Sequence[Parameter]) -> Hidden:
        if len(given) > at + 1 and given[at].text.lower() in _PUBLIC_SETTINGS:
            return {}
        named = len(given) > at + 1 or at == 0
        return {i: name for i, name in _texts("value")(given).items() if i != at or not named}

    return rule


def _read(rule: Rule) -> Rule:
    """Return the rule of an answer that has its command's form, or results, which are numbers."""

    def of_answer(given: Sequence[Parameter]) -> Hidden | None:
        hidden = rule(given)
        return hidden and {
            index: name
            for index, name in hidden.items()
            if index < len(given)
            and (given[index].quoted or not _SHORT_NUMBER.fullmatch(given[index].text))
        }

    return of_answer


def _modem_update(given: Sequence[Parameter]) -> Hidden | None:
    """%NRFCLOUDFOTA=0,<key>,<hardware>,<type>,<version>, =1,<chunk>, =2 and =3,<key>."""
    operation = _number(given, 0)
    if operation == "1" and _fits(given, 2, ()):
        return {}
    known = _fits(given, 5, (1, 2, 3, 4)) if operation == "0" else _fits(given, 2, (1,))
    return {1: "project-key"} if known else None


def _apdu(given: Sequence[Parameter]) -> Hidden | None:
    """+CSIM=<length>,<command>, +CGLA=<session>,<length>,<command>."""
    return _texts("apdu", harmless=_HARMLESS_APDU)(given) if len(given) <= 3 else None


def _apdu_answer(given: Sequence[Parameter]) -> Hidden | None:
    """Status words alone say nothing; keys, and what files hold, come before them."""
    return _texts("apdu", harmless=_STATUS_WORDS)(given) if len(given) <= 3 else None


def _pin_retries(given: Sequence[Parameter]) -> Hidden:
    """+CPINR=<code>: the name of a code, unless someone gave the code itself."""
    return {i: "pin" for i, item in enumerate(given) if not _SIM_CODE.fullmatch(item.text)}


def _pins(given: Sequence[Parameter]) -> Hidden:
    return {i: "pin" for i, item in enumerate(given) if item.quoted or _PIN_OR_PUK.match(item.text)}


def _all(name: str) -> Callable[[Sequence[Parameter]], Hidden]:
    return lambda given: dict.fromkeys(range(len(given)), name)


def _number(given: Sequence[Parameter], index: int) -> str:
    """Return the digits of a parameter without leading zeros, else its text."""
    text = given[index].text.strip() if index < len(given) else ""
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


_WIFI_JOIN = _places(16, {1: "password", 2: "bssid"}, texts=(0,))
_WIFI_SERVE = _places(16, {1: "password"}, texts=(0,))
_WIFI_ENTERPRISE = _places(16, {2: "user", 3: "user", 4: "password"}, texts=(0,))
_CONTEXT_LOGIN = _places(4, {2: "user", 3: "password"})  # some makers swap the two
_HTTP_LOGIN = _places(12, {4: "user", 5: "password"}, texts=(1,))

_OF_OTHER_MAKERS: Mapping[str, Rule] = {
    "+QICSGP": _places(6, {3: "user", 4: "password"}, texts=(2,)),
    "+QMTCONN": _places(4, {2: "user", 3: "password"}, texts=(1,)),
    "+CSTT": _places(3, {1: "user", 2: "password"}, texts=(0,)),
    "+CMQTTCONNECT": _places(6, {4: "user", 5: "password"}, texts=(1,)),
    "+CNCFG": _places(6, {3: "user", 4: "password"}, texts=(2,)),
    "+UAUTHREQ": _places(4, {2: "password", 3: "user"}),
    "$QCPDPP": _places(4, {2: "password", 3: "user"}),
    "^AUTHDATA": _places(5, {3: "password", 4: "user"}, texts=(2,)),
    "#SGACT": _places(4, {2: "user", 3: "password"}),
    "#FTPOPEN": _places(4, {1: "user", 2: "password"}, texts=(0,)),
    "#MQCONN": _places(6, {2: "user", 3: "password"}, texts=(1,)),
    "+SQNSMQTTCFG": _places(5, {2: "user", 3: "password"}, texts=(1,)),
    "+FTPUN": _places(1, {0: "user"}),
    "+FTPPW": _places(1, {0: "password"}),
    "#PDPAUTH": _CONTEXT_LOGIN,
    "#USERID": _places(1, {0: "user"}),
    "#PASSW": _places(1, {0: "password"}),
    "#HTTPCFG": _HTTP_LOGIN,
    "+CGSOCKAUTH": _CONTEXT_LOGIN,
    "+CFTPSLOGIN": _places(5, {2: "user", 3: "password"}, texts=(0,)),
    "+CFTPUN": _places(1, {0: "user"}),
    "+CFTPPW": _places(1, {0: "password"}),
    "+SMTPAUTH": _places(3, {1: "user", 2: "password"}),
    "+QFTPUSER": _places(1, {0: "user"}),
    "+QFTPPASS": _places(1, {0: "password"}),
    "+USECMNG": _places(5, {4: "password"}, texts=(2, 3)),
    "+KCNXCFG": _places(9, dict.fromkeys(range(3, 9), "password"), texts=(1, 2)),
    "+QIREGAPP": _places(4, {1: "user", 2: "password"}, texts=(0,)),
    "+XGAUTH": _CONTEXT_LOGIN,
    "+MGAUTH": _CONTEXT_LOGIN,
    "^SGAUTH": _CONTEXT_LOGIN,
    "+WPPP": _CONTEXT_LOGIN,
    "+ZGPCOAUTH": _places(4, {1: "user", 2: "password"}),
    "%IPDPCFG": _places(5, {3: "user", 4: "password"}),
    "*EIAAUW": _places(6, {2: "user", 3: "password"}),
    "%CGPCO": _texts("password"),  # with the user in one text
    "#TCPATRUNAUTH": _texts("password"),
    "#EUSER": _places(1, {0: "user"}),
    "#EPASSW": _places(1, {0: "password"}),
    "+CSMTPSAUTH": _places(3, {1: "user", 2: "password"}),
    "+SQNHTTPCFG": _HTTP_LOGIN,
    "+KMQTTCFG": _places(16, {12: "user", 13: "password"}, texts=(1, 4, 8, 9, 15)),
    "+MQTTUSERCFG": _places(8, {3: "user", 4: "password"}, texts=(2, 7)),
    "+MQTTUSERNAME": _places(2, {1: "user"}),
    "+MQTTPASSWORD": _places(2, {1: "password"}),
    "+QSETPSK": _places(2, {0: "psk-identity", 1: "key"}),
    "^SLCK": _places(4, {2: "pin"}, texts=(0,)),
    "^SPWD": _places(3, {1: "pin", 2: "pin"}, texts=(0,)),
    "^CARDLOCK": _places(3, {0: "pin"}),
    "#DWCFG": _places(9, {2: "value"}, texts=(0,)),
    # What is set stands before its value: a login, or an address and the like.
    "+QFTPCFG": _setting(),
    "+QHTTPCFG": _setting(),
    "+QMTCFG": _setting(),
    "+QSMTPCFG": _setting(),
    "+SMCONF": _setting(),
    "+SHCONF": _setting(),
    "+HTTPPARA": _setting(),
    "+SAPBR": _setting(2),
    "+UPSD": _places(3, {2: "value"}),
    "+UHTTP": _places(4, {2: "value", 3: "value"}),
    "+UFTP": _places(3, {1: "value", 2: "value"}),
    "+USECPRF": _places(4, {2: "value", 3: "value"}),
    "+UMQTT": _places(5, dict.fromkeys(range(1, 5), "value")),
    "+UMQTTSN": _places(5, dict.fromkeys(range(1, 5), "value")),
    "+UWSC": _places(4, {2: "value", 3: "value"}),
    "+UWSSW": _places(3, {1: "password"}),
    "+USMTP": _setting(),
    "^SICS": _setting(1),
    "^SISS": _setting(1),
    "+SHAHEAD": _places(2, {1: "value"}, texts=(0,)),
    "+SHPARA": _places(2, {1: "value"}, texts=(0,)),
    "+QLWCFG": _setting(),
    "+QSSLCFG": _setting(),
    "+CSSLCFG": _setting(),
    "+QIOTCFG": _setting(),
    "%MQTTCFG": _setting(),
    "%CERTCFG": _setting(),
    "%PDNSET": _places(8, dict.fromkeys(range(3, 8), "value"), texts=(1, 2)),
    "+QLWCONFIG": _places(12, {7: "psk-identity", 8: "key"}, texts=(1, 3, 5)),
    "+QSECSWT": _texts("key"),
    "+SQNSPCFG": _places(14, {7: "key", 8: "psk-identity"}, texts=(2,)),
    "+CWSTARTSMART": _texts("password"),
    "+BTSECPARAM": _places(3, {2: "pin"}),
}
"""Of modems that `modem import` reads logs of, too."""

SET: Mapping[str, Rule] = {
    # SIM and network. SM: +CPIN +CPINR +CPWD +CLCK +CGAUTH %XUSIMLCK
    "+CPIN": _places(2, {0: "pin", 1: "pin"}),
    "+CPINR": _pin_retries,
    "+CPWD": _places(3, {1: "pin", 2: "pin"}, texts=(0,)),
    "+CLCK": _places(4, {2: "pin"}, texts=(0,)),
    "+CGAUTH": _CONTEXT_LOGIN,
    "+CSIM": _apdu,
    "+CGLA": _apdu,
    "+CRSM": _places(7, {5: "apdu", 6: "path"}),
    "+CUSD": _places(3, {1: "message"}),
    "%XUSIMLCK": _all("pin"),
    # Credentials. SM: %CMNG %KEYINJECT %XPMNG %XSUDO
    "%CMNG": _credential_write,
    "#XCMNG": _credential_write,
    "%KEYINJECT": _all("key"),
    "%XPMNG": _places(2, {1: "public-key"}),
    "%XSUDO": _texts("signature"),
    # Payloads of Serial Modem. SM: all of them
    "+CMGS": _texts("message"),
    "+CMGSEX": _texts("message"),  # of SIMCom
    "+CMGW": _texts("message"),
    "#XSMS": _texts("message"),
    "#XMQTTCON": _mqtt_connect,
    "#XMQTTPUB": _texts("payload", data=1),
    "#XMQTTSUB": _texts("payload"),
    "#XHTTPCREQ": _texts("payload"),
    "#XCOAPCREQ": _texts("payload"),
    "#XSEND": _texts("payload", data=3),
    "#XSENDTO": _texts("payload", data=5),
    "#XTCPSEND": _all("payload"),
    "#XUDPSEND": _all("payload"),
    "#XFTP": _places(8, {1: "payload", 2: "payload"}, texts=(0, 3)),
    "#XCARRIER": _carrier,
    "#XNRFCLOUDOBSAUTO": _texts("project-key"),
    "#XNRFCLOUDOBSUPLOAD": _all("project-key"),
    "#XNRFCLOUDOBSFORWARD": _places(2, {0: "payload", 1: "project-key"}),
    # SM prints this one, although it has a key.
    "#XNRFCLOUDFOTA": _places(2, {1: "project-key"}, texts=(0,)),
    "#XFOTA": _places(4, {1: QUERY}),
    # nRF93M1
    "%HTTPFOTADL": _places(2, {0: QUERY}),
    "%NRFCLOUDFOTA": _modem_update,
    "%NRFCLOUDOBSUPLOAD": _all("project-key"),
    "%NRFCLOUDOBSFORWARD": _all("payload"),
    "%NRFCLOUDMESSAGE": lambda _given: None,  # JSON without quotes around it
    "%NRFCLOUDSHADOW": lambda _given: None,  # any text without quotes
    # Wi-Fi companion
    "+CWJAP": _WIFI_JOIN,
    "+CWJAP_CUR": _WIFI_JOIN,
    "+CWJAP_DEF": _WIFI_JOIN,
    "+CWSAP": _WIFI_SERVE,
    "+CWSAP_CUR": _WIFI_SERVE,
    "+CWSAP_DEF": _WIFI_SERVE,
    "+CWJEAP": _WIFI_ENTERPRISE,
    **_OF_OTHER_MAKERS,
}
"""Name of a command -> the rule of its set form."""

TELLING = (
    r"[+%#^$*][A-Z]{0,14}?(?:PASS(?:W|WD|WORD)?|PS?WD|PSK(?:HEX|ID)?|AUTH[A-Z]{0,6}|SECRET"
    r"|(?<!PUBLIC)(?<!ACCESS)KEY(?:REPLY)?|PINS?[12]?)(?=[ \t]*=)"
)
"""The name of a command that tells by itself that what it sets is secret."""


def rule_of(name: str) -> Rule:
    """Return the rule of a command's set form: its own, or that of a name that tells."""
    return SET.get(name) or (_pins if name.rstrip("S12").endswith("PIN") else _texts("password"))


NOT_DAMAGED = frozenset(
    {
        *("+CMGC", "+CMGD", "+CMGF", "+CMGL", "+CMGR", "+CMTI", "+CDSI", "+CRSL", "+CWLAP"),
        *("+CMMS", "#XNRFCLOUDFOTAAUTO", "#XNRFCLOUDOBSCOREDUMP"),
        *("^SICI", "^SISC", "^SISE", "^SISI", "^SISO", "^SISR", "^SIST", "^SISW", "^SISX", "^SLCC"),
        *("+CMQTTCFG", "+CSTA", "+CSTF", "+SMCONN", "+SHCONN", "+CASSLCFG", "+SQNSCFG"),
        *("%PDNGET", "+UMQTTSNC"),
        *("+UPSDA", "+UPSND", "+UPSV", "+UHTTPC", "+UMQTTC", "+UFTPC", "+UWSCA"),
    }
)
"""Commands without secrets whose names differ by one letter from that of one with them."""

ANSWER: Mapping[str, Rule] = {
    **{name: _read(rule) for name, rule in _OF_OTHER_MAKERS.items()},
    "+CGAUTH": _CONTEXT_LOGIN,
    "%CMNG": _credential_read,
    "#XCMNG": _credential_read,
    "%KEYINJECT": _all("key"),
    "%XPMNG": _texts("public-key"),
    "%XSUDO": _all("signature"),
    "+CSIM": _apdu_answer,
    "+CGLA": _apdu_answer,
    "+CUSD": _places(3, {1: "message"}),
    "+CMT": _texts("message"),
    "+CDS": _texts("message"),
    "#XSMS": _texts("message"),
    "#XNRFCLOUDOBSAUTO": _texts("project-key"),
    "+CWSAP": _WIFI_SERVE,
    "+CWSAP_CUR": _WIFI_SERVE,
    "+CWSAP_DEF": _WIFI_SERVE,
    "+CWJEAP": _WIFI_ENTERPRISE,
    "+QICSGP": _places(5, {2: "user", 3: "password"}, texts=(1,)),
}
"""Name of an answer or notice -> its rule."""
