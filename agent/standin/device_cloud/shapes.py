"""Schemas that declarations of the device cloud share."""

import msgspec

from agent.standin.core.schema import MOMENT, NUMBER, TEXT, Schema, object_schema

ID: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]{1,128}$"}
"""Of a device: any text may be one (clause D2.2); a control character is none."""
TEXTS: Schema = {"type": "array", "items": TEXT}
FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"type": "integer", "enum": [0, 1]}]}
_PAGE: Schema = {"total": NUMBER, "pageNextToken": TEXT}
_META = object_schema(version=TEXT, createdAt=MOMENT, updatedAt=MOMENT)


def resource(*optional: str, **fields: Schema) -> Schema:
    """Return the schema of a resource: these fields and `$meta`."""
    return object_schema(*optional, **fields, **{"$meta": _META})


def list_of(item: Schema) -> Schema:
    """Return the schema of a page of a list."""
    items: Schema = {"type": "array", "items": item}
    return object_schema("pageNextToken", items=items, **_PAGE)


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
