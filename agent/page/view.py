"""What a view is: parts with an id each, painted on the server, and how a whole page holds them.

The first paint has all parts in their places. From then on the browser is sent the parts that have
changed and puts them where those of the same id are: what is shown is made in one place only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agent.page.markup import Child, Html, escaped, tag
from agent.page.words import icon, iso

_MOST_PAINTED = 4096
VIEWS = {"/kits": "Kits", "/bench": "Bench", "/report": "Report"}
_SHAPES = {
    "ok": '<circle cx="8" cy="8" r="7.5"/><path class="cut" d="m4.6 8.4 2.3 2.3 4.5-5"/>',
    "attn": '<path d="M8 1 15.5 15H.5z"/><path class="cut" d="M8 6v4m0 2.6v.01"/>',
    "bad": '<rect x=".7" y=".7" width="14.6" height="14.6" rx="1.5"/>'
    '<path class="cut" d="m5 5 6 6m0-6-6 6"/>',
    "work": '<circle class="ring" cx="8" cy="8" r="6.7"/><path d="M8 3a5 5 0 0 1 0 10z"/>',
    "unk": '<circle class="ring dashed" cx="8" cy="8" r="6.7"/>'
    '<path class="mark" d="M6 6.3a2 2 0 1 1 2 2v1m0 2.3v.01"/>',
    "none": '<path class="mark" d="M3 8h10"/>',
}
_SYMBOLS = Html(
    '<svg class="vh" aria-hidden="true"><defs>'
    + "".join(f'<symbol id="i-{n}" viewBox="0 0 16 16">{s}</symbol>' for n, s in _SHAPES.items())
    + "</defs></svg>"
)


@dataclass(frozen=True, slots=True)
class View:
    """A view of this moment.

    `parts` are elements whose ids are the keys, `lists` the ids of the parts in each container, in
    their order. `headline` is the worst in a sentence, the tab's title too; `says` what a screen
    reader is told of, the newest sentence of each kit or slot.
    """

    headline: str
    parts: Mapping[str, Html]
    lists: Mapping[str, Sequence[str]]
    says: Mapping[str, str] = field(default_factory=dict)


_LOG = {"role": "log", "aria_live": "off", "aria_label": "Console", "tabindex": "0"}


class Painted:
    """Parts that were painted before: one that shows the same as then is not painted again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Html]] = {}

    def part(self, name: str, shows: object, paint: Callable[[], Html]) -> Html:
        """Return a part; `shows` is all that it depends on."""
        known = self._known.get(name)
        if known is None or known[0] != shows:
            if len(self._known) >= _MOST_PAINTED:
                self._known.clear()  # of kits that were renamed, of boards that came and went
            known = self._known[name] = (shows, paint())
        return known[1]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What each page has around its view: where it is, what it is about, and whether it is live."""

    path: str
    about: str
    control: bool
    live: Html
    gone: Html


def live(
    at: datetime, since: datetime | None, trouble: str, *, local: bool = False
) -> tuple[Html, Html]:
    """Return the words of the header, and the bar of what is not live since `since`.

    Times are in UTC, or here, with the name of the zone.
    """
    clock = tag("time", _clock(at, local=local), datetime=iso(at), id="clock")
    state = ("ok", "Live ") if since is None else ("unk", "Not live ")
    shown = tag("span", icon(state[0]), state[1], clock, id="live", class_=f"st {state[0]}")
    words = None
    if since is not None:
        words = (
            tag("strong", f"Not live since {_clock(since, local=local)}."),
            f" {trouble[:1].upper()}{trouble[1:]}; asked again every second.",
        )
    bar = tag(
        "section", words, id="gone", class_="gone", aria_label="Connection", hidden=since is None
    )
    return shown, bar


def _clock(at: datetime, *, local: bool) -> str:
    shown = at.astimezone() if local else at
    return f"{shown:%H:%M:%S %Z}"


def whole_page(view: View, around: Surroundings, keys: Sequence[tuple[str, str]]) -> Html:
    """Return the whole document of a view."""
    body = (
        _SYMBOLS,
        tag("a", "To the content", href="#main", class_="skip"),
        _header(around),
        around.gone,
        tag(
            "main",
            [_filled(view, name) for name in view.lists if "/" not in name],
            tag("p", id="says", class_="vh", role="status"),
            id="main",
            tabindex="-1",
        ),
        _footer(keys),
    )
    return _document(view.headline, body, data_path=around.path)


def _filled(view: View, container: str) -> Html:
    """Return a container with its parts, in which other containers may be."""
    inner = [name for name in view.lists if name.rpartition("/")[0] == container]
    parts = [view.parts[name] for name in view.lists[container]]
    inside = [_filled(view, name) for name in inner]
    name = container.rpartition("/")[2]
    log: dict[str, str] = _LOG if name == "lines" else {}
    return tag("div", parts, inside, id=name, class_=name, data_keep="/" in container, **log)


def plain_page(title: str, *content: Child) -> Html:
    """Return a document without a view: what to do where there is none."""
    main = tag("main", tag("h1", title), content, id="main", class_="plain")
    return _document(title, (_SYMBOLS, main))


def _document(title: str, body: Child, **attributes: str) -> Html:
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("title", f"{title} · cellagent"),
        tag("link", rel="icon", href="/static/icon.svg"),
        [tag("link", rel="stylesheet", href=f"/static/{name}.css") for name in ("page", "bench")],
        tag("script", type="module", src="/static/page.js"),
        tag("noscript", tag("meta", http_equiv="refresh", content="5")),
    )
    page = tag("html", tag("head", head), tag("body", body), lang="en", **attributes)
    return Html(f"<!doctype html>\n{page}\n")


def _header(around: Surroundings) -> Html:
    current = around.path.partition("?")[0]
    mode = "Control on" if around.control else "Read only"
    links = [
        tag("li", tag("a", name, href=path, aria_current=_current(path, current)))
        for path, name in VIEWS.items()
    ]
    state = tag("p", tag("span", around.about), tag("span", mode), around.live, class_="now")
    navigation = tag("nav", tag("ul", links), aria_label="Views")
    return tag("header", tag("b", "cellagent"), navigation, state, class_="top")


def _current(path: str, current: str) -> str | None:
    """Return the word for a link to the view that is shown, or to the one above it."""
    if path == current:
        return "page"
    return "true" if current.startswith(f"{path}/") else None


def _footer(keys: Sequence[tuple[str, str]]) -> Html:
    every = (*keys, ("?", "all keys"))
    theme = tag(
        "label",
        "Theme ",
        tag("select", [tag("option", name) for name in ("system", "light", "dark")], id="theme"),
        class_="js",
    )
    shown = [tag("span", tag("kbd", key), f" {what}", class_="js") for key, what in every]
    dialog = tag(
        "dialog",
        tag("h2", "Keys", id="keys-title"),
        tag("dl", [(tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in _ALL_KEYS]),
        tag("label", tag("input", type="checkbox", id="letters", checked=True), " Single letters"),
        tag("form", tag("button", "Close"), method="dialog"),
        id="keys",
        aria_labelledby="keys-title",
    )
    return escaped((tag("footer", shown, theme), dialog))


_ALL_KEYS = (
    ("j k", "next, previous"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("/", "filter"),
    ("g k, g b, g r", "kits, bench, report"),
    ("F2", "scan field"),
    ("m", "sound of the bench on, off"),
    ("d", "cards or rows"),
    ("p", "pause the console"),
    ("← →", "the moment before, after"),
    ("s", "say the newest line"),
)
