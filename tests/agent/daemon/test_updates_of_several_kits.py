"""Several kits with MCUboot and one agent: each has the update that is its own, by its own port."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent
from tests.support.commands.running_agent import (
    agent_on,
    concern_of,
    kit_keys,
    virtual_kit,
    write_profile,
)
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    PREFER_API_KEY,
    job_status,
    offer_update,
    onboard_device,
)

pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")

from tests.support.fota.smp_server import smp_kit

if TYPE_CHECKING:
    from tests.support.fota.smp_server import SmpKit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

NEW = {"left": ("352656109000011", "2.0.1"), "right": ("352656109000029", "3.0.0")}
"""Kit -> its IMEI, and the version that it is offered."""


def have_ended(status: dict[str, Any]) -> bool:
    return all("last" in concern_of(status, name, "fota") for name in NEW)


@pytest.mark.contract("C6")
async def test_each_kit_gets_its_own_image_by_its_own_port(standin: StandIn, tmp_path: Path):
    boards: dict[str, SmpKit] = {}
    kits, jobs = {}, {}
    async with contextlib.AsyncExitStack() as stack:
        for name, (imei, version) in NEW.items():
            folder = tmp_path / name
            folder.mkdir()
            await virtual_kit(folder, "kit", "--imei", imei)
            old = signed_image(folder, "1.0.0", name="old.bin")
            board = boards[name] = await stack.enter_async_context(smp_kit(folder, old))
            kits[name] = {**kit_keys(folder), "device_id": name, "mcuboot_port": board.port}
            await onboard_device(standin, name)
            image = signed_image(folder, version).read_bytes()
            jobs[name] = await offer_update(standin, image, version, device=name)
        where = write_profile(tmp_path, standin.ready, kits, PREFER_API_KEY)
        async with agent_on(where) as agent:
            await agent.until_status(have_ended)
            for name, (_imei, version) in NEW.items():
                assert await job_status(standin, jobs[name], name) == "SUCCEEDED", agent.log
                assert (boards[name].running.version, boards[name].confirmed) == (version, True)
            assert await agent.stop() == 0


@pytest.mark.parametrize("by", ["run", "run --port", "pull by name", "pull by port"])
async def test_the_mcuboot_port_of_the_kit_on_kit_port_takes_no_image_of_a_kit_of_the_table(
    standin: StandIn, tmp_path: Path, by: str
):
    own, other = (tmp_path / name for name in ("own", "other"))
    for folder, (imei, _version) in zip((own, other), NEW.values(), strict=True):
        folder.mkdir()
        await virtual_kit(folder, "kit", "--imei", imei, "--dialect", "serial-modem")
    await onboard_device(standin, "other")
    image = signed_image(other, "2.0.1").read_bytes()
    job = await offer_update(standin, image, "2.0.1", device="other")
    async with smp_kit(own, signed_image(own, "1.0.0", name="old.bin")) as board:
        first = {"port": str(own / "kit"), "device_id": "own", "mcuboot_port": board.port}
        keys = "\n".join(f'{key} = "{value}"' for key, value in first.items())
        extra = f"[profiles.bench.kit]\n{keys}\n{PREFER_API_KEY}"
        kits = {"other": {**kit_keys(other), "device_id": "other"}}
        where = write_profile(tmp_path, standin.ready, kits, extra)
        if by.startswith("run"):
            async with agent_on(where, *(["--port", "other"] if "--port" in by else [])) as agent:
                told = await agent.until_status(
                    lambda status: "last" in concern_of(status, "other", "fota")
                )
                assert [kit["name"] for kit in told["kits"]] == ["other"]
                assert await agent.stop() == 0
        else:
            port = "other" if "name" in by else str(other / "kit")
            done = await cellagent("fota", "pull", "--port", port, environment=where)
            assert done.code == 0, done.err
        assert await job_status(standin, job, "other") == "SUCCEEDED"
        assert (board.requests, board.running.version) == (0, "1.0.0")
