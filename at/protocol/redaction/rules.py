"""The kinds of rules that say which parameters of a command or an answer are secret. Pure.

A rule gets the parameters and returns the name of each secret one by its index, or None if it knows
no such form: then all that follows the name is hidden.
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

SHORT_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)
_PUBLIC_SETTINGS = frozenset(
    {
        *("cacert", "clientcert", "clientkey", "ciphersuite", "sslversion", "ctxindex", "protocol"),
        *("apn", "cid", "contype", "conid", "srvtype", "contextid", "keeptime", "clientid", "qos"),
        *("filetype", "transmode", "timeout", "content", "bodylen", "headerlen", "cleanss"),
    }
)
"""Settings of many makers, in small letters, that hold no secret."""
_PIN_OR_PUK = re.compile(r"[0-9]{4,8}", re.ASCII)


def places(most: int, hidden: Hidden, *, texts: Sequence[int] = ()) -> Rule:
    """Return the rule of a form of up to `most` parameters with secrets in these places.

    A text in quotes that stands neither there nor at `texts` may be a secret in a wrong place.
    """

    def rule(given: Sequence[Parameter]) -> Hidden | None:
        return hidden if fits(given, most, (*hidden, *texts)) else None

    return rule


def fits(given: Sequence[Parameter], most: int, texts: Sequence[int]) -> bool:
    """Return whether there are up to `most` parameters, with texts in these places alone."""
    return len(given) <= most and all(
        index in texts for index, item in enumerate(given) if item.quoted and item.text
    )


def all_but_numbers(
    name: str, *, data: int = 1 << 30, harmless: re.Pattern[str] | None = None
) -> Callable[[Sequence[Parameter]], Hidden]:
    """Return the rule that hides all but short bare numbers and texts that are `harmless`.

    Whatever stands from `data` on is hidden.
    """

    def shows(item: Parameter) -> bool:
        if harmless is not None and harmless.fullmatch(item.text):
            return True
        return not item.quoted and SHORT_NUMBER.fullmatch(item.text) is not None

    return lambda given: {
        index: name for index, item in enumerate(given) if index >= data or not shows(item)
    }


def setting(at: int = 0) -> Rule:
    """Return the rule of <name>,<value>...: the name stands at `at`; a short number is no login."""

    def rule(given: Sequence[Parameter]) -> Hidden:
        if len(given) > at + 1 and given[at].text.lower() in _PUBLIC_SETTINGS:
            return {}
        named = len(given) > at + 1 or at == 0
        return {
            i: name for i, name in all_but_numbers("value")(given).items() if i != at or not named
        }

    return rule


def read_back(rule: Rule) -> Rule:
    """Return the rule of an answer that has its command's form, or results, which are numbers."""

    def of_answer(given: Sequence[Parameter]) -> Hidden | None:
        hidden = rule(given)
        return hidden and {
            index: name
            for index, name in hidden.items()
            if index < len(given)
            and (given[index].quoted or not SHORT_NUMBER.fullmatch(given[index].text))
        }

    return of_answer


def pins(given: Sequence[Parameter]) -> Hidden:
    """Hide what may be a PIN or a PUK: texts, and numbers of as many digits."""
    return {i: "pin" for i, item in enumerate(given) if item.quoted or _PIN_OR_PUK.match(item.text)}


def everything(name: str) -> Callable[[Sequence[Parameter]], Hidden]:
    """Return the rule that hides all parameters."""
    return lambda given: dict.fromkeys(range(len(given)), name)


def number_of(given: Sequence[Parameter], index: int) -> str:
    """Return the digits of a parameter without leading zeros, else its text."""
    text = given[index].text.strip() if index < len(given) else ""
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text
