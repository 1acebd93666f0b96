"""The CSV bodies of onboarding and key registration."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_ROWS = 1000
_TYPES = frozenset({"text/csv", "text/plain", "application/octet-stream"})
# Any text may be an id (clause D2.2); a control character is none.
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


class BadKey(Exception):
    """A PEM is no P-256 public key, or no certificate with one."""


async def read_rows(request: Request) -> tuple[str, list[list[str]]]:
    """Return the body and its rows. Refuses another type, a blank line, too many rows."""
    text = await read_text(request)
    return text, parse_rows(text)


async def read_text(request: Request) -> str:
    """Return the body of a CSV upload. Refuses another type, and what is no UTF-8."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TYPES:
        raise DeviceCloudRefused(415, "the body is CSV: text/csv, text/plain or octet-stream")
    try:
        return (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_request("the body is not UTF-8") from error


def parse_rows(text: str) -> list[list[str]]:
    """Return the rows of a CSV text."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise invalid(f"the CSV is malformed: {error}") from error
    if not rows:
        raise invalid("the CSV has no rows")
    if len(rows) > MOST_ROWS:
        raise invalid(f"{len(rows)} rows; {MOST_ROWS} at most")
    if any(not row for row in rows):
        raise invalid("a row is blank")
    return rows


def is_device_id(text: str) -> bool:
    """Say whether a text may be a device id: 1 to 128 characters, none of them a control."""
    return _ID.fullmatch(text) is not None
