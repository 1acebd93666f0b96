"""How faults are written: every part is read back, and every mistake is named with a right one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.fault_grammar import EXAMPLE, MOST_TIMES, FaultMistake, FaultParts, read_parts
from agent.standin.fault_kinds import FAULTS
from agent.standin.faults import Fault, parse

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
ARGUMENTS = st.none() | st.text(
    st.characters(exclude_characters="*@", exclude_categories=["Cs"]), min_size=1, max_size=20
)
TIMES = st.none() | st.integers(1, MOST_TIMES)
METHODS = st.sampled_from(["", "GET", "POST", "DELETE"])
ROUTES = st.from_regex(r"[/*][a-zA-Z0-9/._@=*-]{0,20}[a-z/*]", fullmatch=True)


@given(name=NAMES, argument=ARGUMENTS, times=TIMES, method=METHODS, route=ROUTES | st.just(""))
def test_what_is_written_is_read_back(
    name: str, argument: str | None, times: int | None, method: str, route: str
) -> None:
    text = name
    text += "" if argument is None else f"={argument}"
    text += "" if times is None else f"*{times}"
    method = method if route else ""
    text += f"@{f'{method} ' if method else ''}{route}" if route else ""
    assert read_parts(text) == FaultParts(name, argument, times, method, route)


# Of the signs of the grammar most of all, so that each part is often there and often wrong.
TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from(
        [*FAULTS, "=", "*", "@", "/", "v1", "GET ", "3", "503", "0", "-1", "soon", "", " "]
    ),
    max_size=9,
).map("".join)


@given(text=TEXTS)
def test_a_mistake_is_named_with_a_fault_that_is_right(text: str) -> None:
    fault, mistake = parsed(text)
    if mistake is None:
        assert fault is not None
        assert fault.name in FAULTS
        assert fault.left is None or fault.left > 0
        return
    assert repr(text) in str(mistake)
    assert any(part in str(mistake) for part in ("NAME", "ARG", "TIMES", "ROUTE"))
    assert str(mistake).endswith(f"write it as {mistake.example!r}")
    assert "invalid literal" not in str(mistake)
    read_parts(mistake.example)


def parsed(text: str) -> tuple[Fault | None, FaultMistake | None]:
    try:
        return parse(text), None
    except FaultMistake as mistake:
        return None, mistake


@pytest.mark.parametrize(
    ("text", "problem", "example"),
    [
        ("", "NAME is missing", EXAMPLE),
        ("=503", "NAME is missing", EXAMPLE),
        ("server-eror=500", "no fault has the NAME 'server-eror'; the nearest is server-error",
         "server-error=503"),
        ("latency=", "ARG is missing after =", "latency"),
        ("latency=soon", "ARG is seconds, 0 to 3600; not 'soon'", "latency=1"),
        ("latency=nan", "ARG is seconds, 0 to 3600; not 'nan'", "latency=1"),
        ("server-error=five*2", "ARG is a status, 400 to 599; not 'five'", "server-error=503"),
        ("cut-body=3", "cut-body takes no ARG, yet has '3'", "cut-body"),
        ("server-error=500*4x", "TIMES is a whole number from 1 to 999999, not '4x'",
         "server-error=500*3"),
        ("server-error*0", "TIMES is a whole number from 1 to 999999, not '0'", "server-error*3"),
        ("server-error*2=500", "TIMES is a whole number", "server-error*3"),
        ("server-error=500@v1/devices", "ROUTE begins with / or *",
         "server-error=500@/v1/devices*"),
        ("server-error@FETCH /v1/*", "GET, HEAD, OPTIONS, PATCH, POST, PUT; not 'FETCH'",
         "server-error@GET /v1/*"),
        ("server-error=500@/v1/devices*3", "TIMES comes before ROUTE, yet '*3' is at its end",
         "server-error=500*3@/v1/devices"),
        ("rate-limit@/v1/*", "rate-limit takes no ROUTE", "rate-limit"),
        ("rate-limit*2", "rate-limit takes no TIMES", "rate-limit"),
    ],
)  # fmt: skip
def test_each_part_that_is_wrong_is_named(text: str, problem: str, example: str) -> None:
    with pytest.raises(FaultMistake) as refused:
        parse(text)
    assert problem in str(refused.value)
    assert refused.value.example == example


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("too-many-requests=2*4@*", ("2", 4, "", "*")),
        ("server-error=500*2@*", ("500", 2, "", "*")),
        ("server-error@post */events", ("503", 3, "POST", "*/events")),
        ("latency=.5@GET  /v1/*", (".5", None, "GET", "/v1/*")),
    ],
)
def test_a_route_may_be_every_path_and_a_method_in_small_letters(text: str, parts: tuple) -> None:
    fault = parse(text)
    assert (fault.argument, fault.left, fault.method, fault.route) == parts
