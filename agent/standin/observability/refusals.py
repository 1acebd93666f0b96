"""The published error body: `{"error": {"code", "http_code", "type", "message"}}`."""

from collections.abc import Mapping

from agent.standin.core.responses import Refused
from agent.standin.core.schema import NUMBER, OBJECT, TEXT, Errors, object_schema

# Status -> code and type; only the first is published.
_TYPES = {
    400: (1000, "InvalidUsageError"),
    401: (1001, "AuthenticationError"),
    403: (1001, "AuthenticationError"),
    404: (1002, "NotFoundError"),
    405: (1006, "MethodNotAllowedError"),
    409: (1007, "ConflictError"),
    411: (1008, "LengthRequiredError"),
    413: (1003, "PayloadTooLargeError"),
    415: (1005, "UnsupportedMediaTypeError"),
    416: (1009, "RangeNotSatisfiableError"),
    429: (1004, "RateLimitError"),
    500: (1500, "InternalError"),
    507: (1507, "InsufficientStorageError"),
}

ERROR_SCHEMA = object_schema(
    error=object_schema(
        code=NUMBER,
        http_code=NUMBER,
        type=TEXT,
        message={"anyOf": [TEXT, OBJECT], "description": "A text, or texts by index and by field."},
    )
)


class ObservabilityRefused(Refused):
    """An error of the observability service; `details` are texts by field, instead of one text."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        details: dict[str, Errors] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers=headers)
        self.details = details

    def body(self) -> object:
        """Return the published error body."""
        code, name = _TYPES.get(self.status, (1000 + self.status, "Error"))
        message = self.message if self.details is None else self.details
        return {"error": {"code": code, "http_code": self.status, "type": name, "message": message}}


def invalid(message: str) -> ObservabilityRefused:
    """400: the request as a whole is wrong."""
    return ObservabilityRefused(400, message)


def invalid_fields(details: dict[str, Errors]) -> ObservabilityRefused:
    """400: texts by field, or by index and field."""
    return ObservabilityRefused(400, "invalid fields", details=details)


def unauthorized(message: str) -> ObservabilityRefused:
    """401: a user's credential is missing or wrong."""
    challenge = {"WWW-Authenticate": 'Basic realm="observability"'}
    return ObservabilityRefused(401, message, headers=challenge)


def forbidden(message: str) -> ObservabilityRefused:
    """403: a missing or wrong project key; a credential that may not do this."""
    return ObservabilityRefused(403, message)


def not_found(what: str) -> ObservabilityRefused:
    """404: no such resource."""
    return ObservabilityRefused(404, f"{what} not found")


def conflict(message: str) -> ObservabilityRefused:
    """409: the resource exists already, or is still in use."""
    return ObservabilityRefused(409, message)


def unknown_reference(name: str, what: str) -> ObservabilityRefused:
    """409: a field refers to something that does not exist."""
    return ObservabilityRefused(
        409, f"{what} does not exist.", details={name: [f"{what} does not exist."]}
    )


def too_many_requests(message: str, retry_after_s: int) -> ObservabilityRefused:
    """429: a rate limit is exceeded."""
    return ObservabilityRefused(429, message, headers={"Retry-After": str(retry_after_s)})
