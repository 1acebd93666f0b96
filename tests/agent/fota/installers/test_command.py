from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent import programs
from agent.errors import ConfigError
from agent.fota.installers import base
from agent.fota.installers.base import InstallFailed, Package, RunningVersion
from agent.fota.installers.command import CommandInstaller
from agent.fota.jobs import FirmwareType, Job

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = Job("j", FirmwareType.APP, "h", ("p",), 4, "1.0.0")


def package(folder: Path) -> Package:
    path = folder / "image with blank;$(touch evil).bin"
    path.write_bytes(b"abcd")
    return Package(JOB, (path,), "1.0.0")


def program(code: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, "{image}", *more)


async def install(
    folder: Path,
    words: tuple[str, ...],
    timeout_s: float = 30,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> None:
    installer = CommandInstaller(words, timeout_s, None)
    assert await installer.install(package(folder), progress) == "1.0.0"
    # Somebody may flash the kit afterwards: of what runs then, the program's word tells nothing.
    assert await installer.running(FirmwareType.APP) is None


async def test_the_program_gets_the_path_as_one_argument_and_no_shell(tmp_path: Path) -> None:
    seen: list[Any] = []
    code = "import sys; print(open(sys.argv[1]).read(), len(sys.argv)); print('version: 1.0.0')"
    await install(tmp_path, program(code), progress=lambda *at: seen.append(at))
    assert seen == [("abcd 2", 0, 0), ("version: 1.0.0", 0, 0)]
    assert not (tmp_path / "evil").exists()


async def test_it_gets_none_of_our_secrets_and_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAGENT_API_KEY", "test-key")
    seen: list[str] = []
    code = (
        "import os, sys; print(sorted(os.environ), repr(sys.stdin.read())); print('version: 1.0.0')"
    )
    await install(tmp_path, program(code), progress=lambda text, *_: seen.append(text))
    assert "CELLAGENT" not in seen[0]
    assert seen[0].endswith("''")


async def test_its_exit_code_and_last_line_are_named(tmp_path: Path) -> None:
    code = "import os, sys; os.write(1, b'one\\nno probe found\\n'); sys.exit(3)"
    with pytest.raises(InstallFailed, match="exit code 3: no probe found"):
        await install(tmp_path, program(code))


async def test_a_program_that_does_not_end_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_GRACE_S", 0.2)
    code = (
        "import signal, time, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('busy', flush=True); time.sleep(60)"
    )
    with pytest.raises(InstallFailed, match="did not end within 1 s"):
        await install(tmp_path, program(code), timeout_s=1)


async def test_endless_output_without_a_line_end_is_bounded(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 3_000_000); sys.exit(1)"
    with pytest.raises(InstallFailed) as caught:
        await install(tmp_path, program(code))
    assert len(str(caught.value)) < 500


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstallFailed, match="cannot be started"):
        await install(tmp_path, ("/no/such/program", "{image}"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "names no place"),
        (("flash",), "names no place"),
        (("/no/such/program", "{image}"), "no program /no/such/program"),
    ],
)
async def test_what_cannot_work_is_told_before_the_download_and_rejects_no_job(
    words: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        await CommandInstaller(words, 1, None).check(JOB)
    assert ("whole path" if "no program" in reason else "{image}") in refused.value.hint


async def test_the_kits_own_word_goes_before_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tells(_modem: object, _kind: FirmwareType) -> RunningVersion:
        return RunningVersion("0.9.0")

    monkeypatch.setattr(base, "running_by_at", tells)
    words = program("print('version: 1.0.0')")
    installer = CommandInstaller(words, 30, object())  # type: ignore[arg-type]
    assert await installer.check(JOB) == ""
    await installer.install(package(tmp_path), lambda *_: None)
    assert await installer.running(FirmwareType.APP) == RunningVersion("0.9.0")


async def test_what_nobody_reads_back_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(InstallFailed, match="tells which APP runs now"):
        await install(tmp_path, program("print('done')"))


async def test_two_builds_are_two_arguments(tmp_path: Path) -> None:
    paths = (tmp_path / "0.bin", tmp_path / "1.bin")
    for path in paths:
        path.write_bytes(b"x")
    job = Job("j", FirmwareType.BOOT, "h", ("a", "b"), 2, "1.0.0")
    words = (sys.executable, "-c", "import sys; print('version=' + str(len(sys.argv)))", "{image}")
    installer = CommandInstaller(words, 30, None)
    seen = await installer.install(Package(job, paths, "1.0.0"), lambda *_: None)
    assert seen == "3"
