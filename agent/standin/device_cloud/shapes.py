"""Schemas that declarations of the device cloud share."""

from __future__ import annotations

from agent.standin.core.schema import Schema

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
FLAG: Schema = {"enum": [True, False, 0, 1]}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {
    "type": "object",
    "required": ["$meta"],
    "properties": {
        "$meta": {
            "type": "object",
            "required": ["version", "createdAt", "updatedAt"],
            "properties": {"version": TEXT, "createdAt": MOMENT, "updatedAt": MOMENT},
        }
    },
}
LIST: Schema = {
    "type": "object",
    "required": ["items", "total"],
    "properties": {
        "items": {"type": "array"},
        "total": {"type": "integer"},
        "pageNextToken": TEXT,
    },
}
