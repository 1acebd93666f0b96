"""The seam between the driver and whatever carries its bytes."""

from at.transport.base import Receiver, Transport

__all__ = ["Receiver", "Transport"]
