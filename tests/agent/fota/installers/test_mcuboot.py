from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fota.download_server import file_server
from tests.support.fota.file_backed_kit import FileBackedCloud, make_runner
from tests.support.fota.signed_images import compressed_image, signed_image, signing_key
from tests.support.harness.manual_clock import ManualClock

pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")

from serial import Serial

from agent.fota.image import read_image
from agent.fota.install import SAME_ANSWERS, NotSeen, read_back
from agent.fota.installers import mcuboot
from agent.fota.installers.base import InstallFailed, Package, RunningVersion
from agent.fota.installers.mcuboot import McubootInstaller
from agent.fota.jobs import FirmwareType, Job
from agent.fota.verification import TrustPolicy, prove
from at.protocol.errors import LinkLost, NoAnswer, PortBusy
from at.virtual.server.pty import PtyServer
from tests.support.fota.smp_server import SmpKit, SmpLine, booted, smp_kit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BODY = bytes(range(256)) * 200


class QuickClock(ManualClock):
    """Moves by itself, yet lets the kit's own restart happen."""

    async def sleep(self, seconds: float) -> None:
        import asyncio

        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0.03)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcuboot, "_ANSWER_S", 0.4)
    monkeypatch.setattr(mcuboot, "_ERASE_S", 0.8)


@asynccontextmanager
async def kit(folder: Path, **options: Any) -> AsyncIterator[SmpKit]:
    key = signing_key("ecdsa")
    old = signed_image(folder, "1.0.0", key=key, body=BODY, name="old.bin")
    async with smp_kit(folder, old, **options) as served:
        yield served


def package(folder: Path, version: str = "2.0.1+7") -> Package:
    path = signed_image(folder, version, key=signing_key("ecdsa"), body=BODY[::-1])
    job = Job("j", FirmwareType.APP, "h", ("p",), path.stat().st_size, version)
    return Package(job, (path,), version, read_image(path).running_hash.hex())


async def test_an_image_is_uploaded_tried_seen_and_confirmed(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    async with kit(tmp_path) as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        assert await installer.check(new.job) == ""
        before = await installer.running(FirmwareType.APP)
        assert before is not None
        assert before.version == "1.0.0"
        await installer.install(new, lambda *at: seen.append(at))
        assert await read_back(installer, new, before="1.0.0", clock=QuickClock()) == "2.0.1.7"
        assert not served.confirmed
        await installer.confirm(new)
        assert served.confirmed
        served.restart()
        now = await installer.running(FirmwareType.APP)
        assert now == RunningVersion("2.0.1.7", new.image_hash)
    size = new.paths[0].stat().st_size
    assert seen[-1] == ("upload", size, size)
    assert len(seen) > 5


async def test_a_compressed_image_is_known_by_the_hash_of_what_it_unpacks_to(
    tmp_path: Path,
) -> None:
    async with kit(tmp_path, mode=2) as served:
        installer, new = McubootInstaller(served.port), package(tmp_path, "2.0.1")
        unpacked = served._slot(new.paths[0].read_bytes())
        path = compressed_image(tmp_path, "2.0.1", key=signing_key("ecdsa"), body=BODY[::-1])
        new = replace(
            new, paths=(path,), image_hash=prove(path, new.job, "", TrustPolicy()).image_hash
        )
        restart = served.restart

        def unpack_and_restart() -> None:
            if served.pending:
                served.second = unpacked
            restart()

        served.restart = unpack_and_restart  # type: ignore[method-assign]
        await installer.install(new, lambda *_: None)
        assert await read_back(installer, new, before="1.0.0", clock=QuickClock()) == "2.0.1"
        await installer.confirm(new)
        assert served.confirmed


@pytest.mark.parametrize(
    ("mood", "words"),
    [
        ("no-swap", "runs 1.0.0 as before"),
        ("dead", "did not answer"),
        ("crash", "runs 1.0.0 as before"),
    ],
)
async def test_what_does_not_come_up_is_seen(tmp_path: Path, mood: str, words: str) -> None:
    async with kit(tmp_path, mood=mood) as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        await installer.install(new, lambda *_: None)
        if mood == "crash":
            import asyncio

            await asyncio.sleep(0.2)
        with pytest.raises(NotSeen, match=words):
            await read_back(installer, new, before="1.0.0", clock=QuickClock(), deadline_s=12)


async def test_an_image_that_is_not_confirmed_goes_back_and_is_noticed(tmp_path: Path) -> None:
    async with kit(tmp_path) as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        await installer.install(new, lambda *_: None)
        await read_back(installer, new, before="1.0.0", clock=QuickClock())
        served.restart()
        with pytest.raises(NotSeen, match=r"runs 1\.0\.0 as before"):
            await read_back(installer, new, before="1.0.0", clock=QuickClock())
        with pytest.raises(InstallFailed, match=r"it went back: the kit runs 1\.0\.0 again"):
            await installer.confirm(new)
        assert not served.pending


@pytest.mark.parametrize(
    ("is_marked", "due"), [(True, [(0, 5)]), (False, [(1, 0), (0, 5)])], ids=["marked", "uploaded"]
)
async def test_an_image_that_is_there_is_marked_once_and_its_start_is_waited_for(
    tmp_path: Path, is_marked: bool, due: list[tuple[int, int]]
) -> None:
    async with kit(tmp_path) as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        served.second, served.pending = served._slot(new.paths[0].read_bytes()), is_marked
        writes: list[tuple[int, int]] = []
        answer = served.answer

        def heard(group: int, command: int, write: bool, body: dict[str, Any]) -> dict[str, Any]:
            writes.extend([(group, command)] * write)
            return answer(group, command, write, body)

        def slowly(seconds: float) -> None:
            served._deaf = False

        class Boots(QuickClock):
            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                if len(self.waits) == 2 * SAME_ANSWERS:
                    served.restart()

        served.answer, served._restart_in = heard, slowly  # type: ignore[method-assign] # this kit alone
        await installer.install(new, lambda *_: None)
        assert writes == due  # the state of the slots; a restart
        assert await read_back(installer, new, before="1.0.0", clock=Boots()) == "2.0.1.7"


async def test_an_upload_that_does_not_fit_is_named(tmp_path: Path) -> None:
    async with kit(tmp_path, slot_bytes=1000) as served:
        with pytest.raises(InstallFailed, match="refused the upload"):
            await McubootInstaller(served.port).install(package(tmp_path), lambda *_: None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"rc": 257, "rsn": "no downgrade"}, "error 257: no downgrade"),
        ({"rc": 257}, "error 257"),
        ({"err": {"group": 64, "rc": 5}}, "error 5 of group 64"),
        ({"err": {"group": 1, "rc": 34}}, "error 34 of group 1"),
        ({"err": {"group": 1, "rc": 28}}, "IMAGE_ALREADY_PENDING"),
    ],
)
@pytest.mark.parametrize("asked", ["_take", "_set_state"])
async def test_an_error_of_the_applications_own_is_a_refusal_that_names_it(
    tmp_path: Path, asked: str, answer: dict[str, Any], words: str
) -> None:
    async with kit(tmp_path) as served:
        setattr(served, asked, lambda _body: answer)
        with pytest.raises(InstallFailed, match=f"{words}$"):
            await McubootInstaller(served.port).install(package(tmp_path), lambda *_: None)


