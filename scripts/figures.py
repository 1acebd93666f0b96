"""Print the figures of a tree's shape as a Markdown table: a column for each folder that is named.

    scripts/figures [FOLDER ...]        this tree where none is named

Product code is what lies below `at` and `agent`. A line of code is one that is not blank, not a
comment and not part of the docstring of a module, class or function; one of imports belongs to an
import statement, at the top or within, or is the `if TYPE_CHECKING:` over some.

`Any` is counted where it stands as a name in the code, and as a word anywhere. A flag is an
attribute that a module sets to True or False, whatever the object; each counts once in a file.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORT, _SMALL = 40, 80  # lines of a file
_CROWDED = 14  # files directly in one folder
_MANY_FLAGS = 3  # of one file
_MOCK = re.compile(r"\bmonkeypatch\.setattr|\bmock\.patch|\b(?:Magic|Async)?Mock\(")
_ANY = re.compile(r"\bAny\b")
_ASKED = re.compile(r"(Tell|Have|Let|Take)\b")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file, its `path` relative to the tree, and what is read from it."""

    path: Path
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def name(self) -> str:
        """The name that it is imported by, unless it is a package's own file."""
        return ".".join(self.path.with_suffix("").parts)

    def functions(self) -> Iterator[tuple[int, str]]:
        """Yield the lines and the name of each function, those within others as well."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield len(_span(node)), node.name

    def docstrings(self) -> Iterator[ast.expr]:
        for node in self.nodes:
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
                assert isinstance(node.body[0], ast.Expr)
                yield node.body[0].value

    def code_lines(self) -> int:
        documented = {number for text in self.docstrings() for number in _span(text)}
        return sum(
            line.strip()[:1] not in {"", "#"} and number not in documented
            for number, line in enumerate(self.lines, 1)
        )

    def import_lines(self) -> int:
        guards = sum(line.strip() == "if TYPE_CHECKING:" for line in self.lines)
        statements = (n for n in self.nodes if isinstance(n, ast.Import | ast.ImportFrom))
        return guards + sum(len(_span(statement)) for statement in statements)

    def imported(self) -> set[str]:
        """Return every name that is a module, if there is one of that name."""
        names: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return names - {self.name}

    def any_names(self) -> int:
        return sum(isinstance(node, ast.Name) and node.id == "Any" for node in self.nodes)

    def flags(self) -> set[str]:
        """Return the names of the attributes that are set to True or False."""
        return {
            target.attr
            for node in self.nodes
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, bool)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Attribute)
        }

    def hand_written_routes(self) -> int:
        """Return how many calls name the methods of a path, as a route's constructor takes them."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return sum(word.arg == "methods" for call in calls for word in call.keywords)

    def public_classes(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def figures(tree: Path) -> dict[str, str]:
    """Return each figure of a tree, by what it counts."""
    product, tests = _modules(tree, "at", "agent"), _modules(tree, "tests")
    parts = (_sizes(product), _layout(product), _seams(product), _words(product))
    return {what: value for part in parts for what, value in part.items()} | _tests(product, tests)


def _sizes(product: list[Module]) -> dict[str, str]:
    code = sum(module.code_lines() for module in product)
    lengths = [len(module.lines) for module in product]
    longest = max(product, key=lambda module: len(module.lines))
    functions = sorted((n, f"{m.path}:{name}") for m in product for n, name in m.functions())
    imports = sum(module.import_lines() for module in product)
    median = statistics.median(lines for lines, _ in functions)
    return {
        "files of `at` and `agent`": f"{len(product):,}",
        "lines": f"{sum(lengths):,}",
        "code lines": f"{code:,}",
        "median file, lines": f"{statistics.median(lengths):g}",
        "longest file, lines": f"{len(longest.lines)} (`{longest.path}`)",
        f"files under {_SHORT} lines": str(sum(lines < _SHORT for lines in lengths)),
        "functions": f"{len(functions):,}",
        "function, median / p90 lines": f"{median:g} / {functions[len(functions) * 9 // 10][0]}",
        "longest function, lines": "{} (`{}`)".format(*functions[-1]),
        "import lines of all code": f"{100 * imports / code:.1f} % ({imports:,})",
    }


def _layout(product: list[Module]) -> dict[str, str]:
    readers = Counter(name for module in product for name in module.imported())
    single = [m for m in product if m.path.stem != "__init__" and readers[m.name] == 1]
    folders = Counter(module.path.parent for module in product).most_common()
    crowded = [f"`{folder}` {count}" for folder, count in folders if count > _CROWDED]
    return {
        "files with exactly one importer": str(len(single)),
        f"of these under {_SMALL} lines": str(sum(len(m.lines) < _SMALL for m in single)),
        "most files in one folder": "{1} (`{0}`)".format(*folders[0]),
        f"folders of more than {_CROWDED} files": f"{len(crowded)} ({', '.join(crowded)})",
    }


def _seams(product: list[Module]) -> dict[str, str]:
    names = sum(module.any_names() for module in product)
    code = sum(module.code_lines() for module in product)
    flags = {module.path: len(module.flags()) for module in product}
    most = sorted(flags.items(), key=lambda item: -item[1])
    many = [f"`{path}` {count}" for path, count in most if count >= _MANY_FLAGS]
    words = sum(len(_ANY.findall(module.text)) for module in product)
    served = [module for module in product if module.path.parts[:2] == ("agent", "standin")]
    return {
        "`Any` per 1,000 code lines": f"{1000 * names / code:.1f} ({names})",
        "`Any` as a word, imports and texts as well": f"{1000 * words / code:.1f} ({words})",
        "flags that are set to True or False": f"{sum(flags.values())} ({', '.join(many)})",
        "routes of the stand-in that name their methods themselves": str(
            sum(module.hand_written_routes() for module in served)
        ),
    }


def _words(product: list[Module]) -> dict[str, str]:
    rooms = [("/".join(m.path.parent.parts[:2]), m) for m in product]
    in_rooms = _repeated((f"{room}: {name}", m) for room, m in rooms for name in m.public_classes())
    everywhere = _repeated((name, m) for m in product for name in m.public_classes())
    texts = [ast.literal_eval(text) for module in product for text in module.docstrings()]
    asked = Counter(match[1] for text in texts if (match := _ASKED.match(text)))
    words = ", ".join(f"{word} {count}" for word, count in asked.most_common())
    source = "\n".join(module.text for module in product)
    return {
        "`noqa`": str(source.count("# noqa")),
        "`type: ignore`": str(source.count("# type: ignore")),
        "public class names repeated within a room": f"{len(in_rooms)} ({', '.join(in_rooms)})",
        "public class names repeated in the tree": str(len(everywhere)),
        "docstrings that begin with Tell, Have, Let, Take": f"{asked.total()} ({words})",
    }


def _tests(product: list[Module], tests: list[Module]) -> dict[str, str]:
    count = sum(name.startswith("test_") for module in tests for _, name in module.functions())
    mocks = sum(len(_MOCK.findall(module.text)) for module in tests)
    paths = {module.path for module in tests}
    plain = [module.path for module in product if module.path.stem != "__init__"]
    mirrored = sum(Path("tests", path.parent, f"test_{path.name}") in paths for path in plain)
    return {
        "tests": f"{count:,}",
        "test files": str(sum(path.name.startswith("test_") for path in paths)),
        "mocks per test": f"{mocks / max(count, 1):.3f} ({mocks})",
        "modules with a test file of their name": f"{mirrored} of {len(plain)}",
    }


def _modules(tree: Path, *folders: str) -> list[Module]:
    paths = [path for folder in folders for path in sorted((tree / folder).rglob("*.py"))]
    return [Module(path.relative_to(tree), path.read_text(encoding="utf-8")) for path in paths]


def _repeated(named: Iterable[tuple[str, Module]]) -> list[str]:
    """Return the names that more than one module gives to a class of its own."""
    places: dict[str, set[Path]] = defaultdict(set)
    for name, module in named:
        places[name].add(module.path)
    return sorted(name for name, paths in places.items() if len(paths) > 1)


def _span(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def main() -> int:
    trees = [Path(name) for name in sys.argv[1:]] or [Path(__file__).resolve().parent.parent]
    for tree in trees:
        if not any((tree / part).is_dir() for part in ("at", "agent")):
            sys.exit(f"{tree}: no `at` and no `agent` below it; name a checkout")
    columns = [figures(tree) for tree in trees]
    print("| | " + " | ".join(tree.resolve().name for tree in trees) + " |")
    print("|---" * (len(trees) + 1) + "|")
    for what in columns[0]:
        print(f"| {what} | " + " | ".join(column[what] for column in columns) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
