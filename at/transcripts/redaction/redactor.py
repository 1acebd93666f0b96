"""Redaction of recordings: secret parameters, tokens, keys, the device's identity.

A value that the driver reads keeps its shape, so that a redacted session still plays: a token keeps
its claims and loses its signature, an identity is replaced by a made-up one (`identity`).
Secret parameters (at.protocol.redaction) become `{redacted:…}`, which a replay lets stand for any
text.
"""

import re

from at.protocol.line.answer_or_notice import (
    ONE_SHAPE,
    command_name,
    line_name,
    looks_like_notice,
    owner_of,
)
from at.protocol.line.items import final_result
from at.protocol.redaction.command_redaction import without_secrets_as_it_stands
from at.protocol.redaction.escaped_text import cleaned_in_each_spelling
from at.protocol.redaction.secret_parameters import ANSWER, SET
from at.transcripts.redaction.identity import IdentityRedactor

# A token without its signature opens nothing.
_SIGNATURE = b"A" * 86
_TOKEN = re.compile(rb"\b(eyJ[\w-]*)\.([\w-]+)\.([\w-]+)", re.ASCII)
_PEM_MARK = re.compile(rb"-----(BEGIN|END) [A-Z ]*?(PRIVATE KEY|CERTIFICATE)-----")
_KEY_LINE = re.compile(rb"(?!(?:OK|ERROR|BEGIN|PRIVATE)\Z)[A-Za-z0-9+/]{4,}={0,2}")
_PEM_CUT = re.compile(rb"-----BEGIN (?!CERT|PUB|X509)")
_KEY_BEGIN = re.compile(rb"M(?:HcCAQE|GgCAQE|C4CAQA|IG.AgE|II...IBA)[A-Za-z0-9+/]{8}")
"""How the DER of a private key begins: SEC 1, PKCS #8, PKCS #1."""
_KEY_WORD = re.compile(
    rb"(?<![A-Za-z0-9+/=])(?:(?=[a-z0-9+/]*[A-Z])[A-Za-z0-9+/]{16,}={0,2}(?![A-Za-z0-9+/=])"
    rb"|[A-Za-z0-9+/]{2,}={1,2}(?![\w=])|[A-Za-z0-9+/]{4,}(?=\[[0-9:.,]{8}))"
)
"""A line of a key within a line of a log: also its last one, and what a log line cut off."""
_KEY_LEFT = re.compile(rb"(?:OK|ERROR)\Z|AT[+%#*^]|[+%#*^][A-Z]\w*:")
_ENDS = "\r\n\0 "
_HIDDEN = re.compile(r"(?:> ?)?\{redacted:[a-z-]+\}|[>@]")
_OTHER_LINE = re.compile(r"[\r\0]")  # inside a line: noise, and behind it no rule looks
_LOG = re.compile(r"\[\d\d:\d\d:\d\d|\*\*\* ", re.ASCII)
_HEADER = re.compile(
    r"(?ai)(authorization\"?\s*[:=]\s*\"?(?:(?:bearer|basic) +(?=(?P<word>[^\s\"]))"
    r"|(?:digest|token|aws4-hmac-sha256) +)|cookie\"?\s*:\s*\"?)(?(word)[^\s\"]+|[^\r\n]+)"
)
"""A header that opens something; what is no one word is hidden to the end of its line."""


def _spelt(words: str) -> str:
    """Return the pattern of words as text and as the bytes of UTF-8 that a line of a port has."""
    both = {*words.split(), *(word.encode().decode("latin-1") for word in words.split())}
    return "|".join(map(re.escape, sorted(both)))


