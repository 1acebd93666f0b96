"""The device cloud half: the D clauses."""
