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
from at.protocol.redaction.secret_parameters import ANSWER, SET
from at.transcripts.redaction.identity import IdentityRedactor
from at.transcripts.redaction.keys_by_line import PemByLine
from at.transcripts.redaction.named_above import LOG, NamedAbove
from at.transcripts.redaction.named_secrets import without_logged_secrets

# A token without its signature opens nothing.
_SIGNATURE = b"A" * 86
_TOKEN = re.compile(rb"\b(eyJ[\w-]*)\.([\w-]+)\.([\w-]+)", re.ASCII)
_ENDS = "\r\n\0 "
_HIDDEN = re.compile(r"(?:> ?)?\{redacted:[a-z-]+\}|[>@]")
_OTHER_LINE = re.compile(r"[\r\0]")  # inside a line: noise, and behind it no rule looks


class Redactor:
    """Removes secrets from whole lines; with `identity` also what names device, SIM or person."""

    def __init__(self, *, identity: bool = False) -> None:
        self._identity = IdentityRedactor() if identity else None
        self._pem = PemByLine()
        self._exchange = _SecretExchange()
        self._above = NamedAbove()

    def clean_command(self, data: bytes) -> bytes:
        """Return a line that is sent without its secrets."""
        cleaned = self.clean(self._above.clean(data, sent=True))
        self._exchange.sent(data, cleaned)
        return cleaned

    def clean_answer(self, data: bytes) -> bytes:
        """Return a line of the modem without its secrets, those included that their place tells."""
        return self._exchange.received(data, self.clean(self._above.clean(data)))

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
            name in self._shown - {""} or is_notice or LOG.match(text)
        ):
            return cleaned
        return line.replace(line.strip(_ENDS.encode()), b"{redacted:rest}", 1)
