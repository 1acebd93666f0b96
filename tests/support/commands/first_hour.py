"""What a person has around at the first contact: kits, services and machines, each with a fault.

Each part of a world gives names that the rows of `tests/first_hour.toml` use in braces, and may
give what a person can do about its fault, as `!words`.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.keys.key_files import self_signed
from tests.support.modem.served_kit import launched
from tests.support.outbox.full_disk import can_mount

ROOT = Path(__file__).resolve().parents[3]
_CELLAGENT = [sys.executable, "-m", "agent"]
_SHELL = re.compile(r"[|&;<>$`(){}*?~#]")
_HOLDER = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
_SMALL_DISK = """mount -t tmpfs -o size=24m,mode=700 disk "$1"
cat /dev/zero >"$1/film" # it says that the disk is full while it still has the file open
echo ready; read end"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    said: str


@dataclass
class World:
    """One empty home, a shell in it, and what was put around it."""

    folder: Path
    stack: contextlib.ExitStack
    names: dict[str, str] = field(default_factory=dict)
    by_hand: dict[str, Callable[[], None]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    inside: list[str] = field(default_factory=list)
    """The command that leads into the place where commands are typed, if that is not this one."""

    def type(self, line: str, typed: str = "") -> Ended:
        """Type a line in the shell, and what it asks for; return how it ended."""
        line = self.filled(line)
        if line.startswith("!"):
            self.by_hand[line[1:]]()
            return Ended(0, "", "")
        if line.startswith(("export ", "unset ")):
            for word in shlex.split(line)[1:]:
                name, _, value = word.partition("=")
                self.environment.pop(name, None)
                if value:
                    self.environment[name] = value
            return Ended(0, "", "")
        # Where no shell has a part in it, the command starts warm.
        plain = line.startswith("cellagent ") and not self.inside
        if plain and not _SHELL.search(re.sub("'[^']*'", "", line)):
            words = [*_CELLAGENT, *shlex.split(line)[1:]]
        else:
            words = [*self.inside, "bash", "-c", line]
        venv = f"{Path(sys.executable).parent}{os.pathsep}{self.environment['PATH']}"
        done = subprocess.run(
            words, cwd=self.folder, env={**self.environment, "PATH": venv}, input=typed,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def filled(self, text: str) -> str:
        """Return a text with what the names in braces stand for."""
        return re.sub(r"\{(\w+)\}", lambda found: self.names[found[1]], text)

    def start(self, words: list[str], until: str = "") -> subprocess.Popen[str]:
        """Start a program of somebody, and wait until it prints a line that holds `until`."""
        process = self.stack.enter_context(
            subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        self.stack.callback(process.terminate)
        assert process.stdout is not None
        assert any(until in line for line in process.stdout)
        return process

    def __post_init__(self) -> None:
        self.names["folder"] = str(self.folder)
        self.names["root"] = str(ROOT)

    def put(self, part: str) -> None:
        """Put a part around: its name, and its options."""
        name, *options = shlex.split(self.filled(part))
        PARTS[name](self, *options)


def _kit(world: World, *options: str) -> None:
    """A kit on a terminal; its fault can be taken away."""
    kits = [launched(world.folder, *options)]
    kits[0].until_ready()
    world.stack.callback(lambda: kits[0].stop())  # noqa: PLW0108 - the last of them

    def mend() -> None:
        kits[0].stop()
        kits[0] = launched(world.folder)
        kits[0].until_ready()

    world.by_hand["the kit without its fault"] = mend
    world.names["kit"] = str(kits[0].port)
    world.names["tty"] = str(Path(kits[0].port).resolve())


def _onboarded(world: World) -> None:
    """The kit in service: what an agent asks for it is answered."""
    onboard = "cellagent provision run --registration onboard --set-clock"
    done = world.type(f"{onboard} --profile standin --port {{kit}}")
    assert done.code == 0, done


def _holder(world: World) -> None:
    """Another program that has the kit's port open."""
    process = world.start([sys.executable, "-S", "-c", _HOLDER, world.names["kit"]], "held")
    world.names["pid"] = str(process.pid)


def _agent(world: World, *options: str) -> None:
    """The agent at work."""
    process = world.start([*_CELLAGENT, "run", *options], "it runs")
    world.names["pid"] = str(process.pid)


def _server(world: World, *options: str) -> None:
    """A stand-in of one's own, whose profile is in the home."""
    process = subprocess.Popen(
        [*_CELLAGENT, "cloud", "serve", "--json", *options], cwd=world.folder,
        env=world.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    world.stack.callback(process.wait, 60)
    world.stack.callback(process.terminate)
    assert process.stdout is not None
    said = ""
    while not (line := process.stdout.readline()).startswith("{"):
        said += line
    process.stdout.close()
    ready = json.loads(line)
    world.names |= {name: str(value) for name, value in ready["credentials"].items()}
    world.names["address"] = ready["urls"]["api"].removeprefix("http://")
    world.names["proxy"] = said.rpartition("HTTPS_PROXY=")[2].strip()


def _cloud(world: World) -> None:
    """The stand-in that all rows share, with its profile in this home."""
    config = Path(world.environment["XDG_CONFIG_HOME"]) / "cellagent"
    shutil.copytree(world.names["profile_of_cloud"], config, dirs_exist_ok=True)


def _small_disk(world: World) -> None:
    """A full file system, on which the agent keeps its state."""
    if not can_mount():
        pytest.skip("may mount no file system of its own here, such as within a chroot")
    disk = world.folder / "disk"
    disk.mkdir()
    enter = ("--map-root-user", "--user", "--mount")
    process = world.start(["unshare", *enter, "sh", "-c", _SMALL_DISK, "sh", str(disk)], "ready")
    world.inside = ["nsenter", "--user", "--mount", "-t", str(process.pid), "--preserve"]
    world.names["disk"] = world.environment["CELLAGENT_STATE_DIR"] = str(disk)


def _plain_user(world: World) -> None:
    """A person whom the rights of a file bind, as they do not bind root."""
    if os.geteuid() == 0:
        world.inside = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


def _old_python(world: World) -> None:
    """A `python3` in the folder `old` that says it is 3.9.2, and this one by its version's name."""
    bin_ = world.folder / "bin"
    for folder, name, before in (
        (world.folder / "old", "python3", "import sys; sys.version_info = (3, 9, 2)"),
        (bin_, "python3.14", "import sys"),
    ):
        run = f"{before}; import os, runpy; sys.argv = sys.argv[1:]"
        run += "; sys.path.insert(0, os.path.dirname(sys.argv[0]))"
        run += "; runpy.run_path(sys.argv[0], run_name='__main__')"
        folder.mkdir()
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
        (folder / name).chmod(0o755)
    world.environment["PATH"] = f"{bin_}{os.pathsep}{world.environment['PATH']}"


def _image(world: World) -> None:
    """An image of the kit's application, version 2.0.1."""
    world.names["image"] = str(world.folder / "app.bin")
    assert world.type("cellagent demo --write-image app.bin").code == 0


class _Answer(BaseHTTPRequestHandler):
    """An empty fleet."""

    def do_GET(self) -> None:
        body = b'{"items":[],"total":0}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _tls(world: World, kind: str) -> None:
    """A server with a certificate that is signed by itself and `expired`, `early` or not right."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own, trusted = world.folder / "server.pem", world.folder / "ca.pem"

    def issue(kind: str) -> None:
        begin, end = {"expired": (-9, -1), "early": (1, 9)}.get(kind, (-1, 9))
        pem = self_signed("localhost", "", begin_days=begin, end_days=end)
        own.write_bytes(pem)
        trusted.write_bytes(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
        context.load_cert_chain(own)

    issue(kind)
    server = HTTPServer(("127.0.0.1", 0), _Answer)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if kind != "plain":
        server.socket = context.wrap_socket(server.socket, True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    world.stack.callback(thread.join)
    world.stack.callback(server.server_close)
    world.stack.callback(server.shutdown)
    world.names |= {"tls": str(server.server_port), "ca": str(trusted)}
    world.by_hand["a certificate of today"] = lambda: issue("")


PARTS: dict[str, Callable[..., None]] = {
    "kit": _kit, "holder": _holder, "agent": _agent, "server": _server, "cloud": _cloud,
    "small-disk": _small_disk, "tls": _tls, "plain-user": _plain_user, "image": _image,
    "old-python": _old_python, "onboarded": _onboarded,
}  # fmt: skip


@contextlib.contextmanager
def shared_cloud(folder: Path) -> Iterator[dict[str, str]]:
    """Serve one stand-in for many rows; give the names that a world gets of it."""
    with contextlib.ExitStack() as stack:
        world = World(folder, stack)
        world.environment |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        _server(world, "--write-profile", "standin", "--state", str(folder / "cloud.db"))
        yield {**world.names, "profile_of_cloud": str(folder / "cellagent")}
