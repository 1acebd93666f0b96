"""Replaces what names a device, a SIM or a person in a recorded session, line by line.

A line that is known decides for itself which of its parameters names somebody; in the rest, and in
lines that nobody knows, `identifiers` finds what looks like it. Each becomes a made-up value of the
same shape, and what was signed is signed anew, so that what could be decoded still can be.
"""

import re
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from itertools import pairwise

from at.commands import catalog
from at.protocol import notices
from at.protocol.check_digit import ends_in_luhn_digit
from at.protocol.command import CommandText, read_command
from at.protocol.dialect import CONTROL_SEQUENCE
from at.protocol.redaction.escaped_text import cleaned_in_each_spelling
from at.protocol.values import name_before_colon
from at.transcripts.interruptions import without_logs
from at.transcripts.redaction import resigning, sim_files
from at.transcripts.redaction.identifiers import UNREADABLE, Change, Identifiers
from at.transcripts.redaction.written_credentials import WrittenCredential, written_credential

# A command in a line: behind a prompt, bare or wrapped by a shell.
_COMMAND = re.compile(
    r"(?:\s|\x1b\[[0-9;]*[mGKJ]|[A-Za-z][\w.-]{0,20}:~\$)*(?:at\s+'?(?=AT))?(?P<command>AT.*)",
    re.IGNORECASE | re.DOTALL,
)
_SIGN = re.compile(r"[+%#*^]")
# What a log line quotes of a session: a command with what it asks, or an answer's name.
_QUOTED = re.compile(r"(?<![\w+%#*^])(?:AT(?=[+%#*^][A-Z])|(?=[+%#*^][A-Z]\w+\s*:))", re.IGNORECASE)
_QUOTED_COMMAND = re.compile(r"AT[+%#*^]\w+(?:=\?|\?|=.*)?", re.DOTALL)
# A bare answer that a log line quotes.
_FEWEST_DIGITS = 8
_LAST_WORD = re.compile(r".*[\s:>'\"<=]([\w,]{10,48})\W*", re.ASCII | re.DOTALL)
_CLOSERS = " \t\r\n\0'>)]},.;"
_LOGGED_END = re.compile(r".*\b(?:OK|ERROR)\W*", re.DOTALL)
_LINE = re.compile(r'(?:[^"\r\n\0]|"[^"]*(?:"|\Z))+[\r\n\0]*|[\r\n\0]+')
# What a shell colours, or writes where its prompt was.
_SHOWN = re.compile(
    rf"((?:{CONTROL_SEQUENCE})*)"
    rf"((?:(?>(?:{CONTROL_SEQUENCE})+)(?![\r\n\0]*\Z)|(?>[^\x1b]+)|(?!{CONTROL_SEQUENCE})\x1b)*)"
    rf"((?:(?:{CONTROL_SEQUENCE})+[\r\n\0]*)?)"
)
_FINAL = re.compile(r"OK|ERROR|\+CM[ES] ERROR:.*", re.DOTALL)
_PARAMETER = re.compile(r'[ \t]*(?:"([^"]*)(?:"|\Z)|([^,"\r\n]*?))[ \t]*(?:(,)|(?=[\r\n\']|\Z))')
# A bare answer, perhaps with a character that got lost or was turned on the line.
_NUMBER_ALONE = re.compile(r"(?=(?:\D*[0-9]){6})\S{6,24}", re.ASCII)
_SIGNED_VALUE = re.compile(r'\s*"?([\w.=+/-]*|\{redacted:[a-z-]+\})"?\s*', re.ASCII)
_SERIAL_ANSWERS = ("+CGSN", "+GSN")
_CARD_ANSWERS = ("%XICCID", "+ICCID", "+CCID", "+QCCID", "#CCID", "^ICCID", "+ZICCID")
# Attributes of a request that name a device or a person, and no organisation.
_SUBJECT = re.compile(r"(?i)((?:^|,)\s*(?:CN|SN|SERIALNUMBER|EMAILADDRESS)\s*=)([^,]*)")
_PUBLIC_KEY = re.compile(r"\AMFkw[A-Za-z0-9+/]{118}==\Z")
_TYPED_COMMANDS = frozenset(name for name, _form in catalog.TYPES)
_CERTIFICATE, _IDENTITY_KEY = "1", "6"
# Types of %CMNG that only this device has; the others are of CAs and of services.
_OF_THIS_DEVICE = {_CERTIFICATE, "2", "3", "4", _IDENTITY_KEY, "8", "9"}


