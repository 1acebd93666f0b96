"""What a page of the documentation has one type, typed: in one shell on a terminal of its own.

A page's code blocks of the kind `console` hold commands. In a block with lines that begin with
`$ `, only these are typed, and the others are what they print, with `…` for what differs each time.
A command that is ended by hand says Ctrl-C behind its `#`; one that fails says `exit N` there. A
block that begins with the mark `# needs …` is for who has what it names, and is not typed. Any
other block that begins with `# ` and the name of a file is saved under it.
"""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from tests.support.commands.on_a_terminal import take_terminal
from tests.support.commands.user_project import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[3]
# Wider than any line: a page shows each whole, whatever the terminal of who reads it.
ROWS, COLUMNS = 60, 1000
PATIENCE_S = 90.0
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"^```\w+\n# ([\w-]+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "# needs "
_COMMENT = re.compile(r"\s#\s(.*)$")
_DECORATION = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, the number of its line, and what the page says that it prints."""

    line: int
    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def comment(self) -> str:
        found = _COMMENT.search(self.command)
        return found[1] if found is not None else ""

    @property
    def code(self) -> int:
        found = re.search(r"exit (\d+)", self.comment)
        return int(found[1]) if found is not None else 0


def typed(page: Path, *, marked: bool = False) -> Iterator[Typed]:
    """Yield the commands of a page in their order, each whole; `marked`: those of marked blocks."""
    text = page.read_text(encoding="utf-8")
    for block in _CONSOLE.finditer(text):
        if block[1].startswith(_MARK) is not marked:
            continue
        lines = block[1].splitlines()
        answered = any(line.startswith("$ ") for line in lines)
        command: Typed | None = None
        for number, line in enumerate(lines, text[: block.start(1)].count("\n") + 1):
            if command is not None and command.command.endswith("\\"):
                command = Typed(command.line, command.command[:-1] + line.strip())
            elif not answered or line.startswith("$ "):
                if command is not None:
                    yield command
                command = Typed(number, line.removeprefix("$ ")) if line.strip() else None
            elif command is not None:
                command.shown.append(line)
        if command is not None:
            yield command


def saved(page: Path) -> dict[str, str]:
    """Return the files that a page has one save, by name; blocks of one name are one file."""
    files: dict[str, str] = {}
    for name, text in _SAVED.findall(page.read_text(encoding="utf-8")):
        files[name] = files.get(name, "") + text
    return files


def as_shown(shown: list[str], printed: str) -> bool:
    """Whether a terminal shows what the page shows; a line of `…` alone stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…"
        else re.escape(line.rstrip()).replace("…", ".*?") + r"[ ]*\n"
        for line in shown
    )  # fmt: skip
    return re.fullmatch(rf"{pattern}\s*", printed) is not None


class PageShell:
    """A bash on a terminal, in a folder, with the environment of these tests activated.

    What a page puts below `/tmp` is put into the folder.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment = environment
        self._text = ""

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._shell = subprocess.Popen(
            [shutil.which("bash") or "bash", "--norc", "--noprofile", "-i"],
            cwd=self._folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
            env={
                **os.environ,
                # As an activated environment has it.
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "TERM": "dumb",
                **ENVIRONMENT,
                # Before and after whatever a command prints, in this shell and in those within it.
                "PS0": "\x02", "PROMPT_COMMAND": r"printf '\003%d\004' $?",
                **self._environment,
            },
        )  # fmt: skip
        os.close(theirs)
        self._until(re.compile(r"\x03\d+\x04"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave every shell, and end what was started in the background; a failure hangs up."""
        while error is None and self._shell.poll() is None:
            self._send("kill $(jobs -p) 2>/dev/null; wait; exit 0\n")
            try:
                self._until(re.compile(r"\x03\d+\x04"))
            except OSError:  # the terminal ends with the last shell
                break
        if error is not None:
            self._shell.kill()
        self._shell.wait(PATIENCE_S)
        os.close(self._ours)

    def run(self, wanted: Typed) -> str:
        """Type one command; return what it printed. AssertionError: it is not as the page says."""
        command, *shown = (
            line.replace("/tmp/", f"{self._folder}/") for line in (wanted.command, *wanted.shown)
        )
        self._send(f"{command}\n")
        if "Ctrl-C" in wanted.comment:
            self._until(re.compile(rf"\x02.*{_last(shown)}", re.DOTALL), keep=True)
            self._send("\x03")
        ended = self._until(re.compile(r"\x02(.*?)\x03(\d+)\x04", re.DOTALL))
        printed, code = _plain(ended[1]), int(ended[2])
        if "Ctrl-C" in wanted.comment:
            printed, code = printed.replace("^C", "").rstrip() + "\n", 0 if code == 130 else code

        assert code == wanted.code, f"exit {code}: {wanted.command}\n{printed}"
        if shown and command.rstrip().endswith("&"):
            self._until(re.compile(_last(shown)))
        elif shown:
            assert as_shown(shown, printed), f"{wanted.command}\nprinted\n{printed}"
        return printed

    def _send(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def _until(self, wanted: re.Pattern[str], *, keep: bool = False) -> re.Match[str]:
        """Read until the terminal shows something; forget it and all before it, unless `keep`."""
        until = monotonic() + PATIENCE_S
        while (found := wanted.search(self._text)) is None:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, until - monotonic()))
            assert ready, f"nothing more came after:\n{_plain(self._text)}"
            self._text += os.read(self._ours, 65536).decode(errors="replace")
        if not keep:
            self._text = self._text[found.end() :]
        return found


def _last(shown: list[str]) -> str:
    """Return a pattern of the last line that the page shows; of anything, where it shows none."""
    line = next((line for line in reversed(shown) if line.strip(" …^C")), "")
    return re.escape(line).replace("…", ".*?") or r"\S"


def _plain(text: str) -> str:
    # What a progress bar wiped is not to be seen.
    lines = text.replace("\r\n", "\n").split("\n")
    return _DECORATION.sub("", "\n".join(line.rpartition("\r")[2] for line in lines))
