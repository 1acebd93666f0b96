"""Updates that Serial Modem 2.0 fetches by itself: #XNRFCLOUDFOTA.

Its notices have two forms under one name: the result of a check, and the progress of a download as
#XFOTA tells it. Builds before the release had #XNRFCLOUDFOTAAUTO, which is read and never sent.
"""

import re

from at.commands.serial_modem.application import SerialModemNotice
from at.commands.serial_modem.firmware_update import UpdateProgress
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import register
from at.protocol.values import Fields, Record

NONE, AVAILABLE, FAILED = 0, 1, -1
_DOWNLOAD, _OK, _ERROR = 1, 0, 1
_INFO = 2**31
# The operations that download what they find: their check ends with nothing but "no update".
_DOWNLOADS = re.compile(r"=\s*[12]\s*(,|$)")


class UpdateCheck(Record, frozen=True):
    """#XNRFCLOUDFOTA after a check: `result` 0 none, 1 available, -1 failed with `error`."""

    result: int
    error: int | None = None


class AutomaticUpdate(Record, frozen=True):
    """Answer of #XNRFCLOUDFOTAAUTO?: `what` is "app", "modem" or "all"."""

    enable: int
    what: str
    interval_seconds: int


@at_command("AT#XNRFCLOUDFOTA=")
class UpdateByCloud(OkCommand, frozen=True):
    """AT#XNRFCLOUDFOTA: 0 cancel, 1 / 2 check and download application / modem, 4 / 6 only check.

    OK at once; what follows comes as notices of `UpdateCheck` and `UpdateProgress`.
    """

    op: int
    project_key: str | None = None


@at_command("AT#XNRFCLOUDFOTAAUTO?")
class ReadAutomaticUpdate(Command[AutomaticUpdate], frozen=True):
    """AT#XNRFCLOUDFOTAAUTO?, of builds before 2.0.0."""

    def read(self, fields: Fields) -> AutomaticUpdate:
        """Return the settings."""
        enable, what = fields.integer("enable", 0, 1), fields.quoted("what")
        if what not in {"app", "modem", "all"}:
            raise fields.fail("what", "is none of app, modem and all")
        return AutomaticUpdate(enable, what, fields.integer("interval_seconds", 60, 86400))


def _notice(line: str, context: str | None) -> SerialModemNotice:
    """Read either form; `context` is the last #XNRFCLOUDFOTA command, None if it is unknown."""
    row = Fields.of(line, "#XNRFCLOUDFOTA")
    value = _progress(row) if row.left > 1 and row.peek().text != "-1" else _check(row, context)
    row.end()
    return SerialModemNotice("#XNRFCLOUDFOTA", line, value)


def _check(fields: Fields, context: str | None) -> UpdateCheck:
    result = fields.integer("result", FAILED, AVAILABLE)
    if result == AVAILABLE and _DOWNLOADS.search(context or ""):
        raise fields.fail("status", "is missing")  # of a download's progress that was cut
    error = fields.integer("error", -_INFO, _INFO) if result == FAILED else None
    return UpdateCheck(result, error)


def _progress(fields: Fields) -> UpdateProgress:
    stage, status = fields.integer("stage", 0, 5), fields.integer("status", 0, 3)
    if stage == _DOWNLOAD and status == _OK:
        return UpdateProgress(stage, status, fields.integer("info", 0, 100))
    if stage == _DOWNLOAD and status == _ERROR:
        return UpdateProgress(stage, status, fields.integer("info", 0, _INFO))
    return UpdateProgress(stage, status, fields.further_integer("info", 0, _INFO))


register("#XNRFCLOUDFOTA", _notice)
