"""The outbox: items stay on disk until the observability service has accepted them."""

from agent.outbox.items import ItemKind, NewItem, OutboxFull, OutboxHeld, Receipt
from agent.outbox.outbox import Outbox

__all__ = ["ItemKind", "NewItem", "Outbox", "OutboxFull", "OutboxHeld", "Receipt"]
