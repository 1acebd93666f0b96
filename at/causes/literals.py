"""What a line must hold for a pattern to match it, so that most lines need no search. Pure."""

import re
from collections import deque
from functools import cache

_TOKEN = re.compile(r"\\.|\[\^?.(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|:)|\{[\d,]*\}|.")
_OPTIONAL = re.compile(r"[?*]|\{0")
_LITERAL = re.compile(r"\\[^0-9A-Za-z]|[^\\.^$\[({+]")


def literals_of(pattern: str) -> list[set[str]]:
    """Return sets of texts in small letters: a line that matches holds one of each set.

    The set that fewest lines hold one of is the first. Of no set any line may match.
    """
    return sorted(_literals(deque([*_TOKEN.findall(pattern), ")"])), key=_shortest, reverse=True)


def _literals(tokens: deque[str]) -> list[set[str]]:
    """Return the sets of a group, whose tokens up to its end are taken."""
    of_branches: list[list[set[str]]] = []
    needed: list[set[str]] = []
    run = ""
    while True:
        token = tokens.popleft()
        if _OPTIONAL.match(token):
            run = run[:-1]
        elif token not in {"|", ")"} and _LITERAL.fullmatch(token):
            run += token[-1].lower()
            continue
        needed, run = [*needed, {run}] if run else needed, ""
        if token.startswith("("):
            inner = _literals(tokens)
            is_needed = token in {"(", "(?:", "(?="} and not _OPTIONAL.match(tokens[0])
            needed += inner if is_needed else []
        elif token in {"|", ")"}:
            of_branches.append(needed)
            needed = []
        if token == ")":
            break
    if len(of_branches) == 1:
        return of_branches[0]
    best = [max(sets, key=_shortest, default=set()) for sets in of_branches]
    return [set().union(*best)] if all(best) else []


def _shortest(texts: set[str]) -> tuple[int, int]:
    """Return how telling the shortest text is; digits count for little."""
    return min(map(_weight, texts), default=(0, 0))


@cache
def _weight(text: str) -> tuple[int, int]:
    return sum(not sign.isdigit() for sign in text), len(text)
