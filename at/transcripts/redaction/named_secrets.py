"""Hides what a line of a log names as secret: by a word, an option, a header or a program.

The parameters of AT commands are known by their places (at.protocol.redaction). Pure.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from at.protocol.redaction.command_redaction import without_secrets_as_it_stands
from at.protocol.redaction.escaped_text import cleaned_in_each_spelling

_HEADER = re.compile(
    r"(?ai)(authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic) +(?=(?P<word>[^\s\"']))"
    r"|(?:digest|token|aws4-hmac-sha256) +)|cookie[\"']?\s*:\s*[\"']?"
    r"|\bbearer +(?!eyJ)(?=(?P<alone>[a-z0-9][\w~+/=-]{15}))(?=[\w~+/=-]{0,64}?\d))"
    r"(?(word)[^\s\"']+|(?(alone)[\w~+/=-]+|[^\r\n]+))"
)
"""A header that opens something; what is no one word is hidden to the end of its line."""


def _either(words: str) -> set[str]:
    """Return words as text, and as the bytes of UTF-8 that a line of a port has."""
    return {*words.split(), *(word.encode().decode("latin-1") for word in words.split())}


def _spelt(words: str) -> str:
    return "|".join(map(re.escape, sorted(_either(words))))


_ABROAD = (
    "kennwort contraseña senha wachtwoord lösenord heslo hasło salasana passord adgangskode parola"
    " пароль Пароль 密码 密碼 パスワード 비밀번호"
)
_COLON = "=>|->|:=|" + _spelt("\uff1a : =")  # also the colon of Chinese and Japanese
_SAID = (
    r"(?:none|null|\(null\)|nil|yes|no|true|false|enabled|disabled|required|missing|empty|unset|set"
    r"|invalid|incorrect|wrong|expired|mismatch|protection|authentication|too (?:short|long|weak)"
    r"|not (?:set|given|found|required|needed|valid|provided|supplied|configured|specified"
    r"|available|present|used))"
)
"""What a line says of a secret where it does not say the secret itself."""
_NO_MORE = r"[.:)}\]]*(?:[\s,;]|$)"
"""What stands behind such a word; a secret may begin with it."""
# What firmware logs of its own: a password by that name, a message as the modem gave it.
_PASSWORD = re.compile(
    r"(?ai)(?<![a-z0-9+%#^$*])"
    r"((?:[a-z]{0,16}?(?:passwor[dt]|passwd|passphrase|pwd|psk|secret)(?:[ _]key)?"
    r"|pass(?=\"?[:=]\"?[^\W\d])|(?<=_)pass(?=[\"']?\s?[:=]\s?[\"']?[^\W\d]\S{5})"
    r"|(?:(?<=_)pass|(?-i:[a-z]{1,12}Pass))(?=(?:\[\d*\])? *(?:= *)?\")"
    rf"|mot de passe|{_spelt(_ABROAD)}|(?<=\")private_?key(?=\"\s*:)"
    r"|secret_access(?:[ _]key)?|(?:\w{0,24}api|project|device|shared ?access)[ _-]?key"
    r"|(?:private|pre-?shared)[ _-]key(?= *[:=] *(?!-----)(?=\S*\d)\S{8})"
    r"|x-[\w-]{1,24}-(?:key|token)"
    r"|(?:access|auth|refresh)[ _-]?token|token(?=\"?(?:=|:\s?(?!\"?eyJ))\"?[\w.-]{16})"
    r"|token(?=\"?=\"?(?=\w*\d)(?=\w*[a-z])\w{6})|wep_key\d?"
    r"|(?:token|(?-i:[a-z]{1,12}Token))"
    r"(?=[\"']?\s?[:=]\s?[\"']?(?!0x|eyJ)(?=\w*\d)(?=\w*[a-z])[\w-]{10})"
    r"|(?<=[?&])[\w-]*(?:token|sig|signature|key|auth))"
    r"(?:(?: eingeben| for [\w.@-]+)?(?:\[\d*\]|[\"']| ?\(\d+[\w ]{0,8}\))?"
    rf"\s*(?:{_COLON})\s*| +(?=[\"'])|[\"'](?:\s*,\s*\d{{1,3}}){{0,2}}\s*,\s*(?=[\"'])"
    r"|>(?=[^<>\s]+</)"  # AT's settings; XML
    r"|(?<=pass(?:word|wort)) is +(?!in|not|wrong|required|set))"
    rf"(?:Some\()?(?>([\"'])?))(?!\{{redacted|\*+(?:\W|$)|<\w+>|{_SAID}(?(2)\2|{_NO_MORE}))"
    r"(?(2)(?:(?!\2)[^\r\n])+|[^\s\",;&<]+)"
)
_PIN_ABROAD = "ПИН пин"
_CODE_ABROAD = _spelt("код コード 码 碼")
_PIN = re.compile(
    r"(?ai)(?:(?<![a-z0-9])|(?<=sim)|(?<=enter))"
    rf"((?:pin|puk|adm|unlock code|{_spelt(_PIN_ABROAD)})(?:number)?[12]?"
    rf"(?:[ _-]?(?:code|kod[ei]?|koodi|{_CODE_ABROAD}))?(?: is| to| eingeben| string)?"
    rf"[\"']?(?:[ \t,>(]|{_COLON}){{1,3}}(?:string:)?[\"'(]?"
    r"|\b(?:simunlock|\w+\.begin)\((?=[\"'])[\"']|\bumbim\b[^\r\n]{0,60}?\bunlock +"
    r"|\b(?:quectel|simcom|fibocom)-(?:cm|dial)\b[^\r\n]{0,80}? -p +)"
    r"[0-9]{4,8}(?:,[0-9]{4,8})*(?![\w.-])"
)
# What a shell of Zephyr stores, says that it stores, or is told to use.
_STORED = re.compile(
    r"(?ai)((?:\bsettings (?:set|write \w+) +[\w/.-]*(?:psk|pass\w*|pwd|auth|key|secret|token)"
    r"|\blwm2m write +/?0/\d+/[35](?: +-\w+)?"
    r"|\bsetting [\w/.-]*(?:psk|pass\w*|pwd|secret|token) (?:to|saved as)"
    r"|~\$ (?!cred )[^\r\n]{0,40}?\b(?:psk|pass\w*|pwd|secret|token)(?: +set)?) +)[^\s{]\S*"
)
# What a host gives a program: as an option, a setting, or in words.
_GIVEN = re.compile(
    r"(?ai)((?<!\S)--?[\w-]{0,24}(?:pass(?:word|wd|phrase)?|pw|psk|secret|token|api-?key"
    r"|psk-?key|project-key) +"
    r"|\bgsm\.password +|\bwith (?:password|passphrase|psk) +|\bwpa_passphrase +\S+ +"
    r"|\b(?:user(?:name)?|ssid|connect) +(?!and\b|or\b)\S+ +password +"
    r"|(?<![a-z0-9])(?:passwor[dt]|passwd|passphrase|psk(?: set)?|(?:api ?|shared )key)"
    r" +[(\[<]?(?=\S*\d)(?=\S*[a-z])(?=[^\s:().]{8})"
    r"|\b(?:device|auth|access|api|claim|refresh|session) token +(?!eyJ)(?=\S*\d)(?=\S*[a-z])"
    r"(?=[\w~+/=-]{16})|\b(?:user(?:name)?|login)[ :=]+[^\s,]{1,99},? +pass +"
    r"(?!(?:through|the|to|on|in|by|it|all|and|with|for|as|over|from|into|an?|again)"
    rf"{_NO_MORE})"
    r"|\bauth plain +(?=\S{8})|\bsshpass -p *"
    r"|\b(?:mysql|mariadb)[\w-]{0,16} [^\r\n]{0,80}?(?<=\s)-p(?=\S)"
    r"|\bnetsh [^\r\n]{0,120}?\bkey(?:material)?=(?!clear\b)|\bkey content *: *"
    r"|\b(?:user(?:name)?|login) ?/ ?pass(?:word)?[ :=]{1,3}[^\s/]+ ?/ ?"
    r"|\b(?:user|ssid|apn)\b[^\r\n]{0,80}?\bpass *[:=] +"
    r"|(?:(?:>|\b(?:request|command):) |^(?=PASS +(?![-:])[^\s/]+\s*$))(?-i:PASS) +)"  # FTP's
    rf"(?!{_SAID}{_NO_MORE})[^\s{{-][^\s,;]*"
)
_IN_PLACE = re.compile(
    r"(?ai)(\bumbim\b[^\r\n]{0,60}?\bconnect +\S+ +\S+ +"
    r"|\b(?:quectel|simcom|fibocom)-(?:cm|dial)\b[^\r\n]{0,80}? -s +\S+ +(?!-)"
    r"|(?:\bcoap-client\S*|-s psk) [^\r\n]{0,120}?(?<=\s)-k +"
    r"|\bdocker login [^\r\n]{0,80}?(?<=\s)-p +"
    r"|\b(?:wifi\.begin|(?:wlan|mqtt\w*)\.connect|gprsconnect|username_pw_set)\([^,()]*, *)"
    r"(?!\{)[^\r\n)]+?(?=$|[\r\n)]| -)"
)
"""Programs and libraries that take a login without a name for it, behind a network or an APN."""
_SHORT_OPTION = re.compile(
    r"((?<!\S)-P +(?!\d+(?:\s|$))|(?<!\S)(?:-u *|--user[ =]+)[^\s:]+:(?!//))[^\s{-]\S*", re.ASCII
)
"""As mosquitto, chat, curl and nRF91's modem shell take a password."""
_KEY = re.compile(
    r"(?ai)((?<!public[ _-])(?<!pub)(?<!pub_)(?<!cache )(?:key|psk|secret)"
    r"(?:_?(?:\d|hex|b(?:ase)?64))?"
    rf"(?:[\"']?\s*(?:{_COLON})\s*| )b?[\"'{{\[]?)(?!(?-i:MFkw))"
    r"(?:[0-9a-f]{2}(?:[ :-][0-9a-f]{2}){7,}|0x[0-9a-f]{2}(?:[, ]{1,2}0x[0-9a-f]{2}){7,}"
    r"|(?:0x)?(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{16,}(?<!0x[0-9a-f]{16})"
    r"|(?-i:(?=[\w+/-]{0,64}?[a-z])(?=[\w+/-]{0,64}?[A-Z]))"
    r"(?:(?=(?:[a-z+/_-]{0,20}\d){4})[\w+/-]{22,}={0,2}|[a-z0-9+/]{20,}={1,2}))(?![\w/=-])"
)
"""A key of any name, by what it looks like: hex or base64. A public one is none."""
_ISSUED = re.compile(
    r"\b(?:gh[pousr]_|github_pat_|glpat-|oat_|xox[abprs]-)[\w-]{16,}"
    r"|(?<=/api/v1/)[A-Za-z0-9]{16,}(?=/(?:telemetry|attributes|rpc|claim|firmware)\b)"
    r"|(?<=/bot)[0-9]{6,}:[\w-]{20,}|(?<=hooks\.slack\.com/services/)[\w/]+",
    re.ASCII,
)
"""Tokens that their issuer's mark tells, and those in the path of a service's address."""
_SCANNED = re.compile(
    r"(?ai)(\bwifi:(?:[^;:\s]{1,2}:[^;\s]{0,64};){0,3}?p:|\blpa:1\$[^$\s]{0,64}\$)[^;\s\"'{]+"
)
"""What a camera reads: a Wi-Fi's password, the code that gets a SIM's profile."""
_SIM_KEY = re.compile(
    r"(?ai)(?<![a-z0-9])((?:ki|opc?|k(?=[:=]))[ :=]{1,3})[0-9a-f]{32}(?![0-9a-z])"
)
_SIM_PROFILE = re.compile(r"(?ai)(?<![0-9a-z])01120[89][0-9a-f]{16}0214[0-9a-f]{20,}")
"""The profile of a SoftSIM: behind IMSI and card number, in hex with its length, come the keys."""
_PROFILE = re.compile(
    r"(?a)(\brequest[GS]etProfile\[[^\]]{0,40}\] [^/\s]{0,100}/)(?!//\d)\S*(?=/\d)"
)
"""As Quectel's connection manager logs the APN, its user, its password and more."""
_CHAP_SECRET = re.compile(r"(?a)([\w\"][ \t]{1,20}\*[ \t]{1,20}\")[^\"{\r\n]+(?=\")")
"""As pppd's chap-secrets has it, behind a name and a server."""
_LOGIN = re.compile(r"(?<=://)[^/\s@\"]*:[^/\s@\"]*(?=@)")
_PDU = re.compile(r"(?ai)\b(?:sms|pdu)\b[^0-9a-f\r\n]{1,20}([0-9a-f]{24,})(?![0-9a-z])")

