"""A small JSON Schema: the schema that checks a request is also the one of the document.

The keywords are those of OpenAPI 3.1 (JSON Schema 2020-12), as far as declarations use them.
A `format` names what no keyword can express; the handler checks that itself. Pure.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from agent.json_value import JSONValue

MAX_DEPTH = 64
"""Of lists and objects inside each other."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""What MessagePack, and so the state file, holds as a whole number."""


class BadJSON(ValueError):
    """The bytes are no JSON, or hold a value that cannot be stored."""


def decode(raw: bytes) -> JSONValue:
    """Return a JSON value; whole numbers beyond 64 bits come as floats. Raises BadJSON."""
    try:
        return _within_bounds(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise BadJSON(str(error)) from error


def _within_bounds(value: JSONValue, depth: int = 1) -> JSONValue:
    """Return a value with whole numbers beyond 64 bits as floats. Raises BadJSON on MAX_DEPTH."""
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise BadJSON(f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(value, list):
            return [_within_bounds(inner, depth + 1) for inner in value]
        return {key: _within_bounds(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        return float(value)
    return value


Schema: TypeAlias = dict[str, Any]
Errors: TypeAlias = "list[str] | dict[str, Errors]"
"""Texts for a value, or errors by key or index for what a value holds."""

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}


def texts(*names: str) -> dict[str, Schema]:
    """Return fields that are texts, for the schema of an object."""
    return dict.fromkeys(names, TEXT)


def body_schema(*required: str, **fields: Schema) -> Schema:
    """Return the schema of an object that may have these fields and has the `required` ones."""
    required_names: Schema = {"required": list(required)} if required else {}
    return {"type": "object", **required_names, "properties": fields}


def object_schema(*optional: str, **fields: Schema) -> Schema:
    """Return the schema of an object that has these fields; the `optional` ones may be missing."""
    return body_schema(*(name for name in fields if name not in optional), **fields)


NOT_A_DATETIME = "Not a valid datetime"

_WRONG_TYPE = {
    "string": "Not a valid string.",
    "integer": "Not a valid integer.",
    "number": "Not a valid number.",
    "boolean": "Not a valid boolean.",
    "object": "Not a valid mapping type.",
    "array": "Not a valid list.",
    "null": "Field must be null.",
}
_OTHER_WORD = "Must be one of: "
_DATETIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def check(value: object, schema: Schema) -> Errors:
    """Return what is wrong with `value`; empty when it fits."""
    found = _check_itself(value, schema)
    if not found and "anyOf" in schema:
        found = _check_any(value, schema["anyOf"])
    if not found and "oneOf" in schema:
        found = _check_one(value, schema["oneOf"])
    if not found and "not" in schema and not check(value, schema["not"]):
        found = ["Not allowed here."]
    return found


def first_error(errors: Errors) -> str:
    """Return the first of some errors in one line, with the place where it was found."""
    place = []
    while isinstance(errors, dict):
        key, errors = next(iter(errors.items()))
        place.append(key)
    return f"{'.'.join(place)}: {errors[0]}" if place else errors[0]


def _check_itself(value: object, schema: Schema) -> Errors:
    """Return what is wrong by the keywords that combine no schemas."""
    types = schema.get("type")
    if types is not None:
        types = [types] if isinstance(types, str) else types
        if not any(_is_of_type(value, name) for name in types):
            return [_WRONG_TYPE[types[0]]]
    if "enum" in schema and not any(_equal(value, one) for one in schema["enum"]):
        return [f"{_OTHER_WORD}{', '.join(map(str, schema['enum']))}."]
    return _CHECKS[type(value)](value, schema)


def parse_datetime(text: str) -> float | None:
    """Return an ISO 8601 date and time with a zone as Unix seconds, None where it is none."""
    if not _DATETIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError):
        return None


def _check_any(value: object, options: list[Schema]) -> Errors:
    found = [check(value, option) for option in options]
    if not all(found):
        return []
    # The sender most likely meant the form that fits best.
    return min(found, key=_weight)


def _check_one(value: object, options: list[Schema]) -> Errors:
    if sum(not check(value, option) for option in options) > 1:
        return ["It fits more than one of its forms."]
    return _check_any(value, options)


def _weight(errors: Errors) -> int:
    """Return how far a value is from fitting, for comparison only."""
    if isinstance(errors, list):
        return 1000 if errors[0] in _WRONG_TYPE.values() else 100
    if any(isinstance(inner, list) and _OTHER_WORD in inner[0] for inner in errors.values()):
        return 999  # the field that names the form names another one
    # Deep errors mean that the outside already fitted.
    return min(999, sum(min(99, _weight(inner)) for inner in errors.values()))


def _is_of_type(value: object, name: str) -> bool:
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name in {"integer", "number"}:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return name == "number" or isinstance(value, int) or value.is_integer()
    return isinstance(value, {"string": str, "object": dict, "array": list}[name])


def _equal(value: object, other: object) -> bool:
    """Return whether two JSON values are equal: True is not 1, as it is in Python."""
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _check_text(value: str, schema: Schema) -> Errors:
    if len(value) < schema.get("minLength", 0):
        return [f"Shorter than minimum length {schema['minLength']}."]
    if len(value) > schema.get("maxLength", len(value)):
        return [f"Longer than maximum length {schema['maxLength']}."]
    pattern = schema.get("pattern")
    if pattern is not None and not _compiled(pattern).search(value):
        return ["String does not match expected pattern."]
    if schema.get("format") == "date-time" and parse_datetime(value) is None:
        return [NOT_A_DATETIME]
    return []


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # "$" of ECMA-262 matches the very end only, that of Python also before a final line feed.
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)


def _check_number(value: float, schema: Schema) -> Errors:
    if value < schema.get("minimum", value):
        return [f"Must be greater than or equal to {schema['minimum']}."]
    if value > schema.get("maximum", value):
        return [f"Must be less than or equal to {schema['maximum']}."]
    return []


def _check_list(value: list[object], schema: Schema) -> Errors:
    if len(value) < schema.get("minItems", 0):
        return [f"Shorter than minimum length {schema['minItems']}."]
    if len(value) > schema.get("maxItems", len(value)):
        return [f"Longer than maximum length {schema['maxItems']}."]
    items = schema.get("items", {})
    found = ((str(index), check(item, items)) for index, item in enumerate(value))
    return {index: errors for index, errors in found if errors}


def _check_object(value: dict[str, object], schema: Schema) -> Errors:
    found: dict[str, Errors] = {
        name: ["Missing data for required field."]
        for name in schema.get("required", ())
        if name not in value
    }
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    names = schema.get("propertyNames", {})
    for name, inner in value.items():
        if name in properties:
            errors = check(inner, properties[name])
        elif others is False:
            errors = ["Unknown field."]
        else:
            both: dict[str, Errors] = {
                "key": check(name, names),
                "value": check(inner, others or {}),
            }
            errors = {part: wrong for part, wrong in both.items() if wrong}
        if errors:
            found[name] = errors
    if len(value) < schema.get("minProperties", 0):
        return ["At least one field is needed."]
    if len(value) > schema.get("maxProperties", len(value)):
        return [f"At most {schema['maxProperties']} of these fields may be given."]
    return found


_CHECKS: Mapping[type, Callable[[Any, Schema], Errors]] = {
    str: _check_text,
    int: _check_number,
    float: _check_number,
    list: _check_list,
    dict: _check_object,
    bool: lambda _value, _schema: [],
    type(None): lambda _value, _schema: [],
}