class IdentityRedactor:
    """Replaces identity in whole lines, in the order in which they pass.

    The made-up values hold for one recording: a device has the same ones in all its lines.
    """

    def __init__(self) -> None:
        names = Identifiers()
        self._names = names
        self._command: CommandText | None = None
        """The command in progress: it decides what a line without a name is."""
        self._logged: CommandText | None = None
        """The last command that a log line quoted, of the kit's own session with its modem."""
        self._written: dict[WrittenCredential, bytes] = {}
        """The digest in the recording of each credential whose content was redacted."""
        self._answers: Mapping[str, Mapping[int, Change]] = {
            **{name: {0: names.serial} for name in _SERIAL_ANSWERS},
            **{name: {0: names.iccid} for name in _CARD_ANSWERS},
            "+CIMI": {0: names.imsi},
            "+CNUM": {0: names.device_id, 1: names.made_up.phone},
            "+CLIP": {0: names.number, 4: names.device_id},
            **{name: {0: names.number} for name in ("+COLP", "+CCWA", "+CDIP")},
            "+CCFC": {2: names.number},
            "+CMGR": {1: names.number},
            "+CMGL": {2: names.number},
            **{name: {1: names.number, 3: names.device_id} for name in ("+CPBR", "+CPBF")},
            "#XNRFCLOUD": {3: names.device_id},
            "#XNRFCLOUDOBSDEVINFO": {0: names.device_id},
            "%DEVICEUUID": {0: names.uuid},
            "#XUUID": {0: names.uuid},
            "+CRSM": {2: self._file_content},
            "%CLOUDACCESSKEY": {0: partial(_PUBLIC_KEY.sub, resigning.PUBLISHED_SPKI)},
        }
        self._signed: Mapping[str, Change] = {
            "%JWT": names.token,
            "%KEYGEN": names.generated_key,
            "%ATTESTTOKEN": names.attestation,
            "%CLAIMTOKEN": names.attestation,
        }
        self._commands: Mapping[str, Mapping[int, Change]] = {
            "%JWT": {2: names.device_id},
            "%KEYGEN": {3: self._sent_subject},
            "#XMQTTCFG": {0: names.device_id},
            "+CPBW": {1: names.number, 3: names.device_id},
            "+CCFC": {2: names.number},
        }

    def clean(self, line: bytes) -> bytes:
        """Return a line with made-up identity."""
        rest, logs = without_logs(line)
        text = self._lines(rest.decode("latin-1"))
        for place, log in reversed(logs):
            cut = min(place, len(text.rstrip("\r\n")))
            text = text[:cut] + self._lines(log.decode("latin-1")) + text[cut:]
        return text.encode("latin-1")

    def _lines(self, text: str) -> str:
        """Return a text of several lines: an echo ends with CR, and its answer stands behind it."""
        return cleaned_in_each_spelling(text, self._as_it_stands)

    def _as_it_stands(self, text: str) -> str:
        return "".join(map(self._line, _LINE.findall(text)))

    def note_written(self, before: bytes, after: bytes) -> None:
        """Note how a line was redacted, now or before: the digest is that of what is left."""
        was, now = written_credential(before), written_credential(after)
        if was is not None and now is not None:
            self._written[was] = now.digest

    def _line(self, text: str) -> str:
        if "\x1b" not in text:
            return self._shown(text)
        begins, shown, ends = _SHOWN.fullmatch(text).groups()  # type: ignore[union-attr]
        return begins + self._shown(shown) + ends

    def _shown(self, text: str) -> str:
        match = _COMMAND.fullmatch(text)
        if match is not None:
            return self._sent(text, match.start("command"))
        if _SIGN.search(text) and not name_before_colon(text.strip()) and _QUOTED.search(text):
            return self._log_line(text)
        text = self._received(text)
        if _FINAL.fullmatch(text.strip()):
            self._command = None
        elif self._logged and _LOGGED_END.fullmatch(text):
            self._logged = None
        return text

    def _log_line(self, text: str) -> str:
        """Return a line that quotes commands and answers, each read as if it stood alone."""
        own, self._command = self._command, self._logged
        begins = [0, *(match.start() for match in _QUOTED.finditer(text)), len(text)]
        parts = [text[begin:end] for begin, end in pairwise(begins)]
        parts[0] = self._names.replaced(parts[0])
        parts[1:] = map(self._quoted_part, parts[1:])
        self._logged, self._command = self._command, own
        return "".join(parts)

    def _quoted_part(self, text: str) -> str:
        end = len(text.rstrip(_CLOSERS))
        if text.count('"', 0, end) % 2 and text[end - 1] == '"':
            end -= 1  # it closes what is before the part
        return self._quoted(text[:end]) + text[end:]

    def _quoted(self, text: str) -> str:
        command = _QUOTED_COMMAND.match(text)
        if command is None:
            return self._received(text)
        return self._sent(command.group(), 0) + self._received(text[command.end() :])

    def _sent(self, text: str, start: int) -> str:
        command = text[start:].rstrip("\r\n\0 ")
        self._command = read_command(command.removesuffix("'"))
        if self._command is None:
            return self._names.replaced(text, sent=True)
        name = self._command.name
        at = start + 2 + len(name) + 1
        if name == "%CMNG":
            text = self._with_written_certificate(text, at)
        else:
            text = _changed(text, at, self._commands.get(name, {}))
        return self._names.replaced(text, typed=name in _TYPED_COMMANDS, sent=True)

    def _received(self, text: str) -> str:
        name = name_before_colon(text.strip())
        if not name:
            return self._names.replaced(self._bare(text))
        if name == "%XMODEMUUID":
            self._names.keep_builds(text)
            return text
        at = text.index(":") + 1
        if name in self._signed:
            return _with_signed(text, at, self._signed[name])
        if name == "%CMNG":
            text = self._listed(text, at)
        else:
            text = _changed(text, at, self._answers.get(name, {}))
        typed = name in self._answers or bool(catalog.readers_of(name)) or notices.is_known(name)
        return self._names.replaced(text, typed=typed)

    def _bare(self, text: str) -> str:
        """Return a line without a name, which the command in progress explains."""
        if changes := self._alone(self._command, text.strip()):
            return _changed(text, 0, changes)
        if not self._logged and not self._command:
            return text
        word = _LAST_WORD.fullmatch(text)
        if word is None or len(re.findall("[0-9]", word[1])) < _FEWEST_DIGITS:
            return text
        if self._names.is_labelled(text, word.end(1)):
            return text  # whatever was asked
        changes = self._alone(self._logged, word[1]) or self._alone(self._command, word[1])
        return text[: word.start(1)] + _changed(word[1], 0, changes) + text[word.end(1) :]

    def _alone(self, asked: CommandText | None, answer: str) -> Mapping[int, Change]:
        """Return what is changed in an answer without a name, {} if none of that was asked."""
        name = asked.name if asked is not None else ""
        if name in _SERIAL_ANSWERS and re.fullmatch(r'[\w:./,"-]*[0-9][\w:./,"-]*', answer):
            return dict.fromkeys(range(3), self._names.serial)
        if name == "+CIMI" and _NUMBER_ALONE.fullmatch(answer):
            return {0: self._names.imsi}
        if name in _CARD_ANSWERS and _NUMBER_ALONE.fullmatch(answer):
            return {0: self._names.iccid}
        # No other command is answered with fifteen digits alone: they are an IMEI or an IMSI, or
        # the made-up serial number of a session that was redacted before.
        number = re.fullmatch(r"(?!0{11})[0-9]{15}", answer, re.ASCII)
        if number and not ends_in_luhn_digit(answer):
            return {0: self._names.imsi}
        return {}

    def _file_content(self, content: str) -> str:
        asked = self._command
        arguments = asked.arguments if asked is not None and asked.name == "+CRSM" else ""
        return sim_files.other_content(content, arguments, self._names.iccid, self._names.imsi)

    def _sent_subject(self, attributes: str) -> str:
        """Return the attributes of a request with other names."""
        return _SUBJECT.sub(lambda m: m[1] + self._names.device_id(m[2]), attributes)

    def _with_written_certificate(self, text: str, at: int) -> str:
        operation, _tag, kind = (_parameter(text, at, index) for index in range(3))
        if (operation, kind) != ("0", _CERTIFICATE):
            return text
        # It is made anew in each run, with a number and a time of its own.
        return _changed(text, at, {3: lambda _: "{redacted:certificate}"})

    def _listed(self, text: str, at: int) -> str:
        tag, kind = (_parameter(text, at, index) for index in range(2))
        changes: dict[int, Change] = {2: lambda digest: self._digest(tag, kind, digest)}
        if kind == _CERTIFICATE:
            changes[3] = self._names.certificate
        elif kind == _IDENTITY_KEY:
            changes[3] = lambda _: resigning.PUBLISHED_PEM
        return _changed(text, at, changes)

    def _digest(self, tag: str, kind: str, digest: str) -> str:
        """Return the digest that belongs to what this recording has in a place."""
        place = (tag.encode("latin-1"), kind.encode("latin-1"))
        written = self._written.get(
            WrittenCredential(*place, digest.upper().encode("latin-1", "replace"))
        )
        if written is not None:
            return written.decode()
        if digest.lower() in {*self._names.key_ids, resigning.PUBLISHED_KEY_ID}:
            return resigning.PUBLISHED_KEY_ID.upper()
        if kind == _IDENTITY_KEY:
            return sha256(resigning.PUBLISHED_PEM.encode()).hexdigest().upper()
        if kind in _OF_THIS_DEVICE and digest.encode() not in self._written.values():
            return self._names.made_up.digest(digest)
        return digest


