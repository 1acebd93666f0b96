"""What a report does with the outbox: delivered, kept, or left for the agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.outbox import Outbox
from tests.support.commands.command_line import json_objects as cellagent

IDENTITY = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk"]
IDENTITY += ["--software-type", "main", "--software-version", "1.0.0"]


@pytest.mark.contract("O5.6", "O3.4")
async def test_an_event_is_delivered_at_once_when_the_service_is_there(online):
    code, (told,), _ = await cellagent("report", "event", *IDENTITY, "--metric", "battery_pct=77")
    assert code == 0
    assert told == {"queued": 1, "duplicates": 0, "delivered": 1, "waiting": 0, "parked": 0}


async def test_a_wrong_key_is_exit_5_and_loses_nothing(online, monkeypatch):
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", "0" * 32)
    code, lines, _ = await cellagent("report", "event", *IDENTITY, "--metric", "a=1")
    assert (code, lines[0]["waiting"]) == (5, 1)
    advice = lines[-1]["error"]["try"]
    assert "set CELLAGENT_PROJECT_KEY to a valid one; then `cellagent outbox flush" in advice


async def test_what_is_reported_again_while_it_waits_is_no_success(online, tmp_path, monkeypatch):
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", "0" * 32)
    dump = tmp_path / "core.bin"
    dump.write_bytes(b"CORE" + bytes(60))
    for queued, duplicates in ((1, 0), (0, 1)):
        code, lines, _ = await cellagent("report", "coredump", str(dump))
        assert (lines[0]["queued"], lines[0]["duplicates"]) == (queued, duplicates)
        assert (code, lines[0]["waiting"]) == (5, 1)
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", online.credentials["project_key"])
    for delivered in (1, 0):
        code, (told,), _ = await cellagent("report", "coredump", str(dump))
        assert (code, told["duplicates"], told["delivered"]) == (0, 1, delivered)


async def test_while_the_agent_holds_the_outbox_items_are_left_for_it(offline, tmp_path):
    folder = Path(os.environ["CELLAGENT_STATE_DIR"]) / "outbox" / "t"
    with Outbox(folder, OutboxSettings(min_free_bytes=0)) as box:
        code, (told,), _ = await cellagent("report", "event", *IDENTITY, "--metric", "a=1")
        assert (code, told) == (0, {"queued": 1, "left_for_the_agent": True})
        code, (told,), _ = await cellagent("outbox", "list")
        assert (code, told["error"]["kind"]) == (3, "outbox-held")
        from agent.outbox.handoff import collect

        assert collect(box) == 1
        assert collect(box) == 0
        assert box.transact(lambda store: store.totals()).waiting == 1
