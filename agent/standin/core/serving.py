"""Operations as they are served: one declaration routes a request, checks it and documents it.

The handler gets the caller, the parameters and the body in one `CheckedRequest`, and nothing that
its operation does not declare. Each half of the stand-in has a subclass of `CheckedOperation` with
its own access, and its own way to read and to refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.dispatch import DEFAULT_MAX_BODY, Endpoint
from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.responses import Refused
from agent.standin.core.schema import (
    NOT_A_DATETIME,
    BadJSON,
    Errors,
    Schema,
    check,
    decode,
    parse_datetime,
)
from agent.standin.principal import Principal
from agent.standin.state import Cloud

JSON_TYPE = "application/json"
# Headers of HTTP itself (RFC 9110); any other that a handler reads is declared.
_HEADERS = frozenset(
    {
        *("content-encoding", "content-length", "content-type", "user-agent"),
        *("if-match", "if-none-match", "if-range", "range"),
    }
)
_UNREAD = object()


class Query(Mapping[str, Any]):
    """The values of a query by name, those that were sent; only what is declared can be read."""

    def __init__(self, declared: frozenset[str], values: dict[str, Any]) -> None:
        self._declared = declared
        self._values = values

    def __getitem__(self, name: str) -> Any:
        """Return a value. Raises KeyError where none was sent, AssertionError if undeclared."""
        assert name in self._declared, f"the operation declares no parameter {name!r}"
        return self._values[name]

    def get(self, name: str, /, default: Any = None) -> Any:
        """Return a value, `default` where none was sent: without raising, as most are not."""
        assert name in self._declared, f"the operation declares no parameter {name!r}"
        return self._values.get(name, default)

    def __iter__(self) -> Iterator[str]:
        """Yield the names that were sent."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return how many were sent."""
        return len(self._values)


class CheckedRequest:
    """A request whose caller, path and query were checked, and whose body has arrived."""

    def __init__(
        self,
        request: Request,
        served: CheckedOperation[Any],
        cloud: Cloud,
        principal: Principal,
        path: dict[str, str],
    ) -> None:
        self.cloud = cloud
        self.principal = principal
        self.path = path
        self.query = Query(frozenset(), {})
        self.raw = b""
        """The body as it came."""
        self._request = request
        self._served = served
        self._body: object = _UNREAD

    @property
    def headers(self) -> dict[str, str]:
        """The headers of HTTP itself, and those that the operation declares, in lower case."""
        parameters = self._served.operation.parameters
        declared = {one.name.lower() for one in parameters if one.where == "header"}
        sent = self._request.headers
        return {name: sent[name] for name in _HEADERS | declared if name in sent}

    @property
    def media_type(self) -> str:
        """The media type of the body in lower case, without its parameters."""
        return self._request.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def body(self) -> Any:
        """The body: a JSON value that fits the schema, or bytes of another declared type.

        Raises the refusal of the half on another type, on what is no JSON and on what does not
        fit: when it is first read, so that a handler can refuse for other reasons before.
        """
        if self._body is _UNREAD:
            self._body = self._served.read_body(self.raw, self.media_type)
        return self._body

    @property
    def given(self) -> dict[str, Any]:
        """The fields of a JSON object that were sent, of those that the operation declares."""
        declared = self._served.operation.bodies[JSON_TYPE]["properties"]
        return {name: value for name, value in self.body.items() if name in declared}

    @property
    def json_body(self) -> Any:
        """The body as JSON, whatever type it came as. Raises as `body` does."""
        return self._served.read_body(self.raw, JSON_TYPE)

    def url_with(self, **parameters: object) -> str:
        """Return the URL of the request with these parameters added to its query."""
        return str(self._request.url.include_query_params(**parameters))


