"""How a line of Zephyr's log begins: "[00:00:07.250,000] <inf> ". Pure."""

TIME = r"\[[0-9][0-9:., T-]{4,30}\] ?"
LEVEL = r"<(?:inf|wrn|err|dbg)> "
BEGIN = TIME + LEVEL
ANY_BEGIN = f"(?:{TIME})?{LEVEL}"
"""A log may be set to have no times."""
