"""Which parameters of which commands and answers are secret: the one table. Pure data.

Logs, messages, recordings and imports all hide by it: see `command_redaction`. Its rules are of the
kinds of `rules`; what other makers' modems have is in `other_makers`. An empty value, and a
manual's word for one (<pin>), is no secret.

Sources: Serial Modem's own log, which leaves out the text of what is marked SM here; Nordic's
references of nRF91 and nRF93M1; 3GPP TS 27.007 (+CGAUTH, +CLCK, +CPIN, +CPWD, +CRSM, +CSIM, +CUSD)
and 27.005 (+CMGS, +CMT); Espressif's ESP-AT (+CW...).
"""

import re
from collections.abc import Mapping, Sequence

from at.protocol.redaction.other_makers import CONTEXT_LOGIN, OF_OTHER_MAKERS
from at.protocol.redaction.rules import (
    SHORT_NUMBER,
    Hidden,
    Parameter,
    Rule,
    all_but_numbers,
    everything,
    fits,
    number_of,
    pins,
    places,
    read_back,
)

QUERY = "query"
"""Of an address: only its query is hidden, and the password before its host, if it has one."""

# Credential types of %CMNG that others may know: certificates and public keys.
_PUBLIC_TYPES = frozenset({"0", "1", "5", "6", "10", "11"})
_PSK_IDENTITY = "4"
_SIM_CODE = re.compile(r"SIM P(?:IN|UK)2?|PH-.*", re.IGNORECASE)
# Alone they say nothing; keys, and what files hold, come before them.
_STATUS_WORDS = re.compile(r"[0-9A-Fa-f]{4}")
# STATUS, GET RESPONSE, READ, and SELECT by file or by name: ISO 7816-4, ETSI TS 102 221. Each has a
# length of its own, so that no damaged byte makes one of VERIFY or AUTHENTICATE.
_HARMLESS_APDU = re.compile(
    r"(?i)[0-9a-f]{2}(?:(?:b0|b2|c0|f2)[0-9a-f]{6}|a4[0-9a-f]{4}02[0-9a-f]{4}"
    r"|a404[0-9a-f]{4}a0[0-9a-f]{0,32})"
)
_PUBLIC_CONTENT = "-----BEGIN "


def _credential_write(given: Sequence[Parameter]) -> Hidden | None:
    """%CMNG=<op>[,<tag>[,<type>[,<content>[,<password>]]]]; only op 0 writes."""
    operation = number_of(given, 0)
    if operation in {"1", "2", "3"} and len(given) <= 3:
        return {}
    if operation not in {"0", ""} or not fits(given, 5, (3, 4)):
        return None
    return {**_content(given), 4: "password"}


def _credential_read(given: Sequence[Parameter]) -> Hidden | None:
    """%CMNG: <tag>,<type>[,<sha>[,<content>]]."""
    return _content(given, kind=1) if fits(given, 4, (2, 3)) else None


def _content(given: Sequence[Parameter], *, kind: int = 2) -> Hidden:
    number = number_of(given, kind)
    content = given[3].text.lstrip() if len(given) > 3 else ""
    if number in _PUBLIC_TYPES and (not content or content.startswith(_PUBLIC_CONTENT)):
        return {}
    return {3: "psk-identity" if number == _PSK_IDENTITY else "key"}


def _mqtt_connect(given: Sequence[Parameter]) -> Hidden | None:
    """#XMQTTCON=<op>[,<user>,<password>,<host>,<port>[,<tag>]]; once a client id came first."""
    if len(given) <= 1:
        return {}
    for first, most in ((1, 6), (2, 7)):
        has_port = SHORT_NUMBER.fullmatch(number_of(given, first + 3))
        if has_port and fits(given, most, range(1, first + 3)):
            return {**dict.fromkeys(range(1, first + 1), "user"), first + 1: "password"}
    return None


