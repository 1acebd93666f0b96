"""Serial Modem 2.0 and the observability service: #XNRFCLOUDOBS*.

A project key in these commands overrides the server's choice of project. It is a secret:
`at.protocol.secret_parameters` hides it.
"""

from dataclasses import dataclass

from at.commands.serial_modem import SerialModemNotice
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import register_readers
from at.protocol.values import Fields, Record


@dataclass(frozen=True, slots=True)
class AutomaticUpload(Record):
    """Answer of #XNRFCLOUDOBSAUTO?: `interval_seconds` 60-86400."""

    enable: int
    interval_seconds: int
    project_key: str


@dataclass(frozen=True, slots=True)
class UploadResult(Record):
    """#XNRFCLOUDOBSUPLOAD: `result` 0 with the bytes sent, none if none were stored; -1 failed."""

    result: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ForwardResult(Record):
    """#XNRFCLOUDOBSFORWARD: `result` 0 sent; -1 failed, and the chunk is not kept."""

    result: int


@dataclass(frozen=True, slots=True)
class CoredumpUpload(Record):
    """Answer of #XNRFCLOUDOBSCOREDUMP?: whether an upload includes the stored core dump."""

    enable: int


@dataclass(frozen=True, slots=True)
class ObservedDevice(Record):
    """Answer of #XNRFCLOUDOBSDEVINFO: what the service knows the device by."""

    device_serial: str
    software_type: str
    software_version: str
    hardware_version: str


@at_command("AT#XNRFCLOUDOBSAUTO?")
class ReadAutomaticUpload(Command[AutomaticUpload]):
    """AT#XNRFCLOUDOBSAUTO?."""

    def read(self, fields: Fields) -> AutomaticUpload:
        """Return the settings."""
        return AutomaticUpload(
            fields.integer("enable", 0, 1),
            fields.integer("interval_seconds", 60, 86400),
            fields.quoted("project_key"),
        )


@at_command("AT#XNRFCLOUDOBSAUTO=")
class SetAutomaticUpload(OkCommand):
    """AT#XNRFCLOUDOBSAUTO: what is left out stays as it is stored; "" clears the key."""

    enable: int
    interval_seconds: int | None = None
    project_key: str | None = None


@at_command("AT#XNRFCLOUDOBSUPLOAD")
class UploadObservations(OkCommand):
    """AT#XNRFCLOUDOBSUPLOAD: OK at once; the result comes as a notice of `UploadResult`."""


@at_command("AT#XNRFCLOUDOBSCOREDUMP?")
class ReadCoredumpUpload(Command[CoredumpUpload]):
    """AT#XNRFCLOUDOBSCOREDUMP?."""

    def read(self, fields: Fields) -> CoredumpUpload:
        """Return the setting."""
        return CoredumpUpload(fields.integer("enable", 0, 1))


@at_command("AT#XNRFCLOUDOBSCOREDUMP=")
class SetCoredumpUpload(OkCommand):
    """AT#XNRFCLOUDOBSCOREDUMP=<enable>."""

    enable: int


@at_command("AT#XNRFCLOUDOBSHEARTBEAT")
class StoreHeartbeat(OkCommand):
    """AT#XNRFCLOUDOBSHEARTBEAT: takes and stores a heartbeat; needs no connection."""


@at_command("AT#XNRFCLOUDOBSFORWARD=")
class ForwardChunk(OkCommand):
    """AT#XNRFCLOUDOBSFORWARD: one chunk in base64, one at a time."""

    chunk: str
    project_key: str | None = None


@at_command("AT#XNRFCLOUDOBSDEVINFO")
class ReadObservedDevice(Command[ObservedDevice]):
    """AT#XNRFCLOUDOBSDEVINFO, of builds for debugging."""

    def read(self, fields: Fields) -> ObservedDevice:
        """Return the four names."""
        return ObservedDevice(
            fields.quoted("device_serial"),
            fields.quoted("software_type"),
            fields.quoted("software_version"),
            fields.quoted("hardware_version"),
        )


def _upload(fields: Fields) -> UploadResult:
    result = fields.integer("result", -1, 0)
    return UploadResult(result, None if result else fields.integer("bytes", 0, 2**32 - 1))


def _forward(fields: Fields) -> ForwardResult:
    return ForwardResult(fields.integer("result", -1, 0))


register_readers(
    SerialModemNotice, {"#XNRFCLOUDOBSUPLOAD": _upload, "#XNRFCLOUDOBSFORWARD": _forward}
)
