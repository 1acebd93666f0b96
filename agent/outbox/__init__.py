"""What waits for delivery to the observability service: on disk before it is acknowledged."""

from agent.outbox.items import Kind, NewItem, OutboxFull, OutboxHeld, Receipt
from agent.outbox.outbox import Outbox

__all__ = ["Kind", "NewItem", "Outbox", "OutboxFull", "OutboxHeld", "Receipt"]
