"""The cloud's own description of itself: which credential an operation declares (clause D1.2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.call import Call, Request, Response, Scheme
from agent.errors import BadAnswer, NotFound
from agent.json_value import JSONValue

_NAMES = {
    name.replace(" ", ""): name
    for name in ("Simple Token", "JSON Web Token", "Evaluation Token", "Organization Auth Token")
}
"""By the name without blanks, which a valid document has: OpenAPI takes no blank there."""


@dataclass(frozen=True, slots=True)
class OpenApi:
    """The document, and what can be asked of it."""

    document: Mapping[str, JSONValue]

    def schemes(self, method: str, path: str) -> frozenset[str]:
        """Return the names of the schemes that an operation declares; empty: it needs none.

        `path` is a template ("/v1/devices/{deviceId}") or a path that one fits. Raises NotFound.
        """
        operation = self._operation(method.lower(), path)
        # An operation without `security` has the document's; an empty list means none.
        security = operation.get("security", self.document.get("security"))
        choices = security if isinstance(security, list) else []
        names = (name for each in choices if isinstance(each, dict) for name in each)
        return frozenset(_NAMES.get(name, name) for name in names)

    def _operation(self, method: str, path: str) -> Mapping[str, JSONValue]:
        paths = self.document.get("paths")
        if isinstance(paths, dict):
            # A literal path goes before a template that it would fit too.
            for template in sorted(paths, key=lambda each: each.count("{")):
                operations = paths[template]
                if _fits(template, path) and isinstance(operations, dict) and method in operations:
                    operation = operations[method]
                    if isinstance(operation, dict):
                        return operation
        raise NotFound(f"the service's document describes no {method.upper()} {path}")


@dataclass(frozen=True, slots=True)
class FetchOpenApi(Call[OpenApi]):
    """GET /v1/openapi.json; open to everyone."""

    schemes = (Scheme.NONE,)
    max_bytes = 32 * 1024 * 1024
    follows = True

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/v1/openapi.json")

    def parse(self, response: Response) -> OpenApi:
        """Return the document. Raises BadAnswer for what is not OpenAPI 3."""
        body = response.decode(dict[str, JSONValue])
        version = body.get("openapi")
        if not isinstance(version, str) or not version.startswith("3."):
            raise BadAnswer("this is no OpenAPI 3 document")
        return OpenApi(body)


def _fits(template: str, path: str) -> bool:
    if template == path:
        return True
    parts = (re.escape(part) for part in re.split(r"\{[^{}/]*\}", template))
    return re.fullmatch("[^/]+".join(parts), path) is not None