_PASSWORD_ABROAD = _spelt(
    "kennwort contraseña senha wachtwoord lösenord heslo hasło salasana passord adgangskode parola"
    " пароль Пароль 密码 密碼 パスワード 비밀번호"
)
_COLON = _spelt("\uff1a : =")  # the first is the colon of Chinese and Japanese
# What firmware logs of its own: a password by that name, a message as the modem gave it.
_PASSWORD = re.compile(
    r"(?ai)(?<![a-z0-9+%#^$*])"
    r"([a-z]{0,16}?(?:passwor[dt]|passwd|passphrase|pwd|psk|secret)(?:[ _]key)?"
    r"|pass(?=\"?[:=]\"?[^\W\d])|(?:(?<=_)pass|(?-i:[a-z]{1,12}Pass))(?=(?:\[\d*\])? *(?:= *)?\")"
    rf"|mot de passe|{_PASSWORD_ABROAD}|(?<=\")private_?key(?=\"\s*:)"
    r"|secret_access(?:[ _]key)?|(?:\w{0,24}api|project|device|shared ?access)[ _-]?key"
    r"|(?:private|pre-?shared)[ _-]key(?= *[:=] *(?!-----)(?=\S*\d)\S{8})"
    r"|x-[\w-]{1,24}-(?:key|token)"
    r"|(?:access|auth|refresh)[ _-]?token|token(?=\"?(?:=|:\s?(?!\"?eyJ))\"?[\w.-]{16})"
    r"|token(?=\"?=\"?(?=\w*\d)(?=\w*[a-z])\w{6})"
    r"|(?<=[?&])[\w-]*(?:token|sig|signature|key))"
    rf"((?: eingeben| for [\w.@-]+)?(?:\[\d*\]|[\"'])?\s*(?:{_COLON})\s*| +(?=[\"'])"
    r"|[\"'](?:\s*,\s*\d{1,3}){0,2}\s*,\s*(?=[\"'])|>(?=[^<>\s]+</)"  # AT's settings; XML
    r"|(?<=pass(?:word|wort)) is +(?!in|not|wrong|required|set))"
    r"(?>([\"'])?)(?!\{redacted|\*+(?:\W|$)|<\w+>)(?(3)(?:(?!\3)[^\r\n])+|[^\s\",;&<]+)"
)
_PASSWORD_WORDS = re.compile(
    rf"pass|pwd|psk|secret|key|token|sig|--pw|auth plain|{_PASSWORD_ABROAD}",
    re.IGNORECASE | re.ASCII,
)
_PIN_WORDS = _spelt("ПИН пин")
_CODE_ABROAD = _spelt("код コード 码 碼")
_PIN = re.compile(
    r"(?ai)(?:(?<![a-z0-9])|(?<=sim)|(?<=enter))"
    rf"((?:pin|puk|adm|unlock code|{_PIN_WORDS})(?:number)?[12]?"
    rf"(?:[ _-]?(?:code|kod[ei]?|koodi|{_CODE_ABROAD}))?(?: is| to| eingeben| string)?"
    rf"[\"']?(?:[ \t,>(]|{_COLON}){{1,3}}(?:string:)?[\"'(]?"
    r"|\b(?:simunlock|\w+\.begin)\((?=[\"'])[\"']|\bumbim\b[^\r\n]{0,60}?\bunlock +"
    r"|\b(?:quectel|simcom|fibocom)-(?:cm|dial)\b[^\r\n]{0,80}? -p +)"
    r"[0-9]{4,8}(?:,[0-9]{4,8})*(?![\w.-])"
)
_PIN_NAMES = re.compile(rf"pin|puk|adm|unlock|begin|-cm |{_PIN_WORDS}", re.IGNORECASE | re.ASCII)
# What a shell of Zephyr stores, or is told to use.
_STORED = re.compile(
    r"(?ai)((?:\bsettings (?:set|write \w+) +[\w/.-]*(?:psk|pass\w*|pwd|key|secret|token)"
    r"|~\$ (?!cred )[^\r\n]{0,40}?\b(?:psk|pass\w*|pwd|secret|token)(?: +set)?) +)[^\s{]\S*"
)
# What a host gives a program: as an option, a setting, or in words.
_GIVEN = re.compile(
    r"(?ai)((?<!\S)--?[\w-]{0,24}(?:pass(?:word|wd|phrase)?|pw|psk|secret|token|api-?key"
    r"|project-key) +"
    r"|\bgsm\.password +|\bwith (?:password|passphrase|psk) +|\bwpa_passphrase +\S+ +"
    r"|\b(?:user(?:name)?|ssid|connect) +(?!and\b|or\b)\S+ +password +"
    r"|(?<![a-z0-9])(?:passwor[dt]|passwd|passphrase|psk(?: set)?|(?:api ?|shared )key)"
    r" +(?=\S*\d)(?=\S*[a-z])(?=[^\s:().]{8})|\bauth plain +(?=\S{8})|\bsshpass -p *"
    r"|\b(?:user|ssid|apn)\b[^\r\n]{0,80}?\bpass *[:=] +)"
    r"[^\s{-][^\s,;]*"
)
_IN_PLACE = re.compile(
    r"(?ai)(\bumbim\b[^\r\n]{0,60}?\bconnect +\S+ +\S+ +"
    r"|\b(?:quectel|simcom|fibocom)-(?:cm|dial)\b[^\r\n]{0,80}? -s +\S+ +(?!-)"
    r"|\b(?:wifi\.begin|(?:wlan|mqtt\w*)\.connect|gprsconnect|username_pw_set)\([^,()]*, *)"
    r"(?!\{)[^\r\n)]+?(?=$|[\r\n)]| -)"
)
"""Programs and libraries that take a login without a name for it, behind a network or an APN."""
_SHORT_OPTION = re.compile(
    r"((?<!\S)-P +(?!\d+(?:\s|$))|(?<!\S)(?:-u|--user) +[^\s:]+:)[^\s{-]\S*", re.ASCII
)
"""As mosquitto, chat, curl and nRF91's modem shell take a password."""
_SIM_KEY = re.compile(r"(?ai)(?<![a-z0-9])((?:ki|opc?)[ :=]{1,3})[0-9a-f]{32}(?![0-9a-z])")
_PROFILE = re.compile(
    r"(?a)(\brequest[GS]etProfile\[[^\]]{0,40}\] [^/\s]{0,100}/)(?!//\d)\S*(?=/\d)"
)
"""As Quectel's connection manager logs the APN, its user, its password and more."""
_LOGIN = re.compile(r"(?<=://)[^/\s@\"]*:[^/\s@\"]*(?=@)")
_PDU = re.compile(r"(?ai)\b(?:sms|pdu)\b[^0-9a-f\r\n]{1,20}([0-9a-f]{24,})(?![0-9a-z])")


