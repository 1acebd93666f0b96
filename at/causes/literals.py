"""What a line must hold for a pattern to match it, so that most lines need no search. Pure."""

import re
from collections import deque
from functools import cache

_TOKEN = re.compile(r"\\.|\[\^?.(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|:)|\{[\d,]*\}|.")
_OPTIONAL = re.compile(r"[?*]|\{0")
_LITERAL = re.compile(r"\\[^0-9A-Za-z]|[^\\.^$\[({+]")


def literals_of(pattern: str) -> set[str]:
    """Return texts in small letters, one of which stands in each line that matches a pattern.

    None: any line may match it.
    """
    return _literals(deque([*_TOKEN.findall(pattern), ")"]))


def _literals(tokens: deque[str]) -> set[str]:
    """Return the texts of a group, whose tokens up to its end are taken."""
    of_branches: list[set[str]] = []
    best: set[str] = set()
    run = ""
    while True:
        token = tokens.popleft()
        if _OPTIONAL.match(token):
            run = run[:-1]
        elif token not in {"|", ")"} and _LITERAL.fullmatch(token):
            run += token[-1].lower()
            continue
        best, run = _better(best, {run} if run else set()), ""
        if token.startswith("("):
            inner = _literals(tokens)
            is_needed = token in {"(", "(?:"} and not _OPTIONAL.match(tokens[0])
            best = _better(best, inner if is_needed else set())
        elif token in {"|", ")"}:
            of_branches.append(best)
            best = set()
        if token == ")":
            return set().union(*of_branches) if all(of_branches) else set()


def _better(one: set[str], other: set[str]) -> set[str]:
    """Return that of two sets whose shortest text is the longer one; digits count for little."""
    return max(one, other, key=lambda texts: min(map(_weight, texts), default=(0, 0)))


@cache
def _weight(text: str) -> tuple[int, int]:
    return sum(not sign.isdigit() for sign in text), len(text)
