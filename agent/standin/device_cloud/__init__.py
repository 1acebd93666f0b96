"""The device cloud half of the stand-in (clauses D)."""
