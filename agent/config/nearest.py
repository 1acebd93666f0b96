"""The known key that somebody meant. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten


def nearest_key(key: str, known: Iterable[str]) -> str:
    """Return the known key that is nearest to `key`, "" if none is like it."""
    known = sorted(known)
    # The key may belong to another section: its last part is compared as well, and of several
    # keys that end alike the shortest is named.
    names = {name.rpartition(".")[2]: name for name in sorted(known, key=len, reverse=True)}
    names |= {name: name for name in known}
    matches = get_close_matches(key, names, n=1) or get_close_matches(
        key.rpartition(".")[2], names, n=1
    )
    return names[matches[0]] if matches else ""


def nearest(key: str, known: Iterable[str], form: str = "{!r}") -> str:
    """Return a hint that names the known key nearest to `key`, in the form given."""
    known = sorted(known)
    if near := nearest_key(key, known):
        return f"did you mean {form.format(near)}?"
    return shorten(f"it has: {', '.join(known)}", 300, placeholder=" …")