_APDU = re.compile(
    r"(?ai)(?P<lead>\bapdu\b[ _:-]{0,3}(?:(?P<asked>req(?:uest)?|c(?:omman|m)d)"
    r"|(?P<answer>r(?:e?sp|esponse)))?\W{0,4})"
    r"(?P<bytes>(?:[0-9a-f]{2} ?){8,}[0-9a-f]?)(?![0-9a-z])"
)
"""As firmware with a SIM of its own logs it: files, PINs and keys are behind its header."""


class _Named(NamedTuple):
    """What is secret behind some name, and what is shown for it."""

    signs: tuple[str, ...]
    """A line without any of these, in small letters, has none: most lines."""
    secrets: tuple[re.Pattern[str], ...]
    shown: str | Callable[[re.Match[str]], str]


def _digits_hidden(pdu: re.Match[str]) -> str:
    return pdu[0].replace(pdu[1], "0" * len(pdu[1]))


def _data_hidden(apdu: re.Match[str]) -> str:
    data = apdu["bytes"]
    zeros = re.sub("[^ ]", "0", data)
    if apdu["asked"]:
        return f"{apdu['lead']}{data[:8]}{zeros[8:]}"
    return f"{apdu['lead']}{zeros[:-4]}{data[-4:] if apdu['answer'] else zeros[-4:]}"


