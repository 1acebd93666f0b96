"""The device cloud's error bodies: `{"code": int, "message": text}`."""

from collections.abc import Mapping

from agent.standin.core.responses import Refused

# The code of a status where no more specific one is known, if not a hundred times the status.
_CODES = {404: 40420, 500: 50010}


class DeviceCloudRefused(Refused):
    """An error of the device cloud."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers=headers)
        self.code = code or _CODES.get(status, status * 100)

    def body(self) -> object:
        """Return code and message."""
        return {"code": self.code, "message": self.message}


def bad_request(message: str) -> DeviceCloudRefused:
    """400: the request is malformed."""
    return DeviceCloudRefused(400, message)


def unauthorized(message: str) -> DeviceCloudRefused:
    """401: no credential, a wrong one, or of a kind that the operation does not take."""
    return DeviceCloudRefused(401, message, headers={"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> DeviceCloudRefused:
    """403: known, and not allowed."""
    return DeviceCloudRefused(403, message)


def no_device(device_id: str) -> DeviceCloudRefused:
    """404: no such device in this team."""
    return DeviceCloudRefused(404, f"device {device_id[:128]!r} not found", code=40410)


def not_found(message: str) -> DeviceCloudRefused:
    """404: no such resource or path."""
    return DeviceCloudRefused(404, message)


def invalid(message: str) -> DeviceCloudRefused:
    """422: well formed, yet the values are wrong."""
    return DeviceCloudRefused(422, message)