class Redactor:
    """Removes secrets from whole lines; with `identity` also what names device, SIM or person."""

    def __init__(self, *, identity: bool = False) -> None:
        self._identity = IdentityRedactor() if identity else None
        self._pem = _PemByLine()
        self._exchange = _SecretExchange()

    def clean_command(self, data: bytes) -> bytes:
        """Return a line that is sent without its secrets."""
        cleaned = self.clean(data)
        self._exchange.sent(data, cleaned)
        return cleaned

    def clean_answer(self, data: bytes) -> bytes:
        """Return a line of the modem without its secrets, those included that their place tells."""
        return self._exchange.received(data, self.clean(data))

    def clean(self, data: bytes) -> bytes:
        """Return a line without its secrets."""
        data = self._pem.clean(data)
        if self._identity is None:
            cleaned = _without_secrets(data)
            return _TOKEN.sub(rb"\1.\2." + _SIGNATURE, cleaned) if b"eyJ" in data else cleaned
        # What a modem signed is signed by a published key now: such a token opens nothing either.
        cleaned = _without_secrets(self._identity.clean(data))
        self._identity.note_written(data, cleaned)
        return cleaned


def without_logged_secrets(text: str) -> str:
    """Return a line of a log without the secrets of commands and answers, and those it names."""
    return cleaned_in_each_spelling(text, _without_named)