def _carrier(given: Sequence[Parameter]) -> Hidden:
    """#XCARRIER=<operation>,...: SM hides the data of two; a number of another tells nothing."""
    is_data = bool(given) and given[0].text.lower() in {"app_data_set", "log_data"}
    rule = everything("payload") if is_data else all_but_numbers("payload")
    return {index: name for index, name in rule(given).items() if index}


def _modem_update(given: Sequence[Parameter]) -> Hidden | None:
    """%NRFCLOUDFOTA=0,<key>,<hardware>,<type>,<version>, =1,<chunk>, =2 and =3,<key>."""
    operation = number_of(given, 0)
    if operation == "1" and fits(given, 2, ()):
        return {}
    known = fits(given, 5, (1, 2, 3, 4)) if operation == "0" else fits(given, 2, (1,))
    return {1: "project-key"} if known else None


def _apdu(harmless: re.Pattern[str]) -> Rule:
    """+CSIM=<length>,<command>, +CGLA=<session>,<length>,<command>, and the answers to them."""
    rule = all_but_numbers("apdu", harmless=harmless)
    return lambda given: rule(given) if len(given) <= 3 else None


def _pin_retries(given: Sequence[Parameter]) -> Hidden:
    """+CPINR=<code>: the name of a code, unless someone gave the code itself."""
    return {i: "pin" for i, item in enumerate(given) if not _SIM_CODE.fullmatch(item.text)}


_WIFI_SERVE = dict.fromkeys(
    ("+CWSAP", "+CWSAP_CUR", "+CWSAP_DEF"), places(16, {1: "password"}, texts=(0,))
)
_WIFI_ENTERPRISE = places(16, {2: "user", 3: "user", 4: "password"}, texts=(0,))
SET: Mapping[str, Rule] = {
    # SIM and network. SM: +CPIN +CPINR +CPWD +CLCK +CGAUTH %XUSIMLCK
    "+CPIN": places(2, {0: "pin", 1: "pin"}),
    "+CPINR": _pin_retries,
    "+CPWD": places(3, {1: "pin", 2: "pin"}, texts=(0,)),
    "+CLCK": places(4, {2: "pin"}, texts=(0,)),
    "+CGAUTH": CONTEXT_LOGIN,
    "+CSIM": _apdu(_HARMLESS_APDU),
    "+CGLA": _apdu(_HARMLESS_APDU),
    "+CRSM": places(7, {5: "apdu", 6: "path"}),
    "+CUSD": places(3, {1: "message"}),
    "%XUSIMLCK": everything("pin"),
    # Credentials. SM: %CMNG %KEYINJECT %XPMNG %XSUDO
    "%CMNG": _credential_write,
    "#XCMNG": _credential_write,
    "%KEYINJECT": everything("key"),
    "%XPMNG": places(2, {1: "public-key"}),
    "%XSUDO": all_but_numbers("signature"),
    # Payloads of Serial Modem. SM: all of them
    "+CMGS": all_but_numbers("message"),
    "+CMGSEX": all_but_numbers("message"),  # of SIMCom
    "+CMGW": all_but_numbers("message"),
    "#XSMS": all_but_numbers("message"),
    "#XMQTTCON": _mqtt_connect,
    "#XMQTTPUB": all_but_numbers("payload", data=1),
    "#XMQTTSUB": all_but_numbers("payload"),
    "#XHTTPCREQ": all_but_numbers("payload"),
    "#XCOAPCREQ": all_but_numbers("payload"),
    "#XSEND": all_but_numbers("payload", data=3),
    "#XSENDTO": all_but_numbers("payload", data=5),
    "#XTCPSEND": everything("payload"),
    "#XUDPSEND": everything("payload"),
    "#XFTP": places(8, {1: "payload", 2: "payload"}, texts=(0, 3)),
    "#XCARRIER": _carrier,
    "#XNRFCLOUDOBSAUTO": all_but_numbers("project-key"),
    "#XNRFCLOUDOBSUPLOAD": everything("project-key"),
    "#XNRFCLOUDOBSFORWARD": places(2, {0: "payload", 1: "project-key"}),
    # SM prints this one, although it has a key.
    "#XNRFCLOUDFOTA": places(2, {1: "project-key"}, texts=(0,)),
    "#XFOTA": places(4, {1: QUERY}),
    # nRF93M1
    "%HTTPFOTADL": places(2, {0: QUERY}),
    "%NRFCLOUDFOTA": _modem_update,
    "%NRFCLOUDOBSUPLOAD": everything("project-key"),
    "%NRFCLOUDOBSFORWARD": everything("payload"),
    "%NRFCLOUDMESSAGE": lambda _given: None,  # JSON without quotes around it
    "%NRFCLOUDSHADOW": lambda _given: None,  # any text without quotes
    # Wi-Fi companion
    **dict.fromkeys(
        ("+CWJAP", "+CWJAP_CUR", "+CWJAP_DEF"), places(16, {1: "password", 2: "bssid"}, texts=(0,))
    ),
    **_WIFI_SERVE,
    "+CWJEAP": _WIFI_ENTERPRISE,
    **OF_OTHER_MAKERS,
}
"""Name of a command -> the rule of its set form."""

