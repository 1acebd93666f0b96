"""The causes that a log has, by their slugs."""

from at.causes.diagnosis import causes_of_log


def causes_of(*lines: str) -> list[str]:
    """Return what is wrong in a log of these lines, the surest first."""
    return [one.cause for one in causes_of_log("\n".join(lines).encode())]