async def test_bytes_that_arrive_as_others_are_told_in_words(tmp_path: Path) -> None:
    async with kit(tmp_path) as served:
        take = served._take
        served._take = lambda body: {**take(body), "match": False}  # type: ignore[method-assign] # this kit alone
        with pytest.raises(InstallFailed, match=r"server reported mismatched SHA256$"):
            await McubootInstaller(served.port).install(package(tmp_path), lambda *_: None)


async def test_a_line_that_goes_dead_is_a_lost_link_and_the_upload_goes_on_later(
    tmp_path: Path,
) -> None:
    async with kit(tmp_path, mood="cut") as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        with pytest.raises(LinkLost, match=r"went silent during the upload: no answer in 0\.8 s$"):
            await installer.install(new, lambda *_: None)
        served.mood = "good"
        served._deaf = False
        await installer.install(new, lambda *_: None)
        assert served.uploads == 1


async def test_an_upload_over_a_line_that_loses_packets_and_answers_comes_to_its_end(
    tmp_path: Path,
) -> None:
    async with kit(tmp_path, mood="lossy") as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        await installer.install(new, lambda *_: None)
        assert await read_back(installer, new, before="1.0.0", clock=QuickClock()) == "2.0.1.7"
        # The answer to the last packet is lost, too: it is uploaded once more.
        assert served.uploads == 2


async def test_an_answer_that_comes_late_is_that_of_no_other_request(tmp_path: Path) -> None:
    async with kit(tmp_path, mood="late") as served:
        installer, new = McubootInstaller(served.port), package(tmp_path)
        await installer.install(new, lambda *_: None)
        assert await read_back(installer, new, before="1.0.0", clock=QuickClock()) == "2.0.1.7"


async def test_an_upload_that_is_lost_again_and_again_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcuboot, "_SILENCES", 3)
    async with kit(tmp_path, mood="lossy") as served:
        with pytest.raises(LinkLost, match="went silent"):
            await McubootInstaller(served.port).install(package(tmp_path), lambda *_: None)


async def test_a_kit_that_is_not_fit_says_why(tmp_path: Path) -> None:
    async with kit(tmp_path, mood="mute") as served:
        with pytest.raises(NoAnswer, match=f"no SMP server answers on {served.port}"):
            await McubootInstaller(served.port).check(package(tmp_path).job)
        assert await McubootInstaller(served.port).running(FirmwareType.APP) is None
    async with kit(tmp_path, confirmed=False) as served:
        reason = await McubootInstaller(served.port).check(package(tmp_path).job)
        assert "on trial" in reason
    with pytest.raises(NoAnswer, match="no SMP server answers on /dev/pts/none"):
        await McubootInstaller("/dev/pts/none").check(package(tmp_path).job)


