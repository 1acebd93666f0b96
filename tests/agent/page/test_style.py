"""The colours of the page by the WCAG formula, in both themes; nothing moves or is fetched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent.page

STATIC = Path(agent.page.__file__).parent / "static"
STYLE = "".join(file.read_text() for file in STATIC.glob("*.css"))
TOKENS = {
    name: dict(zip(("light", "dark"), values.split(","), strict=True))
    for name, values in re.findall(r"--([\w-]+): light-dark\(([^)]*)\)", STYLE)
}
GROUNDS = ("bg", "surface", "sunken")
STATES = ("ok", "attn", "bad", "work", "unk")
BANDS = tuple(f"band-{number}" for number in range(1, 6))
TEXTS = [
    *((text, ground) for text in ("text", "muted") for ground in (*GROUNDS, *BANDS)),
    *((state, ground) for state in STATES for ground in GROUNDS),
    *((state, f"{state}-tint") for state in STATES),
    *(("text", f"{state}-tint") for state in STATES),
    ("muted", "unk-tint"),  # of what is not live any more
]
MARKS = [
    *(("edge", ground) for ground in GROUNDS),
    *(("attn", band) for band in BANDS),  # the limit under which a signal is weak
    ("fail", "bg"),
]


def luminance(colour: str) -> float:
    digits = colour.strip().removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * each for each in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_marks_stand_out_from_what_is_behind_them(theme: str) -> None:
    for least, pairs in ((4.5, TEXTS), (3.0, MARKS)):
        for front, ground in pairs:
            found = contrast(TOKENS[front][theme], TOKENS[ground][theme])
            assert found >= least, f"{front} on {ground}: {found:.2f}"
    assert contrast("#fff", TOKENS["fail"][theme]) >= 4.5


def test_nothing_moves_and_nothing_comes_from_elsewhere() -> None:
    for word in ("animation", "transition", "@keyframes", "url(", "@import", "scroll-behavior"):
        assert word not in STYLE, word
    for file in STATIC.glob("*.js"):
        assert not re.search(r"https?:|innerHTML|outerHTML|insertAdjacentHTML|\beval\b",
                             file.read_text()), file.name  # fmt: skip