_IN_WORDS = (
    *("pass", "pwd", "psk", "secret", "key", "token", "sig", "--pw", "auth plain"),
    *("mysql", "mariadb", "lwm2m write", "settings ", "auth="),
    *sorted(map(str.lower, _either(_ABROAD))),
)
_ROWS = (
    _Named(("uthorization", "cookie", "bearer "), (_HEADER,), r"\1{redacted:token}"),
    _Named(("key", "psk", "secret"), (_KEY,), r"\1{redacted:key}"),
    _Named(_IN_WORDS, (_PASSWORD, _STORED, _GIVEN), r"\1{redacted:password}"),
    _Named(
        ("gh", "glpat-", "oat_", "xox", "/api/v1/", "/bot", "/services/"),
        (_ISSUED,),
        "{redacted:token}",
    ),
    _Named(("wifi:", "lpa:1$"), (_SCANNED,), r"\1{redacted:password}"),
    _Named((" -p ", " -u", "--user"), (_SHORT_OPTION,), r"\1{redacted:password}"),
    _Named(
        ("connect", "-cm", "-dial", "i.begin", "pw_set", " -k ", "docker login"),
        (_IN_PLACE,),
        r"\1{redacted:password}",
    ),
    _Named(
        ("pin", "puk", "adm", "unlock", "begin", "-cm ", *map(str.lower, _either(_PIN_ABROAD))),
        (_PIN,),
        r"\1{redacted:pin}",
    ),
    _Named(("ki", "op", "k:", "k="), (_SIM_KEY,), r"\1{redacted:key}"),
    _Named(("01120",), (_SIM_PROFILE,), "{redacted:key}"),
    _Named(("etprofile[",), (_PROFILE,), r"\1{redacted:password}"),
    _Named(("* ", "*\t"), (_CHAP_SECRET,), r"\1{redacted:password}"),
    _Named(("://",), (_LOGIN,), "{redacted:password}"),
    _Named(("apdu",), (_APDU,), _data_hidden),
    _Named(("sms", "pdu"), (_PDU,), _digits_hidden),
)
_ROWS_IN_ASCII = tuple(row._replace(signs=tuple(filter(str.isascii, row.signs))) for row in _ROWS)


def without_logged_secrets(text: str) -> str:
    """Return a line of a log without the secrets of commands and answers, and those it names."""
    return cleaned_in_each_spelling(text, _without_named)


def _without_named(text: str) -> str:
    text = without_secrets_as_it_stands(text)
    lowered = text.lower()
    for signs, secrets, shown in _ROWS_IN_ASCII if text.isascii() else _ROWS:
        if any(map(lowered.__contains__, signs)):  # each line, by each sign
            for secret in secrets:
                text = secret.sub(shown, text)
    return text
