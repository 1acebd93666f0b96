"""An nRF93M1 brings itself into the team."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import cellagent
from standin import StandIn

from agent.cli.device.onboard_kit import registration_token
from agent.errors import AgentError
from at.driver.modem import Modem
from at.virtual.options import VirtualOptions
from at.virtual.server.runner import make_modem
from at.virtual.state import StateFile
from at.virtual.transport import VirtualTransport

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


def kit_of(folder: Path, model: str, firmware: str = "") -> tuple[str, str]:
    flash = StateFile(folder / "kit.json")
    saved = make_modem(VirtualOptions(model=model, firmware=firmware), flash).kit.saved
    flash.store(saved)
    flash.release()
    return f"virtual:{folder / 'kit.json'}", saved.uuid


@pytest.mark.contract("D10.8")
async def test_it_is_onboarded_with_its_own_token_and_no_secret_is_shown(
    standin_profile: str, standin: StandIn, tmp_path: Path
) -> None:
    port, uuid = kit_of(tmp_path, "nrf93m1")
    words = ("device", "onboard-kit", "--port", port, "--tag", "bench")
    unset = await cellagent(*words)
    assert unset.code == 1
    assert "--set-clock" in unset.err
    done = await cellagent(*words, "--set-clock", "--json", "-v")
    assert done.lines[0] == {"device_id": uuid, "team": standin.cloud.team_id}, done.err
    assert "eyJ" not in done.out + done.err
    shown = (await cellagent("device", "show", uuid, "--json")).lines[0]
    assert (shown["tags"], shown["subType"]) == (["bench"], "nRF93M1")


async def test_another_modem_is_refused_before_anything_is_sent(
    standin_profile: str, standin: StandIn, tmp_path: Path
) -> None:
    port, uuid = kit_of(tmp_path, "nrf9161")
    done = await cellagent("device", "onboard-kit", "--port", port)
    assert (done.code, "no nRF93M1" in done.err) == (2, True)
    assert (await cellagent("device", "show", uuid)).code == 1


async def test_a_firmware_that_may_not_speak_is_refused_by_the_gate(
    standin_profile: str, tmp_path: Path
) -> None:
    port, _ = kit_of(tmp_path, "nrf9160", "mfw_nrf9160_1.2.8")
    assert (await cellagent("device", "onboard-kit", "--port", port)).code == 4


async def test_a_token_of_another_device_is_not_used() -> None:
    transport = VirtualTransport(model="nrf93m1", instant=True)
    modem = Modem(transport)
    await modem.open()
    try:
        token = await registration_token(modem, "team", set_clock_to=NOW)
        assert token.device_uuid == transport.modem.kit.saved.uuid
        with pytest.raises(AgentError, match="not of the device"):
            await registration_token(_Forged(modem), "team", set_clock_to=None)  # type: ignore[arg-type]
    finally:
        await modem.close()


class _Forged:
    """A modem whose token is asked for in the name of another team."""

    def __init__(self, modem: Modem) -> None:
        self._modem = modem

    async def send(self, command: object) -> object:
        if type(command).__name__ == "MakeRegistrationToken":
            command = type(command)("another")  # type: ignore[call-arg]
        return await self._modem.send(command)  # type: ignore[arg-type]
