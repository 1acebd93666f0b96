"""The documentation builds, and what it names exists; test_pages.py types what it says."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent.cli.tree import root
from agent.config import Profile
from agent.config.parse import leaves, profile_from
from agent.config.write import set_value
from tests.support.commands.command_tree import assert_exists
from tests.support.commands.shell_pages import typed

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
# A path of this project, or a module of it, wherever one stands in a page or a docstring.
_PATH = re.compile(
    r"(?<![\w/.~$-])((?:agent|at|bench|docs|fixtures|scripts|soak|tests|\.ci)/[\w./*-]*\w\*?)"
)
_MODULE = re.compile(r"(?<![\w./-])((?:agent|at)(?:\.[a-z_]\w*)+(?:\.[A-Z]\w*)?)(?![\w/(]|-)")
_COMMAND = re.compile(r"^ {4,}(cellagent .*)$", re.MULTILINE)


def commands(page: Path) -> Iterator[str]:
    """Yield the command lines of a page, each whole, without what stands behind a #."""
    text = page.read_text().replace("\\\n", " ")
    for match in _COMMAND.finditer(text):
        yield re.split(r"\s#\s|\s{4,}(?![-\"'/])", match.group(1))[0].rstrip(" &")
    for wanted in (*typed(page), *typed(page, marked=True)):
        if wanted.command.startswith("cellagent "):
            yield re.split(r"\s#\s", wanted.command)[0].rstrip(" &")


def documented() -> list[tuple[str, str]]:
    return [
        (str(page.relative_to(ROOT)), line)
        for page in PAGES
        if "generated" not in page.parts and "_build" not in page.parts
        for line in commands(page)
    ]


def examples(command: click.Command = root, name: str = "cellagent") -> Iterator[tuple[str, str]]:
    """Yield the help of each command of the tree, and the example that it gives."""
    if not isinstance(command, click.Group):
        text = f"{command.help}\n{command.epilog}"
        example = re.search(r"Example: (?:echo \w+ \| )?(cellagent [^;]*)$", text, re.MULTILINE)
        yield f"{name} --help", example[1] if example is not None else ""
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        below = command.get_command(context, word)
        assert below is not None
        yield from examples(below, f"{name} {word}")


@pytest.mark.parametrize(("page", "line"), list(examples()))
def test_the_help_of_each_command_gives_an_example_of_it(page: str, line: str) -> None:
    words = shlex.split(line)
    assert words[: len(page.split()) - 1] == page.split()[:-1]


@pytest.mark.parametrize(("page", "line"), [*documented(), *examples()])
def test_each_command_in_the_documentation_exists_with_its_options(page: str, line: str) -> None:
    assert_exists(page, shlex.split(line.replace("…", ""))[1:])


@pytest.mark.timeout(600)
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="needs the development environment: ./scripts/test")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d",
         tmp_path / "trees", ROOT / "docs", tmp_path / "html"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-3000:]
    assert (tmp_path / "html" / "index.html").is_file()


def test_each_key_of_a_profile_is_explained_and_its_example_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("scripts", "docs"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    generated = importlib.import_module("generated")
    monkeypatch.chdir(tmp_path)
    shown = [key for _, keys in generated.key_table().values() for key in keys]
    assert {key.name for key in shown} >= {name for name, _ in leaves(Profile())}
    for key in shown:
        assert "" not in {key.meaning, key.values, key.example}, key
        if key.values == "a table":
            section, _, name = key.name.partition(".")
            profile_from(tomllib.loads(f"[{section}]\n{name} = {key.example}"), "custom")
        else:
            if key.example.endswith(".pem"):  # what it names is there
                file = Path(key.example).expanduser()
                file.parent.mkdir(exist_ok=True)
                file.write_text("-----BEGIN CERTIFICATE-----")
            set_value(key.name, key.example, profile="custom")


def test_each_variable_that_is_read_stands_in_the_page_of_them() -> None:
    modules = [
        module.read_text() for top in ("agent", "at") for module in ROOT.glob(f"{top}/**/*.py")
    ]
    read = {name for text in modules for name in re.findall(r'"(CELLAGENT_[A-Z_]+)"', text)}
    page = (ROOT / "docs/reference/environment.md").read_text()
    assert set(re.findall(r"`(CELLAGENT_[A-Z_]+)`", page)) == read


def prose() -> Iterator[tuple[str, str]]:
    """Yield every page, and every module of the project with its docstrings and comments alone."""
    for page in PAGES:
        if not {"generated", "_build"} & set(page.parts):
            yield str(page.relative_to(ROOT)), page.read_text()
    for folder in ("at", "agent", "bench", "scripts", "soak", "tests/support"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            with tokenize.open(module) as source:
                words = [
                    token.string
                    for token in tokenize.generate_tokens(source.readline)
                    if token.type == tokenize.COMMENT or token.string.startswith('"""')
                ]
            yield str(module.relative_to(ROOT)), "\n".join(words)


def _exists(path: str) -> bool:
    return any(ROOT.glob(path.rstrip("/"))) or any(ROOT.glob(f"{path}.py"))


def _is_module(dotted: str) -> bool:
    """Whether a dotted name is a module, a package, or a name that a module binds."""
    path = ROOT / dotted.replace(".", "/")
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    module, _, name = dotted.rpartition(".")
    home = ROOT / module.replace(".", "/")
    file = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
    return file.is_file() and re.search(rf"\b{name}\b", file.read_text()) is not None


def test_each_path_and_module_that_is_named_exists() -> None:
    wrong = [
        f"{where}: {name}"
        for where, text in prose()
        for found, exists in ((_PATH, _exists), (_MODULE, _is_module))
        for name in found.findall(text)
        if not exists(name)
    ]
    assert not wrong


def additions() -> list[str]:
    """Return the rows of CONTRIBUTING.md's table: what to add, which places to touch, a model."""
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("| to add | touch | as in |")[2]
    return [line for line in page.splitlines() if line.startswith("| a")]


@pytest.mark.parametrize("row", additions(), ids=lambda row: row.split("|")[1].strip())
def test_each_name_in_a_row_of_additions_is_in_a_file_of_that_row(row: str) -> None:
    named = [path for name in _PATH.findall(row) for path in ROOT.glob(name)]
    files = [file for path in named for file in (path.rglob("*.*") if path.is_dir() else [path])]
    text = "\n".join(file.read_text() for file in files if file.suffix != ".pyc")
    words = re.findall(r"`(?:\w+\.)*((?!py`|md`|toml`|txt`)[\w%+-]+)(?:\(\w+\))?`", row)
    assert files
    assert not [word for word in words if word not in text]
