"""The table of causes as it stands in `knowledge/`, whose first file explains its columns. Pure."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NotRequired, TypedDict

from msgspec import Struct, convert

from at.causes.literals import literals_of
from at.protocol.boot_stages import HAND_OVERS
from at.protocol.error_codes import CME, FIRST_OF_MAKER

Expected = int | str | list[int | str]
"""What a fact must be: a number, a text, a comparison, or any of a list."""
ANY, ABSENT = "*", "-"
LINE = "line"
"""The name under which a condition holds the pattern of a line."""
_PATTERNS = {LINE, "of", "words", "unless", "servers", "commands"}


class Certainty(Enum):
    """How sure a cause is, the surest first."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One row: if any of the sets of facts in `when` holds, `cause` does."""

    cause: str
    certainty: Certainty
    when: list[dict[str, Expected]]
    says: str
    next: str
    source: str
    until: tuple[str, ...] = ()


class _Failure(TypedDict):
    cause: str
    until: list[str]
    server: NotRequired[bool]
    command: NotRequired[bool]
    of: str
    says: str
    next: str


class Words(Struct, frozen=True):
    """A pattern, the name of the fact that its lines tell, and its value, None for the group's.

    A {} in the name stands for the value, so that a later line does not hide an earlier one.
    """

    pattern: str
    fact: str
    value: int | str | None

    def search(self, line: str) -> re.Match[str] | None:
        """Search a line for the pattern, in large letters or small ones."""
        return _compiled(self.pattern).search(line)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as it is searched with. Most are never needed by the lines of one kit."""
    return re.compile(pattern, re.IGNORECASE)


class WordList:
    """Patterns, each with its fact, and those of them that a line may match."""

    def __init__(self, words: Iterable[Words]) -> None:
        self._words = tuple(words)
        self._with: dict[str, tuple[int, ...]] = {}
        self._also: list[list[set[str]]] = []
        for place, one in enumerate(self._words):
            sets = [
                {text.translate(_ALIKE) for text in texts} for texts in literals_of(one.pattern)
            ]
            self._also.append(sets[1:])
            for text in sets[0] if sets else {""}:
                self._with[text] = (*self._with.get(text, ()), place)
        self._places = lru_cache(maxsize=1024)(self._places_of)

    def __iter__(self) -> Iterator[Words]:
        return iter(self._words)

    def of(self, line: str) -> Iterator[Words]:
        """Yield the words whose pattern may match a line, in their order."""
        return (self._words[place] for place in self._places(line.lower().translate(_ALIKE)))

    def _places_of(self, line: str) -> list[int]:
        found = {at for text, places in self._with.items() if text in line for at in places}
        return sorted(at for at in found if _holds_of_each(line, self._also[at]))


def _holds_of_each(line: str, sets: Iterable[set[str]]) -> bool:
    return all(any(text in line for text in texts) for texts in sets)


_ALIKE = str.maketrans("123456789", "0" * 9)
"""Lines of a log that differ in numbers alone are looked up once."""


class Table(Struct, frozen=True):
    """The whole table. `words` come from [[text]] and from the patterns of rows alike."""

    rows: tuple[Row, ...]
    failures: tuple[Row, ...]
    """Rows for where none of `rows` holds, for what only tells that something failed."""
    alone: tuple[Row, ...]
    """Rows for where no other holds."""
    same: Mapping[str, str]
    cme_texts: Mapping[str, int]
    """The numbers of errors by their words, in capitals."""
    words: WordList


@cache
def load() -> Table:
    """Return the table that is part of the program."""
    rooms = sorted(files("at.causes").joinpath("knowledge").iterdir(), key=lambda file: file.name)
    return read("\n".join(room.read_text("utf-8") for room in rooms))


def read(text: str) -> Table:
    """Return the table of a TOML text. Raises ValueError or KeyError."""
    file = _joined(tomllib.loads(text))
    rows = [row for fact, numbers in file["numbers"].items() for row in _numbered(fact, numbers)]
    rows += convert(file["row"], list[Row])
    failures = (*convert(file["refusal"], list[Row]), *_failures(file["failures"], file["failure"]))
    alone = convert(file["alone"], tuple[Row, ...])
    told = [wanted for row in (*rows, *failures, *alone) for wanted in row.when]
    patterns = {str(wanted[LINE]) for wanted in told if LINE in wanted}
    words = [Words(text["line"], text["fact"], text.get("value")) for text in file["text"]]
    words += [Words(line, "stage", line) for line in HAND_OVERS]
    words += [Words(line, line, None) for line in sorted(patterns)]
    words += [  # as the SDK's samples tell of a refused connection
        Words(rf"\bPDP context \d+, {re.escape(rest[0])}", "esm", int(number))
        for number, rest in file["numbers"]["esm"].items()
        if number.isdigit()
    ]
    texts = {name: code for code, name in CME.items() if code < FIRST_OF_MAKER} | file["cme_texts"]
    known = {name.upper(): code for name, code in texts.items()}
    return Table(tuple(rows), failures, alone, file["same"], known, WordList(words))


def _joined(value: Any) -> Any:
    """Return a value of the file with each pattern whole, of which long ones stand in parts."""
    if isinstance(value, list):
        return [_joined(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "|".join(each) if key in _PATTERNS and isinstance(each, list) else _joined(each)
        for key, each in value.items()
    }


def _failures(common: Mapping[str, str], kinds: Iterable[_Failure]) -> Iterator[Row]:
    """Yield the row of each kind of line that tells of a failure, and of what it is about."""
    failed = _word(common["words"])
    for kind in kinds:
        about = _word(kind["of"])
        unless = common["unless"]
        if not kind.get("server"):
            unless += f"|{_word(common['servers'])}"
        if not kind.get("command"):
            unless += f"|{_word(common['commands'])}"
        # The rarest first; without these two, each of many words might be the first one.
        both = f"(?=.*{failed})(?=.*{about})"
        line = f"^{both}(?!.*(?:{unless})).*(?:{failed}.*{about}|{about}.*{failed})"
        words = kind["says"], kind["next"], "the words of the log"
        when: list[dict[str, Expected]] = [{LINE: line}]
        yield Row(kind["cause"], Certainty.POSSIBLE, when, *words, tuple(kind["until"]))


def _word(pattern: str) -> str:
    return f"(?<![a-z])(?:{pattern})(?![a-z])"


def _numbered(fact: str, numbers: Mapping[str, str | list[str]]) -> Iterator[Row]:
    """Yield the rows of the cause numbers of a standard, and one for numbers that it lacks.

    A number that is told later on request (`old`) may be an earlier failure's: likely at most.
    Of a kit that is registered only a session's number (ESM) says something.
    """
    causes = {
        int(key): words
        for key, words in numbers.items()
        if key.isdigit() and isinstance(words, list)
    }
    others: list[int | str] = [number for number in range(1, 256) if number not in causes]
    source, until = str(numbers["source"]), tuple(numbers["until"])
    notes = {str(number) for number in numbers.get("notes", ())}
    errors = convert(numbers["cme"], dict[str, int])
    for name, certainty in ((fact, Certainty.CERTAIN), (str(numbers["old"]), Certainty.LIKELY)):
        still: dict[str, Expected] = {"stat": ["-", 0, 2, 3, 4, 90]} if name != "esm" else {}
        for number, (title, plainly, step) in causes.items():
            says = f'The network\'s cause is {fact.upper()} {number}, "{title}": {plainly}.'
            sure, ends, beside = certainty, until, still
            if str(number) in notes:
                sure, ends = Certainty.LIKELY, (*until, "registered")
                beside = {**still, "address": "-"}
            when: list[dict[str, Expected]] = [{name: number, **beside}]
            if name == fact and (code := errors.get(str(number))):
                when.append({"cme": code, **beside})
            yield Row(f"{fact}-{number}", sure, when, says, step, source, ends)
        yield Row(
            f"{fact}-{{{name}}}",
            Certainty.POSSIBLE,
            [{name: others, **still}],
            f"The network gave the {numbers['title']} cause {{{name}}}, which is not known here.",
            "Give this number to the SIM's provider.",
            source,
            until,
        )
