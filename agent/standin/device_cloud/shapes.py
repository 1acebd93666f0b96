"""Schemas that declarations of the device cloud share."""

import msgspec

from agent.standin.core.schema import Schema

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"type": "integer", "enum": [0, 1]}]}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
_PAGE: Schema = {"total": {"type": "integer"}, "pageNextToken": TEXT}


def answer(*optional: str, **fields: Schema) -> Schema:
    """Return the schema of an object that has these fields; the `optional` ones may be missing."""
    required = [name for name in fields if name not in optional]
    return {"type": "object", "required": required, "properties": fields}


_META = answer(version=TEXT, createdAt=MOMENT, updatedAt=MOMENT)


def resource(*optional: str, **fields: Schema) -> Schema:
    """Return the schema of a resource: these fields and `$meta`."""
    return answer(*optional, **fields, **{"$meta": _META})


def list_of(item: Schema) -> Schema:
    """Return the schema of a page of a list."""
    items: Schema = {"type": "array", "items": item}
    return answer("pageNextToken", items=items, **_PAGE)


def of(kind: type[msgspec.Struct]) -> Schema:
    """Return the schema of a struct as it is encoded, with those of the structs in it."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")

    def inlined(value: Schema) -> Schema:
        if "$ref" in value:
            part = parts[value["$ref"]]
            fields = {name: inlined(field) for name, field in part["properties"].items()}
            return {"type": "object", "required": part["required"], "properties": fields}
        return {**value, "items": inlined(value["items"])} if "items" in value else value

    return inlined(schema)
