"""A-GNSS: requested by types and cell, fetched in ranges, checked before use (D8.2)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import UNSET

from agent.call import Request, Response, T_co, content_length, content_range
from agent.config.project import ProjectSlugs
from agent.errors import BadAnswer, ServiceRefusal, UsageError
from agent.location import calls
from agent.location.agnss_file import AgnssBlock, parse_agnss

if TYPE_CHECKING:
    from agent.http import HttpClient

DEFAULT_TYPES = (1, 2, 3, 4, 6, 7, 9)
TYPES_THAT_NEED_A_CELL = frozenset({8})
RANGE_BYTES = 64 * 1024
LARGEST_BYTES = 1024 * 1024
"""Of one answer, and of the whole: more than this is no assistance data."""
MAX_PIECES = 64


class ServingCell(msgspec.Struct, frozen=True, omit_defaults=True, rename={"rsrp_dbm": "rsrp"}):
    """The cell that serves the device; `rsrp_dbm` where known."""

    mcc: int
    mnc: int
    tac: int
    eci: int
    rsrp_dbm: int | None = None


@dataclass(frozen=True, slots=True)
class AgnssRequest:
    """The A-GNSS data to request: element types (1 to 17), the serving cell, and the filter.

    `filtered` asks for the satellites that can be seen from the cell, above `mask_degrees` (0 to
    90). Raises UsageError.
    """

    types: Sequence[int] = DEFAULT_TYPES
    cell: ServingCell | None = None
    filtered: bool = False
    mask_degrees: int | None = None

    def __post_init__(self) -> None:
        unknown = [number for number in self.types if not 1 <= number <= 17]
        if unknown or not self.types:
            raise UsageError(f"A-GNSS types are 1 to 17, not {unknown or 'none at all'}")
        if self.mask_degrees is not None and not 0 <= self.mask_degrees <= 90:
            raise UsageError(f"the elevation mask is 0 to 90 degrees, not {self.mask_degrees}")
        if self.cell is None and (self.filtered or TYPES_THAT_NEED_A_CELL & set(self.types)):
            raise UsageError(
                "a filtered set, and type 8 (location), need the serving cell",
                hint="`cellagent modem on` waits for one; or leave out --filtered and type 8",
            )

    def fields(self) -> dict[str, object]:
        """Return the fields of the request, without unknown values."""
        fields: dict[str, object] = {"types": sorted(set(self.types))}
        if self.cell is not None:
            fields |= msgspec.to_builtins(self.cell)
        if self.filtered:
            fields["filtered"] = True
        if self.mask_degrees is not None:
            fields["mask"] = self.mask_degrees
        return fields


@dataclass(frozen=True, slots=True)
class AgnssCall(calls.ProjectCall[T_co]):
    """Base of the two calls for A-GNSS data."""

    wanted: AgnssRequest

    @property
    def in_kit_name(self) -> bool:
        """Whether it carries the cell that a kit heard."""
        return self.wanted.cell is not None


@dataclass(frozen=True, slots=True)
class MeasureAgnss(AgnssCall[int | None]):
    """HEAD: the size of the data in bytes; None where the service does not state it."""

    def request(self) -> Request:
        """Return the HEAD, its fields as the query."""
        query: list[tuple[str, str]] = []
        for name, value in self.wanted.fields().items():
            values = value if isinstance(value, list) else [value]
            query += [(name, str(item).lower()) for item in values]
        return Request("HEAD", calls.location_path(self.project, "agnss"), query=query)

    def parse(self, response: Response) -> int | None:
        """Return Content-Length, bounded."""
        size = content_length(response.headers)
        return None if size is None else _bounded(size)


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of the data: its offset, its bytes, and the size of the whole, in bytes."""

    start: int
    data: bytes
    total: int


