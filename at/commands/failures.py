"""Why the network refused: +CEER, +CNEC_EMM and +CNEC_ESM (TS 27.007; TS 24.301)."""

import re
from collections.abc import Sequence
from typing import Annotated

from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import further, record, within
from at.protocol.values import Record, named_text

_REPORT = re.compile(r"(EMM|ESM|PDP|UICC|SMS|OTHER) ([0-9]{1,9})", re.ASCII)


class LastFailure(Record, frozen=True):
    """Answer of +CEER: the last failure, which may be long past.

    An nRF91 names a module (EMM, ESM, PDP, UICC, SMS, OTHER) and its cause, for EMM and ESM those
    of TS 24.301; of other modems `report` is a text of their own, and the two are None.
    """

    report: str
    module: str | None = None
    cause: int | None = None


class NetworkCause(Record, frozen=True):
    """+CNEC_ESM, +CNEC_EMM: why the network refused a context or the device (TS 24.301)."""

    cause: Annotated[int, within(0, 255)]
    cid: Annotated[int | None, further(0, 255)] = None


class NetworkCauseNotice(Notice, frozen=True):
    """+CNEC_ESM or +CNEC_EMM as a notice."""

    value: NetworkCause


@at_command("AT+CEER")
class ReadLastFailure(Command[LastFailure], frozen=True):
    """AT+CEER."""

    def parse(self, lines: Sequence[str]) -> LastFailure:
        """Return the report."""
        text = named_text(lines, self.name)
        report = text[1:-1] if re.fullmatch(r'"[^"]*"', text) else text
        if '"' in report:
            raise ParseError("+CEER: the report is no text")
        match = _REPORT.fullmatch(report)
        if match is None:
            return LastFailure(report)
        module, cause = match.group(1), int(match.group(2))
        if module in {"EMM", "ESM"} and cause > 255:  # an octet, TS 24.301
            raise ParseError(f"+CEER: {cause} is no cause")
        return LastFailure(report, module, cause)


register_readers(
    NetworkCauseNotice, dict.fromkeys(("+CNEC_EMM", "+CNEC_ESM"), record(NetworkCause))
)
