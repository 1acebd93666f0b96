"""What waits for delivery to the observability service: on disk before it is acknowledged."""

from agent.outbox.items import ItemKind, NewItem, OutboxFull, OutboxHeld, Receipt
from agent.outbox.outbox import Outbox

__all__ = ["ItemKind", "NewItem", "Outbox", "OutboxFull", "OutboxHeld", "Receipt"]
