"""Draw what `cellagent demo` prints as docs/demo.svg, for the README."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
# No fonts from elsewhere: the picture is drawn with whatever the reader has.
FORMAT = """<svg class="terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 16px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def main() -> int:
    shown = subprocess.run(
        [sys.executable, "-m", "agent", "demo"],
        cwd=TARGET.parent.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    shown = re.sub(r"cellagent-demo-\w+", "cellagent-demo", shown)
    console = Console(record=True, width=82, file=io.StringIO(), force_terminal=True)
    text = Text(shown)
    text.highlight_regex(r"(?m)^  ok ", "bold green")
    text.highlight_regex(r"(?m)(?<=^  ok  )\w+", "bold")
    console.print(text)
    TARGET.write_text(
        console.export_svg(title="scripts/demo", code_format=FORMAT, unique_id="demo")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
