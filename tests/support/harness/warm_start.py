"""Starts `python -m agent` for the tests from a process that has imported its libraries already.

Most of a short command is imports. One server for each test process does them once, with the first
command, and forks itself for each. Another one does it for `python -m pytest` in the project of a
user. It has imported no plugin and nothing of ours: pytest is to find, rewrite and import them.
The command is a true process and a true child of the test, with streams, folder, environment, mask
and group as `subprocess` was told, and with a terminal of its own. What a fork could not be told is
started as ever: other programs, another locale, other settings of the interpreter, any other
function to call before.
"""

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import inspect
import io
import os
import pickle
import pkgutil
import platform
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[3]
_CLONE = {"x86_64": 56, "aarch64": 220}  # the number of that call, by machine
_CLONE_PARENT = 0x8000
CAN_START = sys.platform == "linux" and platform.machine() in _CLONE
if __name__ == "__main__":  # started by its file
    sys.path[0] = str(ROOT)

from tests.support.commands.on_a_terminal import take_terminal  # noqa: E402

_PROGRAM = [sys.executable, "-m"]
# What functions of the project and of its libraries import, and their modules do not.
_LIBRARIES = (
    *("_strptime", "anyio._backends._asyncio", "click._textwrap", "click.shell_completion"),
    *("cryptography.hazmat.backends.openssl.backend", "dbus_fast.aio", "elftools.elf.elffile"),
    *("encodings.ascii", "encodings.idna", "encodings.unicode_escape", "encodings.utf_8_sig"),
    *("httpx._main", "importlib.readers", "prometheus_client", "psycopg", "resource"),
    *("rich.live", "rich.progress", "rich.table", "serial.tools.list_ports"),
    *("smpclient.transport.serial", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite"),
    *("tomlkit", "uvicorn.lifespan.off", "uvicorn.lifespan.on", "xml.etree.ElementTree"),
)
# What the plugins of pytest import, ours among them: nothing that is one, as anyio is.
_OF_PLUGINS = (
    *("asyncio.subprocess", "cryptography.hazmat.backends.openssl.backend", "email.parser"),
    *("execnet", "jsonata", "msgspec.json", "pdb", "secrets", "serial_asyncio", "sysconfig"),
    *("typing_extensions", "unittest", "uvicorn", "xml.etree.ElementTree"),
)
_SETTINGS = ("PYTHON", "LANG", "LC_", "OPENSSL_", "LD_", "COVERAGE_")
# Of these: what a fork is told, and what means nothing to it.
_TOLD = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
_LENGTH = struct.Struct("=I")
# What a program may have been told to ignore by whoever started it: nohup, a script's background.
_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)


class WarmStart:
    """The server of one test process for one program; it ends with it."""

    def __init__(self, program: str) -> None:
        self._program = program
        # Of the process as it is before any test, whichever of them starts the first command.
        self._environment = dict(os.environ)
        self._ours: socket.socket | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the server."""
        if self._ours is not None:
            self._ours.close()
            os.waitpid(self._pid, 0)

    def _connected(self) -> socket.socket:
        """Return the connection to the server, which starts with the first command."""
        if self._ours is None:
            self._ours, theirs = socket.socketpair()
            theirs.set_inheritable(True)
            # Not by `subprocess`, whose processes are those of a test.
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, __file__, self._program, str(theirs.fileno())],
                self._environment,
            )
            theirs.close()
        return self._ours

    def may_start(self, wanted: dict[str, Any]) -> bool:
        """Return True if a fork can be made what `subprocess` was told to start."""
        plain = ("executable", "shell", "pass_fds", "gid", "gids", "uid")
        args = wanted["args"]
        environment = os.environ if wanted["env"] is None else wanted["env"]
        return (
            isinstance(args, list | tuple)
            and list(args[:3]) == [*_PROGRAM, self._program]
            and not any(wanted[name] not in (None, False, ()) for name in plain)
            and wanted["preexec_fn"] in (None, take_terminal)
            and wanted["close_fds"]
            and Path(wanted["cwd"] or ".").is_dir()
            and environment.get("PYTHONPATH") in (None, str(ROOT), os.environ.get("PYTHONPATH"))
            and _settings(environment) == AT_START
        )

    def start(self, wanted: dict[str, Any]) -> int:
        """Start the command; return its process id, which is that of a child of this process."""
        streams = [
            own if told == -1 else told
            for own, told in enumerate((wanted["p2cread"], wanted["c2pwrite"], wanted["errwrite"]))
        ]
        group = wanted.get("process_group")
        umask = wanted["umask"]
        environment = os.environ if wanted["env"] is None else wanted["env"]
        request = pickle.dumps(
            {
                "arguments": [os.fsdecode(word) for word in wanted["args"][3:]],
                "folder": os.path.realpath(wanted["cwd"] or "."),
                "environment": {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
                "session": wanted["start_new_session"],
                "terminal": wanted["preexec_fn"] is take_terminal,
                "group": -1 if group is None else group,
                "umask": _umask() if umask == -1 else umask,
                "ignored": [n for n in _SIGNALS if signal.getsignal(n) is signal.SIG_IGN],
            }
        )
        with self._lock:
            server = self._connected()
            socket.send_fds(server, [_LENGTH.pack(len(request))], streams)
            server.sendall(request)
            return int(_LENGTH.unpack(_read(server, _LENGTH.size))[0])


def install() -> list[WarmStart]:
    """Have `subprocess`, and asyncio, which calls it, start commands by servers from now on."""
    servers = [WarmStart(program) for program in _WARM]
    cold = subprocess.Popen._execute_child
    parameters = inspect.signature(cold)

    def execute(process: subprocess.Popen[Any], *arguments: Any) -> None:
        wanted = parameters.bind(process, *arguments).arguments
        server = next((server for server in servers if server.may_start(wanted)), None)
        if server is None:
            cold(process, *arguments)
            return
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        try:
            process.pid = server.start(wanted)
            process._child_created = True
        finally:
            process._close_pipe_fds(*(wanted[name] for name in pipes))

    subprocess.Popen._execute_child = execute
    return servers


def _settings(environment: Any) -> dict[str, str]:
    """What an interpreter or a library reads of its environment once and for all."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_SETTINGS) and name not in _TOLD
    }


