"""Hold what users and other programs see to what is recorded of it below tests/interface.

Prints what differs and exits with 1; `--write` records anew. A part's name (`help`, `openapi`,
`schemas`, `transcript`, `shapes`) does only that part. `shapes` runs tests/interface/commands.txt.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import environment

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "interface"
INPUTS = RECORDED / "inputs"
CELLAGENT = [sys.executable, "-m", "agent"]
WIDTH = 100
PATIENCE_S = 90
NOON = 1_767_268_800  # 2026-01-01, UTC
# Words that programs compare: of these keys the values are recorded, too.
NAMED = {
    *("kind", "exit", "type", "role", "outcome", "from"),
    *("concern", "step", "with", "state", "status"),
}
HASH = re.compile("[0-9a-f]{64}|[0-9a-f]{32}")
SESSION = ("AT+CGMM", "AT+CFUN?", "AT%KEYGEN=1,9,0", 'AT+CPIN="1234"', "AT+CFUN=1", "AT+CESQ")
EVENT = shlex.split("""report event --queue --device-serial kit-1 --hardware-version nrf9161dk
    --software-type main --software-version 1.0.0 --metric count=1""")


def command_help() -> dict[str, str]:
    """Return the help of every command, in the order in which its group lists it."""
    from click import Command, Context, Group
    from click.testing import CliRunner

    from agent.cli.tree import root

    def names(command: Command, path: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
        yield path
        if isinstance(command, Group):
            context = Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from names(found, (*path, name))

    texts = []
    for path in names(root, ()):
        done = CliRunner().invoke(
            root, [*path, "--help"], prog_name="cellagent", terminal_width=WIDTH
        )
        assert done.exit_code == 0, path
        texts.append(f"$ {' '.join(('cellagent', *path))} --help\n{done.output}\n")
    return {"help.txt": "".join(texts)}


def openapi() -> dict[str, str]:
    """Return the OpenAPI documents that the stand-in serves, its own address left out.

    Its clock is set: what may be asked for depends on the day.
    """
    pages = {"device-cloud": "/v1/openapi.json", "observability": "/api/v0/openapi.json"}
    with Home() as home:
        ready = home.serve("cloud", "serve")
        url = ready["urls"]["api"]
        key = {"Authorization": f"Bearer {ready['credentials']['control_token']}"}
        clock = {"set": NOON, "freeze": True}
        _http("POST", f"{url}/control", json={"clock": clock}, headers=key)
        found = {name: _http("GET", url + page).text for name, page in pages.items()}
    return {
        f"openapi-{name}.json": _page(json.loads(text.replace(url, "http://127.0.0.1"))) + "\n"
        for name, text in found.items()
    }


def schemas() -> dict[str, str]:
    """Return the SQL of a new ledger."""
    with Home() as home:
        home.run("provision", "migrate")
        return {"schema-ledger.sql": _schema(home.state / "ledger.sqlite")}


def transcript() -> dict[str, str]:
    """Return what `modem record` writes of a session with the virtual modem, without its times."""
    program = INPUTS / "session.py"
    with Home() as home:
        file = home.folder / "session.transcript"
        words = ["modem", "record", str(file), "--port", "virtual:", "--"]
        done = home.run(*words, sys.executable, str(program), *SESSION)
        assert done.returncode == 0, done.stderr
        text = re.sub(r"(?m)^@\d+\.\d+ ", "@ ", file.read_text())
    return {"session.transcript": text}


def shapes() -> dict[str, str]:
    """Return the exit code and the shape of the output of each command of commands.txt."""
    sections = re.split(r"(?m)^(?=\[)", (RECORDED / "commands.txt").read_text())[1:]
    with ThreadPoolExecutor(2) as pool:
        return {"shapes.txt": "\n".join(pool.map(_section, sections))}


PARTS = {
    "help": command_help,
    "openapi": openapi,
    "schemas": schemas,
    "transcript": transcript,
    "shapes": shapes,
}


class Home:
    """A person's empty home: commands run in it see nothing else, and serve what they need."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="cellagent-interface-")
        self.folder = Path(self._temporary.name)
        (self.folder / "config.toml").touch(mode=0o600)
        self.state = self.folder / "state"
        self.served: list[subprocess.Popen[str]] = []
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        own = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
        self.environment = {
            **kept,
            **dict.fromkeys(own, str(self.folder)),
            "CELLAGENT_CONFIG": str(self.folder / "config.toml"),
            "CELLAGENT_STATE_DIR": str(self.state),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": str(ROOT),
        }

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._temporary.cleanup()

    def stop(self) -> None:
        """End what is served, the last first."""
        while self.served:
            process = self.served.pop()
            process.terminate()
            process.communicate(timeout=PATIENCE_S)

    def filled(self, line: str) -> str:
        """Return a line of commands.txt with the paths of this home."""
        names = {"{home}": self.folder, "{inputs}": INPUTS, "{python}": sys.executable}
        for name, path in names.items():
            line = line.replace(name, str(path))
        return line

    def shown(self, output: str) -> list[str]:
        """Return the shape of lines of JSON, and any other text as it is but for paths."""
        if output.startswith("{") or not output:
            return shape(map(json.loads, output.splitlines()))
        for path, name in ((self.folder, "{home}"), (sys.executable, "{python}")):
            output = output.replace(str(path), name)
        return [f"| {line}".rstrip() for line in output.splitlines()]

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with `--json`."""
        at = words.index("--") if "--" in words else len(words)  # what follows is another program's
        return subprocess.run(
            [*CELLAGENT, *words[:at], "--json", *words[at:]],
            **self._settings(),
            input=stdin,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )

    def serve(self, *words: str) -> Any:
        """Start a command that serves until the end; return its first line, a JSON object."""
        process = subprocess.Popen(
            [*CELLAGENT, *words], **self._settings(), stderr=subprocess.DEVNULL
        )
        self.served.append(process)
        assert process.stdout is not None
        return json.loads(process.stdout.readline())

    def files(self) -> Iterable[Path]:
        """Return the files of the state folder, in order."""
        return [path for path in sorted(self.state.rglob("*")) if path.is_file()]

    def _settings(self) -> dict[str, Any]:
        settings = {"cwd": self.folder, "env": self.environment, "text": True}
        return {**settings, "stdout": subprocess.PIPE}


def _section(text: str) -> str:
    """Run the lines of one section of commands.txt in a home of their own."""
    title, *lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    told = [title]
    with Home() as home:
        for line in lines:
            verb, *words = shlex.split(home.filled(line))
            stdin = ""
            if "<<" in words:
                *words, _, stdin = words
            told.append(f"$ {line}")
            if verb == "serve":
                told += shape([home.serve(*words)])
                continue
            wanted = words.pop(0) if verb == "until" else ""
            command = words if verb == "until" else [verb, *words]
            for _ in range(PATIENCE_S):
                done = home.run(*command, stdin=stdin.encode().decode("unicode_escape"))
                if re.match(wanted, done.stdout):
                    break
            else:
                raise SystemExit(f"{line}: it never said so, at last {done.stdout}")
            told += [f"exit {done.returncode}", *home.shown(done.stdout)]
        home.stop()
        for path in home.files():
            name = path.relative_to(home.state)
            told.append(
                f"file {HASH.sub('HASH', str(name))} {stat.S_IMODE(path.stat().st_mode):04o}"
            )
            if path.suffix in {".json", ".jsonl"}:
                told += shape(map(json.loads, path.read_text().splitlines()))
    return "\n".join(told) + "\n"


def shape(values: Iterable[Any]) -> list[str]:
    """Return the key paths of JSON values, each with its types: `.a[].b: int|null`."""
    types: dict[str, set[str]] = defaultdict(set)
    for value in values:
        _walk(value, "", types)
    return [f"  {path or '.'}: {'|'.join(sorted(found))}" for path, found in sorted(types.items())]


def _walk(value: Any, path: str, types: dict[str, set[str]]) -> None:
    if isinstance(value, dict):
        types[path].add("object")
        for key, inner in value.items():
            _walk(inner, f"{path}.{key}", types)
    elif isinstance(value, list):
        types[path].add("list")
        for inner in value:
            _walk(inner, f"{path}[]", types)
    else:
        word = re.fullmatch(r"[\w-]+", str(value)) and value is not None
        named = word and path.rpartition(".")[2] in NAMED
        types[path].add(json.dumps(value) if named else _TYPES[type(value)])


_TYPES = {bool: "bool", int: "int", float: "float", str: "text", type(None): "null"}


def _http(method: str, url: str, **sent: Any) -> Any:
    import httpx

    answer = httpx.request(method, url, trust_env=False, **sent)
    assert answer.is_success, answer.text
    return answer


def _page(value: Any, indent: str = "") -> str:
    """Return JSON with sorted keys; what fits into a line stands on one."""
    line = json.dumps(value, sort_keys=True)
    if not isinstance(value, dict | list) or len(indent) + len(line) < 2 * WIDTH:
        return line
    inner = indent + " "
    if isinstance(value, list):
        parts, ends = [_page(one, inner) for one in value], "[]"
    else:
        parts = [f"{json.dumps(key)}: {_page(value[key], inner)}" for key in sorted(value)]
        ends = "{}"
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{ends[1]}"


def _schema(file: Path) -> str:
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name"
        ).fetchall()
        version = database.execute("PRAGMA user_version").fetchone()[0]
    statements = [re.sub(r"\s+", " ", sql).strip() + ";" for (sql,) in rows]
    return "\n".join([*statements, f"PRAGMA user_version = {version};"]) + "\n"


def difference(found: Mapping[str, str]) -> str:
    """Return a unified diff from what is recorded to what was found, "" where all is the same."""
    lines: list[str] = []
    for name, text in found.items():
        file = RECORDED / name
        before = file.read_text() if file.exists() else ""
        lines += difflib.unified_diff(
            before.splitlines(True), text.splitlines(True), f"recorded/{name}", f"now/{name}"
        )
    return "".join(lines)


def main() -> int:
    environment.enter(environment.DEVELOPMENT)
    sys.path[:0] = [str(ROOT)]
    wanted = [word for word in sys.argv[1:] if word != "--write"] or list(PARTS)
    if unknown := [word for word in wanted if word not in PARTS]:
        sys.exit(f"no part is named {unknown[0]!r}: there are {', '.join(PARTS)}, and --write")
    found = {name: text for part in wanted for name, text in PARTS[part]().items()}
    differs = difference(found)
    if "--write" in sys.argv:
        for name, text in found.items():
            (RECORDED / name).write_text(text)
        return 0
    sys.stdout.write(differs)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