def _parameter(text: str, at: int, index: int) -> str:
    """Return a parameter behind a name, "" where there is none."""
    spans = _spans(text, at)
    return text[slice(*spans[index])] if index < len(spans) else ""


def _changed(text: str, at: int, changes: Mapping[int, Change]) -> str:
    """Return a line in which some of the parameters from `at` on are changed."""
    if not changes:
        return text
    for index, (start, end) in reversed(list(enumerate(_spans(text, at)))):
        if index in changes and start < end:
            text = text[:start] + changes[index](text[start:end]) + text[end:]
    return text


def _with_signed(text: str, at: int, change: Change) -> str:
    """Return an answer whose one parameter was signed; what is no such line loses it all."""
    match = _SIGNED_VALUE.fullmatch(text, at)
    if match is None:
        end = text[len(text.rstrip()) :]
        return f'{text[:at]} "{UNREADABLE}"{end}'
    return text[: match.start(1)] + change(match[1]) + text[match.end(1) :]


def _spans(text: str, at: int) -> list[tuple[int, int]]:
    """Return where each parameter begins and ends, without its quotes."""
    spans = []
    while match := _PARAMETER.match(text, at):
        start, end = match.span(2 if match[1] is None else 1)
        if text[end : end + 1] != '"':  # in a quote that is never closed, the line's end is none
            end = start + len(text[start:end].rstrip("\r\n\0"))
        spans.append((start, end))
        at = match.end()
        if match[3] is None:
            break
    return spans
