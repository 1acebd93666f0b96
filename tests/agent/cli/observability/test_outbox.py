"""`cellagent outbox`, with the stand-in and without any service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent.config import load
from agent.config.profile import OutboxSettings
from agent.outbox import Outbox
from agent.outbox.items import OutboxFull
from agent.wiring.forwarding import outbox_folder
from tests.support.commands.command_line import completed
from tests.support.commands.command_line import json_objects as cellagent
from tests.support.outbox.outboxes import event

IDENTITY = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk"]
IDENTITY += ["--software-type", "main", "--software-version", "1.0.0"]


async def test_what_cannot_be_sent_is_kept_and_listed_and_sent_later(offline, standin, monkeypatch):
    code, lines, _ = await cellagent("report", "event", *IDENTITY, "--reason", "32769")
    assert code == 6
    assert lines[0]["waiting"] == 1
    assert lines[1]["error"]["exit"] == 6
    assert "the address is hosts." in lines[1]["error"]["try"]
    code, (item, _), _ = await cellagent("outbox", "list")
    assert (code, item["kind"], item["device"]) == (0, "event", "kit-1")
    _, lines, _ = await cellagent("outbox", "list", "--limit", "0")
    assert [*map(list, lines)] == [["summary"]]
    assert (await cellagent("outbox", "list", "--limit", "-1"))[0] == 2
    heading, row, summary = completed("outbox", "list").stdout.splitlines()
    assert heading.split() == ["id", "kind", "device", "bytes", "captured", "state"]
    assert row.split()[1:3] == ["event", "kit-1"]
    assert summary.startswith("1 waiting, 0 parked, ")
    offline.write_text(
        offline.read_text().replace("http://127.0.0.1:9", standin.urls["device_cloud"])
    )
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", standin.credentials["project_key"])
    code, (told,), _ = await cellagent("outbox", "flush")
    assert (code, told) == (0, {"delivered": 1, "waiting": 0, "parked": 0})


def test_a_full_disk_is_no_refusal_of_the_service(offline):
    box = Outbox(outbox_folder(load("t")), OutboxSettings(min_free_bytes=1 << 60))
    with pytest.raises(OutboxFull):
        box.put([event(1)])
    box.set_limits(OutboxSettings(min_free_bytes=0))
    box.put([event(1)])
    box.close()
    *_, summary = completed("outbox", "list").stdout.splitlines()
    assert summary.endswith(" bytes; so far: 1 time without room")


async def test_the_outbox_tells_when_an_event_happened_not_when_it_was_queued(offline):
    happened = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    arguments = ("--metric", "a=1", "--captured-date", happened, "--queue")
    await cellagent("report", "event", *IDENTITY, *arguments)
    _, (item, _), _ = await cellagent("outbox", "list")
    assert item["captured"] == happened