@pytest.mark.parametrize("has_smp", [False, True])
async def test_an_echo_is_no_answer(tmp_path: Path, has_smp: bool) -> None:
    old = signed_image(tmp_path, "1.0.0", key=signing_key("ecdsa"), body=BODY, name="old.bin")
    served = booted(tmp_path, old)
    line = SmpLine(served)

    def receive(data: bytes) -> None:
        port.send(data)
        if has_smp:
            line.receive(data)

    port = PtyServer(tmp_path / "shell", receive)
    served.say = port.send
    installer, new = McubootInstaller(port.port), package(tmp_path)
    try:
        if has_smp:
            assert await installer.check(new.job) == ""
        else:
            with pytest.raises(NoAnswer, match=r"no answer in 0\.4 s; it echoes what it gets"):
                await installer.check(new.job)
    finally:
        port.close()


@pytest.mark.parametrize(
    ("mood", "status", "words"),
    [("good", "SUCCEEDED", "2.0.1.7 runs; intact"), ("no-swap", "FAILED", "runs 1.0.0 as before")],
)
async def test_a_whole_job_over_smp_ends_in_what_was_seen(
    tmp_path: Path, mood: str, status: str, words: str
) -> None:
    new = package(tmp_path)
    async with kit(tmp_path, mood=mood) as served, file_server(new.paths[0].read_bytes()) as host:
        cloud = FileBackedCloud(tmp_path)
        cloud.offer(
            firmwareType="APP",
            host=host.url,
            path="a.bin",
            fileSize=new.job.size_bytes,
            version="2.0.1.7",
        )
        installer = McubootInstaller(served.port)
        runner = make_runner(tmp_path, clock=QuickClock(), installer=installer)
        result = await runner.pull()
        await runner.close()
        assert result is not None
        assert (result.status.value, served.confirmed) == (status, True)
        assert words in result.detail
        assert cloud.statuses == ["IN_PROGRESS", status]


@pytest.mark.parametrize("which", ["request", "answer"])
async def test_a_restart_that_the_line_loses_is_asked_for_again_and_never_twice(
    tmp_path: Path, which: str
) -> None:
    async with kit(tmp_path) as served:
        frame, lost = served.frame, []

        def lossy(data: bytes) -> bytes | None:
            is_reset = (data[5], data[7]) == (0, 5)  # the group of the system, and its command
            if not is_reset or lost:
                return frame(data)
            lost.append(data if which == "request" else frame(data))
            return None

        served.frame = lossy  # type: ignore[method-assign] # this kit alone
        installer, new = McubootInstaller(served.port), package(tmp_path)
        await installer.install(new, lambda *_: None)
        await read_back(installer, new, before="1.0.0", clock=QuickClock())
        await installer.confirm(new)
        assert (len(lost), served.restarts, served.confirmed) == (1, 1, True)


async def test_what_an_application_adds_to_the_state_of_its_slots_is_left_alone(
    tmp_path: Path,
) -> None:
    async with kit(tmp_path) as served:
        states = served._states

        def more() -> dict[str, Any]:
            told = states()
            return {"images": [{**slot, "compressed": False} for slot in told["images"]], "rc": 0}

        served._states = more  # type: ignore[method-assign] # this kit alone
        installer, new = McubootInstaller(served.port), package(tmp_path)
        assert await installer.check(new.job) == ""
        await installer.install(new, lambda *_: None)
        await read_back(installer, new, before="1.0.0", clock=QuickClock())
        await installer.confirm(new)
        assert served.confirmed


@pytest.mark.parametrize(
    ("mode", "refused"), [(None, False), (3, False), (1, False), (6, True), (0, True)]
)
async def test_a_boot_loader_that_tries_no_image_gets_none(
    tmp_path: Path, mode: int | None, refused: bool
) -> None:
    async with kit(tmp_path, mode=mode) as served:
        reason = await McubootInstaller(served.port).check(package(tmp_path).job)
    assert ("no image can be tried and confirmed" in reason) == refused
    assert bool(reason) == refused


async def test_a_port_that_is_taken_names_who_has_it(tmp_path: Path) -> None:
    async with kit(tmp_path) as served:
        installer = McubootInstaller(served.port)
        with Serial(served.port, exclusive=True), pytest.raises(PortBusy) as raised:
            await installer.running(FirmwareType.APP)
        assert f"PID {os.getpid()}" in str(raised.value)
        assert await installer.running(FirmwareType.APP) is not None


async def test_what_the_kit_prints_between_packets_is_handed_on(tmp_path: Path) -> None:
    heard = bytearray()

    async def overheard(data: bytes) -> None:
        heard.extend(data)

    async with kit(tmp_path) as served:
        answer = served.answer

        def chatty(*request: Any) -> dict[str, Any]:
            served.say(b"a line of the console\r\n")
            return answer(*request)

        served.answer = chatty  # type: ignore[method-assign] # this kit alone
        await McubootInstaller(served.port, overheard=overheard).running(FirmwareType.APP)
        assert heard.count(b"a line of the console\r\n") == served.requests
