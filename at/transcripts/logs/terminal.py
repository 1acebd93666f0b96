r"""What a terminal would have shown of a line: no colours, and nothing that was erased. Pure."""

import re

# A colour, or a movement of the cursor. Editors spell its first character, and forums lose it: then
# it is one only where nothing else is written so.
_SEQUENCE = re.compile(
    r"(?:\x1b|\^\[|\[1B\]|␛|\\(?:x1[bB]|e|033)|←(?=\[\d))\[(?P<count>[0-9;?]*)(?P<what>[A-Za-z])"
    r"|\[\d{1,3}(?:;\d{1,3}){0,3}m|(?<=~\$ )\[m|\[m(?=$|<)"
    r"|\[(?P<lost>\d{1,3})D\[J|(?:^|(?<=J))\[J{1,2}(?=\W)|(?P<back>\x08)"
)

_MAY_BE = re.compile(r"\[[0-9;?]*[A-Za-z]|\x08")
"""What each of those has, and few lines have."""


def shown(line: str) -> str:
    """Return a line as it stood on the screen in the end."""
    if not _MAY_BE.search(line):
        return line
    found = [*_SEQUENCE.finditer(line)]
    if not found:
        return line
    cells: list[str] = []
    cursor = end = 0
    for match in found:
        written = line[end : match.start()]
        cells[cursor : cursor + len(written)] = written
        cursor += len(written)
        end = match.end()
        count = match["count"] or match["lost"] or "1"
        if match["back"] or match["what"] == "D" or match["lost"]:
            cursor -= min(cursor, int(count) if count.isdigit() else 1)
        if match["what"] == "C":
            cursor = min(len(cells), cursor + int(count) if count.isdigit() else cursor)
        if match["lost"] or match["what"] in {"J", "K"}:
            del cells[cursor:]
    cells[cursor : cursor + len(line) - end] = line[end:]
    return "".join(cells)