AT_START = _settings(os.environ)
"""Those of a server, which starts with them."""


def _umask() -> int:
    """The mask of this process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _read(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        if not (more := source.recv(size - len(found))):
            raise EOFError
        found += more
    return found


def _serve(requests: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request; return it in the process that becomes the command."""
    while True:
        try:
            head, streams, _, _ = socket.recv_fds(requests, _LENGTH.size, 3)
            if not head:
                _leave(0)
            request = pickle.loads(_read(requests, *_LENGTH.unpack(head)))
        except (EOFError, ConnectionError):
            _leave(0)
        if (pid := _fork_beside()) == 0:
            requests.close()
            return request, streams
        for descriptor in streams:
            os.close(descriptor)
        requests.sendall(_LENGTH.pack(pid))


def _fork_beside() -> int:
    """Fork as `os.fork` does, but a child of whoever started this process.

    That is the test. A second fork between the two, which ends at once, would cost as much again.
    """
    python = ctypes.pythonapi
    call = (_CLONE[platform.machine()], _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    python.PyOS_BeforeFork()
    pid = int(python.syscall(*map(ctypes.c_long, call)))
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return pid
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("the system lets no process be forked")
    return pid


def _leave(code: int) -> NoReturn:
    os._exit(code)


def _become(program: str, request: dict[str, Any], streams: list[int]) -> None:
    """Make this process what a fresh one would be: streams, folder, environment, group, mask."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request["session"]:
        os.setsid()
    if request["group"] != -1:
        os.setpgid(0, request["group"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environb.clear()
    os.environb.update(request["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for number in _SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request["ignored"] else usual)
    if request["terminal"]:
        take_terminal()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _text(number, getattr(sys, name), "wb" if number else "rb")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv[1:] = request["arguments"]
    sys.orig_argv[:] = [*_PROGRAM, program, *request["arguments"]]
    sys.path[0] = request["folder"]
    if "PYTHONPATH" in os.environ:
        sys.path.insert(1, os.environ["PYTHONPATH"])


def _text(number: int, before: Any, mode: str) -> io.TextIOWrapper:
    """A standard stream as the interpreter makes it."""
    buffer = open(number, mode, closefd=False)  # noqa: SIM115 - it stays open
    buffer.raw.name = before.name
    return io.TextIOWrapper(
        buffer,
        encoding=before.encoding,
        errors=before.errors,
        newline="\n",
        line_buffering=number == 2 or os.isatty(number),
        write_through=bool(number and os.environ.get("PYTHONUNBUFFERED")),
    )


def _import(names: Iterable[str]) -> None:
    """Import what a command may; a command that lacks a library says so by itself."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _warm_agent() -> None:
    own = [
        module.name
        for package in ("agent", "at")
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}.")
        if not module.name.endswith("__main__")
    ]
    _import((*own, *_LIBRARIES))
    # What is made at its first use, and is the same for each command.
    for words in sys.modules["at.causes.table"].load().words:
        words.search("")
    sys.modules["at.protocol.redaction.command_redaction"].without_secrets("+")
    sys.modules["agent.config.parse"].profile_from({}, "custom")


def _warm_pytest() -> None:
    _import(("pytest", *_OF_PLUGINS))
    _import(f"_pytest.{plugin}" for plugin in sys.modules["_pytest.config"].default_plugins)


_WARM = {"agent": _warm_agent, "pytest": _warm_pytest}


def _run(program: str) -> NoReturn:
    """Be the command; what it leaves in memory is not taken apart piece by piece at its end."""
    code: Any = 0
    faulthandler.enable()  # whoever aborts one that hangs is shown where
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
        if not isinstance(code, int):
            raise
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    _leave(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the command beside it
    wanted, number = sys.argv[1:]
    _WARM[wanted]()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # a user's project has tests of its own
    gc.collect()
    gc.freeze()  # a fork copies a page that its collector touches
    _become(wanted, *_serve(socket.socket(fileno=int(number))))
    _run(wanted)
