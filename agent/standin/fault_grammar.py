"""How a fault is written, `NAME[=ARG][*TIMES][@ROUTE]`. Pure: knows no kind of fault."""

import re
from dataclasses import dataclass

GRAMMAR = "NAME[=ARG][*TIMES][@ROUTE]"
PARTS = {
    "NAME": "the kind of fault",
    "ARG": "what the kind takes; without it, what the list shows. No * and no @, except in a URL",
    "TIMES": "to how many requests it applies before it ends; without it, there is no end",
    "ROUTE": "the paths, a pattern that begins with / or *, and a method before it: GET /v1/*",
}
EXAMPLE = "server-error=503*2@GET /v1/devices*"
MOST_TIMES = 999_999

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_TIMES = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_ROUTE_BEGINS = re.compile(r"@(?=(?:[A-Za-z]+ +)?[/*])")
_ROUTE = re.compile(r"(?:(?P<method>[A-Za-z]+) +)?(?P<path>[/*].*)", re.DOTALL)
_NAME_ENDS = re.compile(r"[=*@]")


class FaultMistake(ValueError):
    """A fault is not written as it must be: `problem` names the part, `example` is a right one."""

    def __init__(self, text: str, problem: str, example: str) -> None:
        super().__init__(f"the fault {text!r}: {problem}; write it as {example!r}")
        self.example = example


@dataclass(frozen=True, slots=True)
class FaultParts:
    """The parts of a fault: None or "" for one that is not written; `method` in upper case."""

    name: str
    argument: str | None = None
    times: int | None = None
    method: str = ""
    route: str = ""


def read_parts(text: str) -> FaultParts:
    """Return the parts of a fault. Raises FaultMistake."""
    head, at, route = _split_route(text)
    name_end = _NAME_ENDS.search(head)
    name = head[: name_end.start()] if name_end else head
    if not name:
        raise FaultMistake(text, "NAME is missing", EXAMPLE)
    rest, star, times = head[len(name) :].partition("*")
    if rest == "=":
        raise FaultMistake(text, "ARG is missing after =", name)
    argument = rest[1:] if rest else None
    if star and not _TIMES.fullmatch(times):
        problem = f"TIMES is a whole number from 1 to {MOST_TIMES}, not {times!r}"
        raise FaultMistake(text, problem, f"{name}{rest}*3")
    method, path = _read_route(text, head, route) if at else ("", "")
    return FaultParts(name, argument, int(times) if star else None, method, path)


def _split_route(text: str) -> tuple[str, str, str]:
    """Return what comes before the route, "@" if there is one, and the route."""
    begins = _ROUTE_BEGINS.search(text)
    if begins:
        return text[: begins.start()], "@", text[begins.end() :]
    # A URL may name a user before its host; any other @ was meant to begin a route.
    return (text, "", "") if "://" in text else text.partition("@")


def _read_route(text: str, head: str, route: str) -> tuple[str, str]:
    """Return method and path of a route."""
    match = _ROUTE.fullmatch(route)
    if match is None:
        problem = f"ROUTE begins with / or *, or with a method and a blank; not with {route!r}"
        raise FaultMistake(text, problem, f"{head}@/v1/devices*")
    path, method = match["path"], (match["method"] or "").upper()
    if method and method not in _METHODS:
        known = ", ".join(sorted(_METHODS))
        raise FaultMistake(
            text, f"the method of ROUTE is one of {known}; not {method!r}", f"{head}@GET {path}"
        )
    if times := re.search(r"(\*[0-9]+)+$", path):
        raise FaultMistake(
            text,
            f"TIMES comes before ROUTE, yet {times.group()!r} is at its end",
            f"{head.partition('*')[0]}*3@{path[: times.start()] or '/'}",
        )
    return method, path
