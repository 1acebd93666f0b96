"""Boards as a bench's tray sees them: where they are plugged in, and how their runs ended."""

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.running.outcome import Outcome


def place(slot: str, number: int = 1) -> BoardLocation:
    return BoardLocation("", "", slot, f"/dev/ttyACM{number}")


def plugged(*places: BoardLocation, mark: object = 1) -> dict[str, tuple[BoardLocation, object]]:
    return {one.port: (one, mark) for one in places}


def end(at: BoardLocation, outcome: str, reason_code: str = "", uuid: str = "") -> Outcome:
    return Outcome(location=at, outcome=outcome, step="key", reason_code=reason_code, uuid=uuid)