@dataclass(frozen=True, slots=True)
class FetchAgnss(AgnssCall[Piece]):
    """POST: the data from byte `start` on, at most `size` bytes of it."""

    max_bytes: ClassVar[int] = LARGEST_BYTES

    start: int = 0
    size: int = RANGE_BYTES

    def request(self) -> Request:
        """Return the POST with its range."""
        return Request(
            "POST",
            calls.location_path(self.project, "agnss"),
            headers={
                "accept": "application/octet-stream",
                "range": f"bytes={self.start}-{self.start + self.size - 1}",
            },
            json=self.wanted.fields(),
        )

    def parse(self, response: Response) -> Piece:
        """Return the piece; a service that knows no ranges sends the whole with status 200."""
        if "json" in response.headers.get("content-type", ""):
            raise BadAnswer(
                "the service answered JSON where assistance data was asked for: "
                + response.content[:200].decode("utf-8", "replace")
            )
        if response.status != 206:
            response.check_accepted("assistance data")
            _bounded(len(response.content))
            return Piece(0, response.content, len(response.content))
        first, last, total = content_range(response.headers) or (0, 0, None)
        if total is None:
            raise BadAnswer("the service answered 206 without a legal Content-Range")
        if (
            not response.content
            or first != self.start
            or last - first + 1 != len(response.content)
            or last >= total
        ):
            raise BadAnswer(
                f"asked for bytes from {self.start}, was told bytes {first}-{last}/{total} "
                f"and got {len(response.content)}"
            )
        return Piece(first, response.content, _bounded(total))


@dataclass(frozen=True, slots=True)
class FetchAgnssByGet(FetchAgnss):
    """GET /v1/location/agnss: what devices sent before there was the POST. Deprecated."""

    @property
    def warning(self) -> str:
        """That the method is deprecated beside the path."""
        return f"GET /v1/location/agnss is deprecated: POST replaces it; {calls.LEGACY_WARNING}"

    def request(self) -> Request:
        """Return the GET with its range. Raises UsageError for what it cannot ask for."""
        wanted = self.wanted
        if self.project is not None:
            raise UsageError(
                "the GET for A-GNSS data is there at the legacy path alone",
                hint="leave out --get, or `cellagent config set location.legacy true`",
            )
        if wanted.filtered or wanted.mask_degrees is not None:
            raise UsageError(
                "the GET for A-GNSS data knows neither a filter nor a mask", hint="leave out --get"
            )
        fields = wanted.fields()
        query = [
            ("requestType", "custom"),
            ("customTypes", ",".join(map(str, sorted(set(wanted.types))))),
            *((name, str(fields[name])) for name in ("mcc", "mnc", "tac", "eci") if wanted.cell),
        ]
        return replace(FetchAgnss.request(self), method="GET", query=query, json=UNSET)


def _bounded(size: int) -> int:
    if size > LARGEST_BYTES:
        raise BadAnswer(f"{size} bytes are announced; assistance data has at most {LARGEST_BYTES}")
    return size


@dataclass(frozen=True, slots=True)
class AgnssData:
    """A-GNSS data: the bytes as they came, and their blocks."""

    content: bytes
    blocks: tuple[AgnssBlock, ...]


async def fetch_agnss(
    client: HttpClient,
    project: ProjectSlugs | None,
    wanted: AgnssRequest,
    progress: calls.Progress,
    *,
    by: type[FetchAgnss] = FetchAgnss,
) -> AgnssData:
    """Fetch A-GNSS data piece by piece. Raises what a call raises, and DamagedAssistance."""
    # The size is a convenience: the deprecated form has no HEAD of its own, another service may
    # have none at all, and why it is refused stands in the answer to the POST alone.
    total = None
    if by is FetchAgnss:
        with suppress(ServiceRefusal):
            total = await client.send(MeasureAgnss(project, wanted)) or None
    content = bytearray()
    pieces = 0
    while total is None or len(content) < total:
        pieces += 1
        if pieces > MAX_PIECES:
            raise BadAnswer(f"the A-GNSS data is not whole after {MAX_PIECES} pieces")
        piece = await client.send(by(project, wanted, start=len(content)))
        if content and piece.total != total:
            raise BadAnswer(
                f"the A-GNSS data changed while it was fetched: {total} bytes, now {piece.total}",
                hint="fetch it again",
            )
        if piece.start == 0:
            content.clear()  # the service knows no ranges and sent the whole
        content += piece.data
        # The size of HEAD is only a first guess: the data may be renewed in between.
        total = piece.total
        progress(len(content), total)
    return AgnssData(bytes(content), parse_agnss(bytes(content)))
