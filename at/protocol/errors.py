"""The errors of the AT layer, sorted by what the caller can do.

AtError
├── PortError               the port cannot be used: choose, free or plug in another
│   ├── PortNotFound
│   ├── PortBusy            `holder` names who has it, as far as it can be known
│   └── PortForbidden       `group` names the group whose members may open it
├── LinkLost                the port went away: plug it in, then open it again
├── NoAnswer                nothing behind the port answers AT
├── CommandTimeout          this command got no final result in its time
├── ModemReset              the modem restarted while the command was in flight
├── CommandRejected         ERROR, +CME ERROR or +CMS ERROR; `code` is its number, or None
├── UnsafeArgument          a value would break out of its quotes or its command; nothing was sent
├── FirmwareRefused         the modem's firmware may not make device calls
├── ProvisioningFailed      the kit's provisioning client gave up; `hint` says what to do first
├── NoModemTime             the modem does not know the time: its tokens would never expire
├── ParseError              the line breaks its grammar; no part of it is used
└── TranscriptError         the session does not fit the recording, or the file is malformed
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class AtError(Exception):
    """Base of every error of this package. `hint` says what to try, "" where nothing helps."""

    kind: ClassVar[str] = "at-error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PortError(AtError):
    """The port cannot be used."""

    kind = "port"


class PortNotFound(PortError):
    """No port of that name, or no kit of that serial number, is plugged in."""

    kind = "port-not-found"


class PortBusy(PortError):
    """Another program holds the port; `holder` names it as far as it can be known."""

    kind = "port-busy"

    def __init__(self, message: str, *, hint: str = "", holder: str = "") -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class PortForbidden(PortError):
    """This user may not open the port; `group` is the group that may, "" if unknown."""

    kind = "port-forbidden"

    def __init__(self, message: str, *, hint: str = "", group: str = "") -> None:
        super().__init__(message, hint=hint)
        self.group = group


class LinkLost(AtError):
    """The port went away (unplugged, closed by the far end), or its reader failed."""

    kind = "link-lost"


class NoAnswer(AtError):
    """The port is open, yet nothing behind it answers AT; `received` holds other bytes."""

    kind = "no-answer"

    def __init__(self, message: str, *, hint: str = "", received: bytes = b"") -> None:
        super().__init__(message, hint=hint)
        self.received = received


class CommandTimeout(AtError):
    """The command got no final result in its time: the link is suspect until resynchronised."""

    kind = "timeout"


class ModemReset(AtError):
    """The modem restarted while the command was in flight: whether it took effect is unknown."""

    kind = "modem-reset"


class CommandRejected(AtError):
    """The modem said ERROR, +CME ERROR or +CMS ERROR; `code` is its number, or None.

    `final` is "ERROR", "+CME ERROR" or "+CMS ERROR"; `text` follows it where no number does.
    """

    kind = "rejected"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        final: str = "ERROR",
        code: int | None = None,
        text: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.final = final
        self.code = code
        self.text = text


class UnsafeArgument(AtError):
    """A value is out of range or would break out of its quotes or command; nothing was sent."""

    kind = "unsafe-argument"


class FirmwareRefused(AtError):
    """The modem's firmware is too old, unreadable or of a kind that makes no device calls."""

    kind = "firmware"


class ProvisioningFailed(AtError):
    """The provisioning client of a kit ended without its commands, or said nothing more."""

    kind = "provisioning"


class NoModemTime(AtError):
    """The modem does not know the time, so it makes no token that expires."""

    kind = "no-modem-time"


class ParseError(AtError):
    """A line breaks the grammar of its command: no part of it is used.

    `answer` is all that came to a command that was sent, () where it was none of an answer.
    """

    kind = "parse"
    answer: tuple[str, ...] = ()


class TranscriptError(AtError):
    """The session does not fit the recording, or the transcript is malformed.

    `line` of `file` is where, 0 and None where that is not known.
    """

    kind = "transcript"

    def __init__(
        self, message: str, *, hint: str = "", line: int = 0, file: "Path | None" = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.line, self.file = line, file
