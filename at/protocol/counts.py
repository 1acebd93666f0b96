"""Words for how many there are. Pure."""

import re


def counted(count: int, things: str) -> str:
    """Return "3 tries", or "1 try" where there is one; `things` ends with a plural."""
    if count == 1:
        things = re.sub("(ie)?s$", lambda end: "y" if end[1] else "", things)
    return f"{count} {things}"
