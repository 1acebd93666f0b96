"""A typed command: how it is written, how its answer is read, how long it may take."""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar, Generic, Self, TypeVar, cast, get_args

from msgspec import Struct

from at.protocol.encoding import quoted
from at.protocol.line.answer_or_notice import REPLY_SHAPES
from at.protocol.record_fields import record
from at.protocol.timeouts import TIMEOUTS_S, USUAL_S
from at.protocol.values import Fields, Record, Value, read_row, single_line

T_co = TypeVar("T_co", covariant=True)
Parameters = tuple[int | str | None, ...]

_NAMED = re.compile(
    r"[Aa][Tt](?P<name>[+%#*^$&!@][A-Za-z0-9_]+)(?P<rest>=\?|\?|=.*)?", re.ASCII | re.DOTALL
)


class Form(Enum):
    """The four forms of a command in the manual; the value is what follows the name."""

    EXECUTE = ""
    SET = "="
    READ = "?"
    TEST = "=?"


class CommandText(Struct, frozen=True):
    """A command as it was captured: "AT%CMNG=1,17" is "%CMNG", SET, "1,17"."""

    name: str
    form: Form
    arguments: str = ""


class Command(Struct, Generic[T_co], frozen=True):
    """One command of the modem. A subclass is declared by `at_command`; its fields are parameters.

    `timeout_s` is the time within which the final result must come, in seconds.
    `prefix` is what its body lines start with ("+CEREG"), "" if they have none; `owns` decides
    which of them are the answer and which are notices of the same name.
    `multiline` permits CR and LF within the quotes of its line, for PEM texts.
    `wraps`: what follows the prefix may stand on a line of its own behind it.
    `opaque`: what follows the sign is one text without quotes, whatever it holds (JSON).
    `name`, `form` and `first_parameter` say which captured command texts are of this type: the last
    is a parameter that is always the same, such as the 1 of %CMNG=1.
    `answer` is T_co.
    """

    timeout_s: ClassVar[float] = USUAL_S
    prefix: ClassVar[str] = ""
    multiline: ClassVar[bool] = False
    wraps: ClassVar[bool] = False
    opaque: ClassVar[bool] = False
    name: ClassVar[str] = ""
    form: ClassVar[Form] = Form.EXECUTE
    first_parameter: ClassVar[int | None] = None
    answer: ClassVar[type[Record]] = Record
    __test__: ClassVar[bool] = False  # pytest takes a class of the name TestBand for a test

    def parameters(self) -> Parameters:
        """Return the parameters of a SET command: `first_parameter`, its fields in their order.

        None is an empty one. Raises UnsafeArgument.
        """
        own = tuple(getattr(self, name) for name in self.__struct_fields__)
        return own if self.first_parameter is None else (self.first_parameter, *own)

    def encode(self) -> str:
        """Return the command line without its terminator. Raises UnsafeArgument."""
        return f"AT{self.name}{self.form.value}{format_parameters(self.parameters())}"

    def parse(self, lines: Sequence[str]) -> T_co:
        """Return the value of the body lines of an answer that ended in OK. Raises ParseError.

        By default there is one line, which `read` reads to its end.
        """
        return read_row(single_line(lines, self.name), self.name, self.read)

    def read(self, fields: Fields) -> T_co:
        """Return the value of the only line of an answer. Raises ParseError.

        By default a record, as its fields are annotated (`at.protocol.record_fields`).
        """
        return cast("T_co", record(self.answer)(fields))

    def owns(self, line: str) -> bool:
        """Return whether a body line that starts with `prefix` is of the answer, not a notice.

        A notice with the answer's own prefix (+CEREG, +CSCON, ...) is told by its shape.
        """
        is_reply = REPLY_SHAPES.get(self.prefix) if self.form is Form.READ else None
        return line.startswith(self.prefix) and (is_reply is None or is_reply(line))

    @classmethod
    def reader(cls) -> Self:
        """Return a command that reads answers: its parameters are their defaults, or None."""
        required = len(cls.__struct_fields__) - len(cls.__struct_defaults__)
        return cls(*[None] * required)

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return a command that reads the answer to a captured text with these arguments.

        None if they begin with another type's first parameter. A type whose answer depends on the
        others overrides this.
        """
        first = arguments[0].text if arguments else None
        is_other = cls.first_parameter is not None and first != str(cls.first_parameter)
        return None if is_other else cls.reader()


K = TypeVar("K", bound=Command[object])


def at_command(text: str, *, prefix: str | None = None) -> Callable[[type[K]], type[K]]:
    """Return the decorator of a type of command, a frozen struct whose fields are its parameters.

    `text` is what precedes the parameters: "AT+CFUN", "AT+CFUN=", "AT+CFUN?" or "AT+CFUN=?"; with
    the first parameter, if that is always the same: "AT%CMNG=1".
    Without `prefix`, each line of the answer is preceded by the name.
    """
    parts = read_command(text)
    assert parts is not None

    def declare(kind: type[K]) -> type[K]:
        kind.name, kind.form = parts.name, parts.form
        kind.first_parameter = int(parts.arguments) if parts.arguments else None
        if not issubclass(kind, OkCommand):
            kind.prefix = parts.name if prefix is None else prefix
            (kind.answer,) = get_args(kind.__orig_bases__[0])  # type: ignore[attr-defined]
        kind.timeout_s = TIMEOUTS_S.get(text, USUAL_S)
        return kind

    return declare


class OkCommand(Command[None], frozen=True):
    """A command whose answer is OK alone."""

    def parse(self, lines: Sequence[str]) -> None:
        """Return nothing: the answer has no body."""


def format_parameters(parameters: Parameters) -> str:
    """Return the text of parameters: numbers bare, strings in quotes, None empty.

    Trailing Nones leave no comma behind. Raises UnsafeArgument.
    """
    texts = [
        "" if item is None else quoted(item) if isinstance(item, str) else str(int(item))
        for item in parameters
    ]
    while texts and not texts[-1]:
        texts.pop()
    return ",".join(texts)


def read_command(text: str) -> CommandText | None:
    """Return the parts of a command line as it was sent; None if it has no name ("AT", "ATE0")."""
    match = _NAMED.fullmatch(text.strip())
    if match is None:
        return None
    name, rest = match["name"].upper(), match["rest"] or ""
    if rest in {"", "?", "=?"}:
        return CommandText(name, Form(rest))
    return CommandText(name, Form.SET, rest[1:])
