"""The house as docs/architecture.md draws it: imports point one way."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from scripts import figures

ROOT = Path(__file__).resolve().parent.parent
IMPORTS = ROOT / "docs" / "reference" / "imports.md"
_MOST_ANY = 8.0  # in 1,000 lines of code

# A room of the agent -> the other rooms that it may import; the rings of docs/architecture.md.
BASE = {
    "__init__": set(),
    "errors": set(),
    "extras": {"errors"},
    "json_value": set(),
    "listening": set(),
    "redact": set(),
    "tasks": set(),
    "programs": set(),
    "call": {"errors", "json_value"},
    "retry": {"errors"},
    "files": {"errors"},
    "config": {"errors", "extras", "files", "json_value", "redact"},
    "auth": {"call", "config", "errors", "files", "json_value", "redact"},
    "http": {
        "__init__",
        "auth",
        "call",
        "config",
        "errors",
        "files",
        "json_value",
        "redact",
        "retry",
    },
}
PARTS = {
    "cloud": set[str](),
    "observability": set(),
    "outbox": {"observability"},
    "console": set(),
    "location": set(),
    "fota": set(),
    "provisioning": {"cloud"},
}
_WIRED = {*BASE, "cloud", "observability", "outbox", "console", "fota"}
ROOMS = {
    **BASE,
    **{part: {*BASE, *others} for part, others in PARTS.items()},
    "standin": {"json_value"},
    "wiring": _WIRED,
    "daemon": {*_WIRED, "location", "wiring"},
    "page": {*BASE, "console", "daemon", "provisioning"},
    "demo": {*BASE, *PARTS, "wiring", "standin"},
    "testing": {*BASE, "standin", "cli"},
    "cli": {*BASE, *PARTS, "wiring", "standin", "daemon", "page", "demo"},
    "__main__": {"cli"},
}
# Modules of `at` that take bytes, times and answers as arguments, and never wait or open.
IO_MODULES = {"asyncio", "socket", "serial", "serial_asyncio", "threading", "time", "pty", "select"}
AT_IO = {
    "__init__",  # its names, `open_modem` among them, are found when they are used
    "causes",
    "checkup",
    "device_uuid",
    "found_state",
    "provisioning_host",
    "discovery",
    "driver",
    "firmware_gate",
    "imei",
    "ports",
    "pytest_plugin",
    "transcripts",
    "transport",
    "virtual",
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the absolute names that a module imports, at its top or within."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def part(path: Path) -> str:
    """Return the room of a module: "cloud" for agent/cloud/device.py, "call" for agent/call.py."""
    return path.relative_to(ROOT).parts[1].removesuffix(".py")


def agent_part(name: str) -> str:
    room = name.split(".")[1] if "." in name else "__init__"
    return "__init__" if room == "__version__" else room


@pytest.mark.parametrize("path", modules("at"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_driver_imports_nothing_of_the_agent_and_no_http(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & {"agent", "httpx", "starlette", "click", "rich"}


@pytest.mark.parametrize(
    "path",
    [path for path in modules("at") if part(path) not in AT_IO],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_pure_half_of_the_driver_waits_for_nothing(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & IO_MODULES
    inner = {name.split(".")[1] for name in imported(path) if name.startswith("at.")}
    assert not inner & (AT_IO | set(_public_names()["at"]))


def test_the_virtual_modem_shares_nothing_that_speaks_at_with_what_it_tests() -> None:
    names = {
        name
        for path in modules("at/virtual")
        for name in imported(path)
        if name.startswith("at.") and not name.startswith("at.virtual.")
    }
    assert {name for name in names if not name.startswith("at.protocol.errors.")} == {
        "at.ports.holders.shown_process",
        "at.ports.process_lock.HeldByAnother",
        "at.ports.process_lock.ProcessLock",
        "at.transport.base.Receiver",
    }


@pytest.mark.parametrize("path", modules("agent"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_rooms_of_the_agent_import_one_way(path: Path) -> None:
    own = part(path)
    used = {agent_part(name) for name in imported(path) if name.split(".")[0] == "agent"}
    assert used <= {own} | ROOMS[own]
    if own == "standin":
        assert not {name for name in imported(path) if name.split(".")[0] in {"at", "httpx"}}


def test_the_rings_of_the_agent_have_no_cycle_and_leave_no_room_out() -> None:
    TopologicalSorter(ROOMS).prepare()
    assert {part(path) for path in modules("agent")} == set(ROOMS)


@pytest.mark.parametrize(
    "path", modules("agent/standin"), ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_stand_in_s_halves_do_not_know_each_other_nor_does_their_core(path: Path) -> None:
    halves = {"device_cloud", "observability"}
    inner = path.relative_to(ROOT).parts[2:]
    if inner == ("serve.py",):
        return
    used = {
        name.split(".")[2]
        for name in imported(path)
        if name.startswith("agent.standin.") and name.count(".") >= 2
    }
    assert not used & halves - {inner[0]}


def test_no_module_imports_itself_by_a_detour() -> None:
    """Types count, too: what only a checker imports is read by people all the same."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in modules("at") + modules("agent")
    }
    graph = {
        name: {
            known
            for used in imported(path)
            for known in (used, used.rpartition(".")[0])
            if known in paths
        }
        for name, path in paths.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_package_files_hold_names_and_nothing_else() -> None:
    for path in modules("at") + modules("agent"):
        if path.name != "__init__.py":
            continue
        for node in ast.parse(path.read_text()).body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            names = isinstance(node, ast.Import | ast.ImportFrom | ast.Assign)
            # PEP 562: the names for a checker, and the function that finds one when it is used.
            lazy = isinstance(node, ast.If) and all(
                isinstance(part, ast.ImportFrom)
                or (isinstance(part, ast.FunctionDef) and part.name == "__getattr__")
                for part in node.body
            )
            assert docstring or names or lazy, f"{path}: {ast.dump(node)[:60]}"


def _public_names() -> dict[str, list[str]]:
    """Return the names of docs/reference/imports.md by package."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \|", IMPORTS.read_text(), re.MULTILINE)
    return {package: re.findall(r"`(\w+)`", names) for package, names in rows}


def test_any_is_rare() -> None:
    """What is looked into has a type. The word counts, in imports and in texts as well."""
    code = words = 0
    for path in (*modules("at"), *modules("agent")):
        module = figures.Module(path, path.read_text())
        code += module.code_lines()
        words += len(re.findall(r"\bAny\b", module.text))
    assert 1000 * words / code <= _MOST_ANY


def test_the_architecture_names_every_folder() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = {path.parent for package in ("at", "agent") for path in modules(package)}
    assert not [
        str(folder.relative_to(ROOT)) for folder in folders if f"{folder.name}/" not in page
    ]


def test_the_public_names_are_these() -> None:
    found = {}
    for path in modules("at") + modules("agent"):
        if path.name != "__init__.py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                name = ".".join(path.parent.relative_to(ROOT).parts)
                found[name] = ast.literal_eval(node.value)
    assert found == _public_names()
