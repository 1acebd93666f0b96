"""What is not markup is text: shown whole or cut, and never an order to the browser."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.page.markup import LONGEST, Html, tag, visible


class Read(HTMLParser):
    """Reads markup as a browser does, and keeps what it was told."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, name: str, found: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, dict(found)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(text=st.text(max_size=200), value=st.text(max_size=200))
@example(text="</p><script>", value='" onload="alert(1)')
def test_any_text_is_read_back_as_the_text_that_is_shown(text: str, value: str) -> None:
    read = Read(tag("p", text, title=value))
    assert read.tags == [("p", {"title": visible(value)})]
    assert read.text == visible(text)


@given(st.text())
def test_what_is_shown_holds_nothing_that_controls_hides_or_reorders(text: str) -> None:
    shown = visible(text)
    assert all(each.isprintable() or each in "\n\t\xa0" for each in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\x1b[31mred\x00\x7f", "␛[31mred␀␡"),
        ("a\u202eb\u200b", "a⟨U+202E⟩b⟨U+200B⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("−9 dBm · ±9 m", "−9 dBm · ±9 m"),
    ],
)
def test_hostile_text_is_shown_as_it_is(text: str, shown: str) -> None:
    assert tag("b", text) == f"<b>{shown}</b>"


def test_a_line_of_ten_megabytes_is_cut_and_its_length_said() -> None:
    shown = visible("x" * 10_000_000)
    assert len(shown) < LONGEST + 40
    assert shown.endswith("(10000000 characters)")


def test_markup_is_not_escaped_twice_and_what_is_none_is_nothing() -> None:
    assert tag("p", Html("<b>a</b>"), None, ["c", 1], hidden=True, id=None) == (
        "<p hidden><b>a</b>c1</p>"
    )
    assert tag("rect", class_="q1", aria_label="a") == '<rect class="q1" aria-label="a"/>'