TELLING = (
    r"[+%#^$*][A-Z]{0,14}?(?:PASS(?:W|WD|WORD)?|PS?WD|PSK(?:HEX|ID)?|AUTH[A-Z]{0,6}|SECRET"
    r"|(?<!PUBLIC)(?<!ACCESS)KEY(?:REPLY)?|PINS?[12]?)(?=[ \t]*=)"
)
"""The name of a command that tells by itself that what it sets is secret."""


def rule_of(name: str) -> Rule:
    """Return the rule of a command's set form: its own, or that of a name that tells."""
    return SET.get(name) or (
        pins if name.rstrip("S12").endswith("PIN") else all_but_numbers("password")
    )


NOT_DAMAGED = frozenset(
    {
        *("+CMGC", "+CMGD", "+CMGF", "+CMGL", "+CMGR", "+CMTI", "+CDSI", "+CRSL", "+CWLAP"),
        *("+CPING", "+USIM"),  # of SIMCom, of Neoway
        *("+CMMS", "#XNRFCLOUDFOTAAUTO", "#XNRFCLOUDOBSCOREDUMP"),
        *("^SICI", "^SISC", "^SISE", "^SISI", "^SISO", "^SISR", "^SIST", "^SISW", "^SISX", "^SLCC"),
        *("+CMQTTCFG", "+CSTA", "+CSTF", "+SMCONN", "+SHCONN", "+CASSLCFG", "+SQNSCFG"),
        *("%PDNGET", "+UMQTTSNC"),
        *("+UPSDA", "+UPSND", "+UPSV", "+UHTTPC", "+UMQTTC", "+UFTPC", "+UWSCA"),
        *("+UBTUB", "+UBTUC", "+UBTLE"),
    }
)
"""Commands without secrets whose names differ by one letter from that of one with them."""

ANSWER: Mapping[str, Rule] = {
    **{name: read_back(rule) for name, rule in OF_OTHER_MAKERS.items()},
    "+CGAUTH": CONTEXT_LOGIN,
    "%CMNG": _credential_read,
    "#XCMNG": _credential_read,
    "%KEYINJECT": everything("key"),
    "%XPMNG": all_but_numbers("public-key"),
    "%XSUDO": everything("signature"),
    "+CSIM": _apdu(_STATUS_WORDS),
    "+CGLA": _apdu(_STATUS_WORDS),
    "+CUSD": places(3, {1: "message"}),
    "+CMT": all_but_numbers("message"),
    "+CDS": all_but_numbers("message"),
    "#XSMS": all_but_numbers("message"),
    "#XNRFCLOUDOBSAUTO": all_but_numbers("project-key"),
    **_WIFI_SERVE,
    "+CWJEAP": _WIFI_ENTERPRISE,
    "+QICSGP": places(5, {2: "user", 3: "password"}, texts=(1,)),
}
"""Name of an answer or notice -> its rule."""