ContextT = TypeVar("ContextT", bound=CheckedRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOperation(ABC, Generic[ContextT]):
    """An operation with its handler, and how requests for it are checked."""

    operation: Operation
    handler: Callable[[ContextT], Awaitable[Response]]
    max_body: int = DEFAULT_MAX_BODY
    takes_last: ClassVar[bool] = False
    """Whether the last one counts of a parameter that is given more than once."""
    own_body: bool = False
    """Whether the handler reads `raw` itself, because the body has more than one form."""
    before: Callable[[JSONValue], None] | None = None
    """Refuses a JSON body with a message of its own, before the schema is checked."""

    @abstractmethod
    def authenticate(self, request: Request, cloud: Cloud) -> Principal:
        """Return the caller. Raises the half's refusal of one that may not call."""

    @abstractmethod
    def context(
        self, request: Request, cloud: Cloud, principal: Principal, path: dict[str, str]
    ) -> ContextT:
        """Return the context of a request whose path was checked."""

    @abstractmethod
    def refuse_fields(self, errors: dict[str, Errors]) -> Refused:
        """Return the refusal of parameters: errors by name."""

    @abstractmethod
    def refuse_body(self, errors: Errors) -> Refused:
        """Return the refusal of a body that does not fit its schema."""

    @abstractmethod
    def refuse_json(self, problem: str) -> Refused:
        """Return the refusal of a body that is no JSON."""

    @abstractmethod
    def refuse_media_type(self, media_type: str) -> Refused:
        """Return the refusal of a body of a type that is not among those declared."""

    @abstractmethod
    def convert(self, text: str, schema: Schema) -> object:
        """Return a parameter as the type of its schema; the text itself where it is of none."""

    def split(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the items of a list-valued parameter, whose name may be repeated."""
        return texts

    def moment(self, text: str) -> float | None:
        """Return a date and time as Unix seconds, None where it is none."""
        return parse_datetime(text)

    def declared_type(self, media_type: str) -> str:
        """Return the media type as which a body of that type is taken."""
        return media_type

    @property
    def checks_body_first(self) -> bool:
        """Whether the body is checked before the handler begins, not when it is first read."""
        return False

    def endpoint(self, cloud: Cloud) -> Endpoint:
        """Return the route that serves the operation."""
        operation = self.operation
        in_path, in_query, in_headers = (
            [one for one in operation.parameters if one.where == where]
            for where in ("path", "query", "header")
        )
        readable = frozenset(one.name for one in in_query)

        async def answer(request: Request) -> Response:
            path = {name: str(value) for name, value in request.path_params.items()}
            principal = self.authenticate(request, cloud)
            now_s = cloud.clock.time()
            self._read(in_path, {name: [text] for name, text in path.items()}, now_s)
            context = self.context(request, cloud, principal, path)
            sent = {}
            if request.scope["query_string"]:
                query = request.query_params
                sent = {name: query.getlist(name) for name in query}
            context.query = Query(readable, self._read(in_query, sent, now_s))
            if in_headers:
                headers = {name: [text] for name, text in request.headers.items()}
                self._read(in_headers, headers, now_s)
            # All of it before a resource is read: from then on no other request is served until
            # the change is stored. If-Match would else be compared with an outdated version.
            context.raw = await request.body()
            if self.checks_body_first:
                _ = context.body
            return await self.handler(context)

        return Endpoint(
            operation.path,
            answer,
            methods=[operation.method],
            name=operation.name,
            max_body=self.max_body,
        )

    def _read(
        self, declared: Sequence[Parameter], sent: Mapping[str, Sequence[str]], now_s: float
    ) -> dict[str, Any]:
        """Return the values of the declared parameters of one kind that were sent."""
        values: dict[str, Any] = {}
        errors: dict[str, Errors] = {}
        for parameter in declared:
            name, schema = parameter.name, parameter.schema_at(now_s)
            if schema.get("type") == "object":
                values[name], wrong = self._read_fields(sent, schema)
                errors |= wrong if isinstance(wrong, dict) else {name: wrong} if wrong else {}
            elif name in sent:
                values[name], wrong = self._read_one(sent[name], schema)
                errors |= {name: wrong} if wrong else {}
            elif parameter.required:
                errors[name] = ["Missing data for required field."]
            elif "default" in schema:
                values[name] = schema["default"]
        if errors:
            raise self.refuse_fields(errors)
        return values

    def _read_one(self, texts: Sequence[str], schema: Schema) -> tuple[object, Errors]:
        """Return the value of a parameter, and what is wrong with it."""
        if len(texts) > 1 and schema.get("type") != "array" and not self.takes_last:
            return None, ["It may be given once."]
        if schema.get("format") == "date-time":
            moment = self.moment(texts[-1])
            return moment, [NOT_A_DATETIME] if moment is None else []
        value = self._value(texts, schema)
        return value, check(value, schema)

    def _read_fields(
        self, sent: Mapping[str, Sequence[str]], schema: Schema
    ) -> tuple[object, Errors]:
        """Return an object whose fields are parameters, and what is wrong with it."""
        fields: Schema = schema["properties"]
        for name in sent:
            whole, bracket, _ = name.partition("[")
            if bracket and whole in fields:
                return None, {whole: ["A field of a query holds no fields of its own."]}
        found = {
            name: self._value(sent[name], field) for name, field in fields.items() if name in sent
        }
        return found, check(found, schema)

    def _value(self, texts: Sequence[str], schema: Schema) -> object:
        if schema.get("type") == "array":
            return [self.convert(one, schema["items"]) for one in self.split(texts)]
        return self.convert(texts[-1], schema)

    def read_body(self, raw: bytes, media_type: str) -> Any:
        """Return the value of a body. Raises the refusal of one that does not fit."""
        operation = self.operation
        if not raw and not media_type and not operation.body_required:
            return None
        declared = self.declared_type(media_type)
        if declared not in operation.bodies:
            raise self.refuse_media_type(media_type)
        if declared != JSON_TYPE:
            return raw
        try:
            value = decode(raw)
        except BadJSON as error:
            raise self.refuse_json(str(error)) from error
        if self.before is not None:
            self.before(value)
        if wrong := check(value, operation.bodies[JSON_TYPE]):
            raise self.refuse_body(wrong)
        return value
