"""Hides secrets in logs and messages, whatever the caller forgot.

Every `Secret` of this process is registered here by its value. What has the form of a token or of
a private key is hidden even if it was never registered, and so are the secret parameters of AT
commands and answers (at.protocol.redaction.secret_parameters).
"""

import re

HIDDEN = "[secret]"

# A shorter value would blot out ordinary words; such a password is refused where it is read.
MIN_LENGTH = 4

# A text without any of these has no such shape, which is sooner seen.
_SIGNS = (
    *("eyJ", "earer ", "asic ", "oat_", "pin-value=", "://", " PRIVATE KEY-----"),
    *("ignature=", "-Token=", "sig="),
)
_SHAPES = (
    # A JWT, whole or cut; a word is looked at once, from its beginning.
    r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*eyJ[A-Za-z0-9_-]{8})(?>[A-Za-z0-9_-]+)\.[A-Za-z0-9_-]*"
    r"(?:\.[A-Za-z0-9_-]*)?"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=[Bb]asic )[A-Za-z0-9+/=]{8,}"
    r"|\boat_[A-Za-z0-9_-]+"
    # A PKCS #11 URI; an address that opens a file by itself, as to which a store leads on.
    r"|(?:(?<=pin-value=)|(?<=ignature=)|(?<=-Token=)|(?<=[?&]sig=))[^&\s'\"]+"
    r"|(?<=://)[^/\s@]*:[^/\s@]*(?=@)"  # user and password in a URL, as of a proxy
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)

_known: set[str] = set()
_compiled: tuple[int, re.Pattern[str] | None] = (0, None)
"""How many of what is known it was made of, and what finds them: made when a text is to be read."""


def hide(value: str) -> None:
    """Hide `value` (and its percent-encoded form) in everything that is redacted from now on."""
    if len(value) < MIN_LENGTH:
        return
    from urllib.parse import quote  # where no secret is known, as in a help, none is hidden

    _known.update({value, quote(value, safe="")})


def redact(text: str) -> str:
    """Return `text` with every known secret, and what has the shape of one, hidden."""
    # `--help` must not pay for these.
    from at.protocol.redaction.command_redaction import without_secrets_as_it_stands
    from at.protocol.redaction.escaped_text import cleaned_in_each_spelling

    return cleaned_in_each_spelling(
        text, lambda read: _without_known(without_secrets_as_it_stands(read))
    )


def _without_known(text: str) -> str:
    global _compiled  # noqa: PLW0603 - the sink is the process's, and so is what it knows
    made_of, pattern = _compiled
    if made_of != len(_known):
        # The longest first: one secret may be the start of another.
        longest_first = sorted(_known, key=len, reverse=True)
        pattern = re.compile("|".join(re.escape(known) for known in longest_first))
        _compiled = len(longest_first), pattern
    if pattern is not None:
        text = pattern.sub(HIDDEN, text)
    return (
        re.sub(_SHAPES, HIDDEN, text, flags=re.DOTALL)
        if any(sign in text for sign in _SIGNS)
        else text
    )
