"""`cellagent modem on`, `off` and `reset`, on virtual modems and beside a running agent."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from agent.cli.framework.session import Session
from agent.cli.modem.power import reset
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.commands.command_line import Done, cellagent
from tests.support.commands.running_agent import (
    agent_on,
    concern_of,
    kit_keys,
    serve,
    virtual_kit,
    write_profile,
)
from tests.support.modem.served_kit import ServedKit, served


def run(kit: ServedKit, *words: str) -> Done:
    return asyncio.run(cellagent(*words, "--port", str(kit.port)))


def test_it_is_turned_on_until_it_is_on_the_network_and_off_again(tmp_path: Path) -> None:
    with served(tmp_path) as kit:
        (turned_on,) = run(kit, "modem", "on", "--json").lines
        assert turned_on["registered"]
        assert not turned_on["causes"]
        assert run(kit, "modem", "at", "AT+CFUN?").out.splitlines()[0] == "+CFUN: 1"
        (flight,) = run(kit, "modem", "off", "--flight", "--json").lines
        assert flight["functional_mode"] == 4
        done = run(kit, "modem", "off")
        assert (done.code, done.out) == (0, f"{kit.port} is off (functional mode 0)\n")
        assert run(kit, "modem", "at", "AT+CFUN?").out.splitlines()[0] == "+CFUN: 0"


def test_a_modem_that_refuses_to_be_turned_on_says_so(tmp_path: Path) -> None:
    recorded = tmp_path / "kit.transcript"
    off = "> AT+CFUN?\n< +CFUN: 4\n< OK\n> AT+CEREG?\n< +CEREG: 0,0\n< OK\n"
    recorded.write_text(f"# transcript: 1\n> AT+CFUN=1\n< +CME ERROR: 528\n{off}")
    done = asyncio.run(cellagent("modem", "on", "--port", f"replay:{recorded}"))
    assert done.code == 1
    assert "+CFUN: the modem answered +CME ERROR 528" in done.err
    assert "raise the supply voltage" in done.err
    assert "`cellagent modem on" not in done.out, "it sends a person where they come from"


@pytest.mark.parametrize(("fault", "cause"), [("no-sim", "sim"), ("denied=15", "emm-15")])
def test_what_keeps_it_from_the_network_is_told(tmp_path: Path, fault: str, cause: str) -> None:
    with served(tmp_path, "--fault", fault) as kit:
        done = run(kit, "modem", "on", "--deadline", "2", "--json")
    (told,) = done.lines
    assert done.code == 1
    assert not told["registered"]
    assert cause in told["causes"][0]["cause"]


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem"])
def test_a_reset_puts_back_what_it_was_set_to(tmp_path: Path, dialect: str) -> None:
    with served(tmp_path, "--dialect", dialect) as kit:
        run(kit, "modem", "at", "AT+CFUN=1", "AT+CEREG=5")
        done = run(kit, "modem", "reset", "--json")
        (told,) = done.lines
        assert (done.code, told["back"], told["restarted"]) == (0, True, dialect != "at-host")
        assert run(kit, "modem", "at", "AT+CFUN?").out.splitlines()[0] == "+CFUN: 1"
        assert run(kit, "modem", "at", "AT+CEREG?").out.startswith("+CEREG: 5,")


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem"])
async def test_a_reset_that_is_stopped_at_any_command_leaves_the_modem_on_as_it_was(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reset.callback is not None
    stops_at, was_stopped = 1, True
    while was_stopped:
        transport = VirtualTransport(instant=True, registered=True, dialect=dialect)
        modem = Modem(transport)
        await modem.open()
        await modem.execute("AT+CEREG=5")
        monkeypatch.setattr(Session, "modem", lambda _self: contextlib.nullcontext(modem))  # noqa: B023
        resetting = asyncio.ensure_future(reset.callback(Session()))
        stop_at(transport, stops_at, resetting)
        await asyncio.wait([resetting])
        was_stopped, stops_at = resetting.cancelled(), stops_at + 1
        kept = transport.modem.kit.session
        assert (kept.fun, kept.subscriptions.cereg) == (1, 5), stops_at
        await modem.close()
    assert stops_at > 10


def stop_at(transport: VirtualTransport, command: int, work: asyncio.Future[None]) -> None:
    """Cancel work when it has written so many commands."""
    write, numbers = transport.write, itertools.count(1)

    def written(data: bytes) -> None:
        write(data)
        if next(numbers) == command:
            work.cancel()

    transport.write = written  # type: ignore[method-assign]


@pytest.mark.parametrize("words", ["scan cells", "locate --with cell", "locate"])
def test_what_needs_the_radio_says_that_the_modem_is_off_and_the_way_out_can_be_pasted(
    tmp_path: Path, words: str, closed_service: None
) -> None:
    with served(tmp_path) as kit:
        run(kit, "modem", "off")
        done = run(kit, *words.split())
        assert done.code == 1
        assert "the modem is off (functional mode 0)" in done.err
        pasted = re.search(r"`cellagent ([^`]*)`", done.err)
        assert pasted is not None, done.err
        assert asyncio.run(cellagent(*shlex.split(pasted[1]))).code == 0
        assert "the modem is off" not in run(kit, *words.split()).err


async def test_an_agent_that_keeps_kits_online_leaves_off_what_a_person_turns_off(
    tmp_path: Path,
) -> None:
    served_kit = await virtual_kit(tmp_path)
    cloud = await serve("cloud", "serve")
    kit = {**kit_keys(tmp_path), "keep_online": "always", "settle_s": 0}
    environment = write_profile(tmp_path, cloud.ready, {"kit": kit})
    async with agent_on(environment) as agent:
        await agent.until_status(lambda status: registration(status) == 1)  # it turned it on
        assert (await agent.run("modem", "off")).code == 0
        await agent.until_status(is_off)
        (found,) = (await agent.run("modem", "why", "--json")).lines
        assert found["causes"][0]["cause"] == "modem-off"
        assert (await agent.run("modem", "on")).code == 0
        await agent.until_status(lambda status: registration(status) == 1)
    turned_on = [line for line in agent.log if "turned on" in line]
    assert len(turned_on) == 1, turned_on
    await cloud.end()
    await served_kit.end()


def registration(status: dict[str, Any]) -> object:
    return concern_of(status, "kit", "link").get("registration")


def is_off(status: dict[str, Any]) -> bool:
    found = concern_of(status, "kit", "link").get("findings") or []
    return any("the modem is off" in each["what"] for each in found)
