"""Logs with what is wrong in them, and logs without trouble: the text files of tests/at/causes."""

from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "at" / "causes"


def cause_logs(name: str) -> list[tuple[str, str]]:
    """Return each cause and the log that it stands above, of a file."""
    text = (_FOLDER / name).read_text("utf-8")
    sections = [log.partition("\n") for log in text.split("\n=== ")[1:]]
    return [(cause, log) for cause, _, log in sections]


TROUBLES, HEALTHY = cause_logs("troubles.txt"), cause_logs("healthy.txt")
