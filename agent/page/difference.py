"""What one browser lacks of a view: of states that follow each other only the newest. Pure."""

import msgspec

from agent.page.view import View

ORDER_S = 10.0
"""The shortest time between two changes of the order of what is shown."""


class Difference(msgspec.Struct, omit_defaults=True):
    """What has changed in a view since the browser was last sent something."""

    title: str = ""
    parts: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    says: list[str] = []


class Seen:
    """What one browser was sent; of states that follow each other only the newest is."""

    def __init__(self) -> None:
        self._view = View("", {}, {})
        self._ordered_at = float("-inf")

    def difference(self, view: View, now_s: float) -> Difference:
        """Return what a browser lacks of a view, and count it as sent."""
        before, lists = self._view, dict(view.lists)
        parts = {name: part for name, part in view.parts.items() if before.parts.get(name) != part}
        kept = {name: before.lists.get(name) for name in lists}
        changed = {name: list(ids) for name, ids in lists.items() if ids != kept[name]}
        only_order = all(sorted(ids) == sorted(kept[name] or ()) for name, ids in changed.items())
        if changed and only_order and now_s - self._ordered_at < ORDER_S:
            lists = {name: kept[name] or ids for name, ids in lists.items()}
            changed = {}
        elif changed:
            self._ordered_at = now_s
        # At the first paint nothing has happened that would have to be said.
        says = [text for name, text in view.says.items() if before.says.get(name, text) != text]
        self._view = View(view.headline, view.parts, lists, view.says)
        title = "" if before.headline == view.headline else f"{view.headline} · cellagent"
        return Difference(title, {name: str(part) for name, part in parts.items()}, changed, says)
