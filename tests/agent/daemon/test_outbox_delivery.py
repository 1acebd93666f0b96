"""How the outbox and its delivery do, as the agent tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.daemon.outbox_delivery import OutboxDelivery
from agent.daemon.snapshot import OutboxStatus
from agent.daemon.status import StatusRegistry
from agent.errors import AgentError
from agent.outbox.store import Store
from tests.support.outbox.outboxes import Clock
from tests.support.outbox.poisoned_service import PoisonedService


async def test_a_full_disk_is_told_with_its_time_and_a_command_for_this_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(1e9)
    registry = StatusRegistry(clock=clock)
    registry.profile = "bench"
    limits = OutboxSettings(min_free_bytes=1 << 60)
    delivery = OutboxDelivery(tmp_path / "outbox", limits, registry.add_concern(OutboxStatus))
    try:
        await delivery.start(PoisonedService({}))
        clock.now += 3600.0
        found = registry.now()
        await delivery.status(found)
        clock.now += 60.0
        status, _ = await delivery.status(registry.now())
        assert status.since == found
        assert "outbox.min_free_bytes NUMBER --profile bench`" in str(status.hint)
        monkeypatch.setattr(Store, "disk_trouble", lambda _: AgentError("cannot be written"))
        status, _ = await delivery.status(registry.now())
        assert (status.trouble, status.hint) == ("cannot be written", None)
    finally:
        await delivery.stop()
        delivery.close()