def _without_named(text: str) -> str:
    text = without_secrets_as_it_stands(text)
    lowered = text.lower()
    if "uthorization" in lowered or "cookie" in lowered:
        text = _HEADER.sub(r"\1{redacted:token}", text)
    if _PASSWORD_WORDS.search(text):
        text = _PASSWORD.sub(r"\1\2\3{redacted:password}", text)
        text = _STORED.sub(r"\1{redacted:password}", text)
        text = _GIVEN.sub(r"\1{redacted:password}", text)
    if " -P " in text or " -u " in text or "--user " in text:
        text = _SHORT_OPTION.sub(r"\1{redacted:password}", text)
    if (
        "connect" in lowered
        or "-cm" in lowered
        or "-dial" in lowered
        or "i.begin" in lowered
        or "pw_set" in lowered
    ):
        text = _IN_PLACE.sub(r"\1{redacted:password}", text)
    if _PIN_NAMES.search(text):
        text = _PIN.sub(r"\1{redacted:pin}", text)
    if "k" in lowered or "op" in lowered:
        text = _SIM_KEY.sub(r"\1{redacted:key}", text)
    if "etProfile[" in text:
        text = _PROFILE.sub(r"\1{redacted:password}", text)
    if "://" in text and "@" in text:
        text = _LOGIN.sub("{redacted:password}", text)
    if "sms" in lowered or "pdu" in lowered:
        text = _PDU.sub(lambda one: one[0].replace(one[1], "0" * len(one[1])), text)
    return text


def _without_secrets(data: bytes) -> bytes:
    return without_logged_secrets(data.decode("latin-1")).encode("latin-1")


class _SecretExchange:
    """Hides what answers a command with secrets: noise may have damaged the name that tells them.

    Shown are lines of the command's own name, whose rule hides what is secret in them, its echo,
    the final result, notices and log lines.
    """

    def __init__(self) -> None:
        self._shown: set[str] = set()
        """Names and echoes of the commands since a final result, if one may have secrets."""

    def sent(self, line: bytes, cleaned: bytes) -> None:
        text = line.decode("latin-1")
        own = owner_of(text).name
        if self._shown or not {*SET, *ANSWER}.isdisjoint({command_name(text), own}):
            self._shown |= {own, cleaned.decode("latin-1").strip(_ENDS)}

    def received(self, line: bytes, cleaned: bytes) -> bytes:
        text = cleaned.decode("latin-1").strip(_ENDS)
        if not self._shown or not text or text in self._shown or _HIDDEN.fullmatch(text):
            return cleaned
        if final_result(text):
            self._shown.clear()
            return cleaned
        name = line_name(text)
        is_notice = name in ONE_SHAPE or (name[:1] != "#" and looks_like_notice(text))
        if _OTHER_LINE.search(text) is None and (
            name in self._shown - {""} or is_notice or _LOG.match(text)
        ):
            return cleaned
        return line.replace(line.strip(_ENDS.encode()), b"{redacted:rest}", 1)


class _PemByLine:
    """Hides a key or a certificate that passes line by line: as a log, or for want of a quote."""

    def __init__(self) -> None:
        self._open = b""
        """What it is called of which the end is still to come."""
        self._lines: dict[bytes, bytes] = {}
        """What the lines so far are of: an echo may come after the whole key."""

    def clean(self, data: bytes) -> bytes:
        """Return a line without what is a key's by the lines before it."""
        marks = _PEM_MARK.findall(data)
        if marks:
            edge, kind = marks[-1]
            name = b"certificate" if kind == b"CERTIFICATE" else b"key"
            self._open = name if edge == b"BEGIN" else b""
            if self._open or name == b"key":
                words = filter(_KEY_LINE.fullmatch, data.split())
                self._lines.update(dict.fromkeys(words, name))
            return data
        text = data.strip()
        if self._open and _KEY_LEFT.match(text):
            self._open = b""  # its end was lost
        elif not self._open and (_PEM_CUT.search(data) or _KEY_BEGIN.search(data)):
            self._open = b"key"  # its beginning was
        name = self._open or self._lines.get(text, b"")
        if name and _KEY_LINE.fullmatch(text):
            self._lines[text] = name
            return data.replace(text, b"{redacted:%b}" % name, 1)
        return _KEY_WORD.sub(self._word, data) if self._open else data

    def _word(self, match: re.Match[bytes]) -> bytes:
        self._lines[match.group()] = self._open
        return b"{redacted:%b}" % self._open
