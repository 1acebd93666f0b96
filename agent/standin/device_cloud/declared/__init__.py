"""The operations of the device cloud half, as its document shows them (clause D1.2)."""
