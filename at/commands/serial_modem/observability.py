"""Serial Modem 2.0 and the observability service: #XNRFCLOUDOBS*.

A project key in these commands overrides the server's choice of project. It is a secret:
`at.protocol.redaction.secret_parameters` hides it.
"""

from typing import Annotated

from at.commands.serial_modem.application import SerialModemNotice
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import register_readers
from at.protocol.record_fields import record, within
from at.protocol.values import Fields, Record


class AutomaticUpload(Record, frozen=True):
    """Answer of #XNRFCLOUDOBSAUTO?: `interval_seconds` 60-86400."""

    enable: Annotated[int, within(0, 1)]
    interval_seconds: Annotated[int, within(60, 86400)]
    project_key: Annotated[str, Fields.quoted]


class UploadResult(Record, frozen=True):
    """#XNRFCLOUDOBSUPLOAD: `result` 0 with the bytes sent, none if none were stored; -1 failed."""

    result: int
    bytes: int | None = None


class ForwardResult(Record, frozen=True):
    """#XNRFCLOUDOBSFORWARD: `result` 0 sent; -1 failed, and the chunk is not kept."""

    result: Annotated[int, within(-1, 0)]


class CoredumpUpload(Record, frozen=True):
    """Answer of #XNRFCLOUDOBSCOREDUMP?: whether an upload includes the stored core dump."""

    enable: Annotated[int, within(0, 1)]


class ObservedDevice(Record, frozen=True):
    """Answer of #XNRFCLOUDOBSDEVINFO: what the service knows the device by."""

    device_serial: Annotated[str, Fields.quoted]
    software_type: Annotated[str, Fields.quoted]
    software_version: Annotated[str, Fields.quoted]
    hardware_version: Annotated[str, Fields.quoted]


@at_command("AT#XNRFCLOUDOBSAUTO?")
class ReadAutomaticUpload(Command[AutomaticUpload], frozen=True):
    """AT#XNRFCLOUDOBSAUTO?."""


@at_command("AT#XNRFCLOUDOBSAUTO=")
class SetAutomaticUpload(OkCommand, frozen=True):
    """AT#XNRFCLOUDOBSAUTO: what is left out stays as it is stored; "" clears the key."""

    enable: int
    interval_seconds: int | None = None
    project_key: str | None = None


@at_command("AT#XNRFCLOUDOBSUPLOAD")
class UploadObservations(OkCommand, frozen=True):
    """AT#XNRFCLOUDOBSUPLOAD: OK at once; the result comes as a notice of `UploadResult`."""


@at_command("AT#XNRFCLOUDOBSCOREDUMP?")
class ReadCoredumpUpload(Command[CoredumpUpload], frozen=True):
    """AT#XNRFCLOUDOBSCOREDUMP?."""


@at_command("AT#XNRFCLOUDOBSCOREDUMP=")
class SetCoredumpUpload(OkCommand, frozen=True):
    """AT#XNRFCLOUDOBSCOREDUMP=<enable>."""

    enable: int


@at_command("AT#XNRFCLOUDOBSHEARTBEAT")
class StoreHeartbeat(OkCommand, frozen=True):
    """AT#XNRFCLOUDOBSHEARTBEAT: takes and stores a heartbeat; needs no connection."""


@at_command("AT#XNRFCLOUDOBSFORWARD=")
class ForwardChunk(OkCommand, frozen=True):
    """AT#XNRFCLOUDOBSFORWARD: one chunk in base64, one at a time."""

    chunk: str
    project_key: str | None = None


@at_command("AT#XNRFCLOUDOBSDEVINFO")
class ReadObservedDevice(Command[ObservedDevice], frozen=True):
    """AT#XNRFCLOUDOBSDEVINFO, of builds for debugging."""


def _upload(fields: Fields) -> UploadResult:
    result = fields.integer("result", -1, 0)
    return UploadResult(result, None if result else fields.integer("bytes", 0, 2**32 - 1))


register_readers(
    SerialModemNotice,
    {"#XNRFCLOUDOBSUPLOAD": _upload, "#XNRFCLOUDOBSFORWARD": record(ForwardResult)},
)
