"""HTML and SVG out of Python values. What is not markup already is text, and is escaped.

Text of a kit, a network or a file can so be given anywhere: it is shown, and gives no orders.
"""

import html
from collections.abc import Iterable

LONGEST = 4096
"""Characters of one text that are shown."""
_NAMES_OF_CONTROLS = 0x2400  # Unicode's pictures of the control characters, in their order
_EMPTY = frozenset({"input", "link", "meta", "path", "rect", "line", "circle", "use", "polyline"})


class Html(str):
    """Markup: a text in which everything is escaped that has to be."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def visible(text: str) -> str:
    """Return text of at most LONGEST characters; what controls, hides or reorders is shown."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} … ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    code = ord(character)
    if character.isprintable() or character in "\n\t\xa0":
        return character
    if code < 0x20:
        return chr(_NAMES_OF_CONTROLS + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else f"⟨U+{code:04X}⟩"


def escaped(child: Child) -> Html:
    """Return a child as markup: Html as it is, None as nothing, all else as text."""
    if isinstance(child, Html):
        return child
    if child is None:
        return Html()
    if isinstance(child, str | int):
        return Html(html.escape(visible(str(child))))
    return Html("".join(map(escaped, child)))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """Return an element. `class_` is class, `aria_label` aria-label; None and False are left out.

    An attribute that is True has no value.
    """
    words = "".join(
        f" {_name(key)}" + ("" if value is True else f'="{html.escape(visible(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _EMPTY:
        return Html(f"<{name}{words}/>")
    return Html(f"<{name}{words}>{escaped(children)}</{name}>")


def table(heading: Iterable[str], rows: Iterable[Iterable[Child]]) -> Html:
    """Return a table; a column without a name has no heading."""
    cells = [tag("th", name, scope="col") if name else tag("td") for name in heading]
    lines = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    return tag("table", tag("thead", tag("tr", cells)), tag("tbody", lines))


_SVG_NAMES = {"viewBox", "preserveAspectRatio"}


def _name(key: str) -> str:
    return key if key in _SVG_NAMES else key.rstrip("_").replace("_", "-")
