"""Stored files and their signed URLs: uploads in one piece or in parts, downloads.

A signed URL is its own credential, as with object stores: no key is sent with it.
"""

import hashlib
import hmac
import re
import secrets
from enum import Enum, StrEnum, auto
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import Response

from agent.standin.core.operation import Host, Parameter, in_path
from agent.standin.core.responses import file_response
from agent.standin.core.schema import Schema
from agent.standin.observability.access import Access
from agent.standin.observability.ingest.push import decode_content
from agent.standin.observability.operations import RequestContext, declare
from agent.standin.observability.refusals import ObservabilityRefused, forbidden, invalid, not_found
from agent.standin.state import Cloud
from agent.standin.store import TableOf

DOWNLOAD_LIFE_S = 6 * 3600
UPLOAD_LIFE_S = 3600
MAX_FILE = 256 * 1024 * 1024
PART_BYTES = 8 * 1024 * 1024
MAX_PARTS = 100

# Every repetition is bounded: a body of spaces must not be tried in all ways.
_PART_TAG = re.compile(
    r"<PartNumber>\s{0,20}(\d{1,5})\s{0,20}</PartNumber>\s{0,20}<ETag>([^<]{1,200})</ETag>"
)
_OCTETS = "application/octet-stream"
_STORAGE = "/api/v0/storage"
_TEXT: Schema = {"type": "string", "maxLength": 512}
_SECONDS: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53}
_BINARY: Schema = {"type": "string", "format": "binary"}


class UploadState(StrEnum):
    """What an upload has reached."""

    PREPARED = auto()
    STORED = auto()
    COMMITTED = auto()
    EXPIRED = auto()


class UploadEvent(Enum):
    """What happens to an upload."""

    STORE = auto()
    COMMIT = auto()
    EXPIRE = auto()


TRANSITIONS: dict[tuple[UploadState, UploadEvent], UploadState] = {
    (UploadState.PREPARED, UploadEvent.STORE): UploadState.STORED,
    (UploadState.PREPARED, UploadEvent.EXPIRE): UploadState.EXPIRED,
    (UploadState.STORED, UploadEvent.STORE): UploadState.STORED,
    (UploadState.STORED, UploadEvent.COMMIT): UploadState.COMMITTED,
    (UploadState.STORED, UploadEvent.EXPIRE): UploadState.EXPIRED,
}
"""An upload at the stand-in. Its bytes are stored once they have come whole, in one piece or as
parts that were put together; they may come again. An upload that has ended is forgotten; the bytes
of one that was committed belong to the file that was made of it."""


class Upload(Struct, kw_only=True):
    """A prepared upload, by the secret of its URL."""

    project: str
    """"organization/project"."""
    kind: str
    size: int | float
    """Bytes that were announced."""
    content_encoding: str | None
    created: float
    parts: int
    """The most parts in which it may come, 0 where it comes in one piece."""
    token: str
    blob: str | None = None
    """The name of the bytes that are stored."""
    state: UploadState = UploadState.PREPARED

    def __post_init__(self) -> None:
        """Tell the state of a record of 0.1.0, which names none."""
        if self.blob is not None and self.state is UploadState.PREPARED:
            self.state = UploadState.STORED


BLOBS = TableOf("observability/blobs", bytes)
UPLOADS = TableOf("observability/uploads", Upload)
PARTS = TableOf("observability/parts", bytes)
"""By the secret of the upload and the number, "secret/1"."""
TOKENS = TableOf("observability/tokens", str)
"""The secret of an upload, by the token that commits it."""
SECRETS = TableOf("observability/secrets", bytes)


def advance(cloud: Cloud, secret: str, upload: Upload, event: UploadEvent) -> None:
    """Have an upload reach its next state; one that has ended leaves no part and no token."""
    upload.state = TRANSITIONS[upload.state, event]
    if upload.state in {UploadState.PREPARED, UploadState.STORED}:
        cloud.table(UPLOADS).put(secret, upload)
        return
    cloud.table(UPLOADS).delete(secret)
    cloud.table(TOKENS).delete(upload.token)
    for number in range(1, upload.parts + 1):
        cloud.table(PARTS).delete(f"{secret}/{number}")
    if upload.state is UploadState.EXPIRED and upload.blob is not None:
        cloud.table(BLOBS).delete(upload.blob)


def has_expired(cloud: Cloud, upload: Upload) -> bool:
    """Return whether the time of an upload is over."""
    return cloud.clock.time() > upload.created + UPLOAD_LIFE_S


def signed_url(cloud: Cloud, blob: str, filename: str) -> str:
    """Return a URL that downloads a stored file, valid for six hours."""
    expires = int(cloud.clock.time()) + DOWNLOAD_LIFE_S
    signature = _sign(cloud, blob, expires)
    name = quote(filename, safe="") or "file"
    place = f"{cloud.urls['files']}{_STORAGE}/files/{blob}/{name}"
    return f"{place}?expires={expires}&signature={signature}"


def upload_url(cloud: Cloud, secret: str) -> str:
    """Return the URL that receives the bytes of a prepared upload; that of a part is below it."""
    return f"{cloud.urls['files']}{_STORAGE}/uploads/{secret}"


def find_upload(cloud: Cloud, secret: str) -> Upload:
    """Return a prepared upload that has not expired. Raises 404."""
    upload = cloud.table(UPLOADS).get(secret)
    if upload is None or has_expired(cloud, upload):
        raise not_found("upload")
    return upload


def delete_expired(cloud: Cloud) -> None:
    """Delete expired uploads with their bytes, parts and tokens."""
    for secret, upload in cloud.table(UPLOADS).items():
        if has_expired(cloud, upload):
            advance(cloud, secret, upload, UploadEvent.EXPIRE)


async def _put(context: RequestContext) -> Response:
    secret = context.path["secret"]
    upload, data = _content(context, secret)
    if len(data) != upload.size:
        raise invalid(f"{len(data)} bytes came, {upload.size} were announced")
    data = decode_content(data, upload.content_encoding, MAX_FILE)
    _store_upload(context.cloud, secret, upload, data)
    return Response(headers={"ETag": _etag(data)})


async def _put_part(context: RequestContext) -> Response:
    secret, number = context.path["secret"], int(context.path["part"])
    upload, data = _content(context, secret)
    if number > upload.parts:
        raise not_found(f"part {number}")
    context.cloud.table(PARTS).put(f"{secret}/{number}", data)
    return Response(headers={"ETag": _etag(data)})


async def _complete(context: RequestContext) -> Response:
    secret = context.path["secret"]
    text = context.raw.decode("utf-8", "replace")
    upload = find_upload(context.cloud, secret)
    # No XML parser: only part numbers and ETags are read.
    listed_parts = _PART_TAG.findall(text)
    if not listed_parts or [int(number) for number, _ in listed_parts] != list(
        range(1, len(listed_parts) + 1)
    ):
        raise invalid("the parts are to be named from 1 on, each with its ETag")
    table = context.cloud.table(PARTS)
    data = b""
    for number, etag in listed_parts:
        part = table.get(f"{secret}/{number}")
        plain = etag.strip().replace("&quot;", '"').strip('"')
        if part is None or plain != _etag(part).strip('"'):
            raise invalid(f"part {number} is not what came")
        data += part
    if len(data) != upload.size:
        raise invalid(f"{len(data)} bytes came, {upload.size} were announced")
    # The parts stay until the commit: the same may be asked for again, its answer being lost.
    _store_upload(context.cloud, secret, upload, data)
    answer = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
    return Response(answer, media_type="application/xml")


async def _get(context: RequestContext) -> Response:
    cloud, blob = context.cloud, context.path["blob"]
    expires = context.query["expires"]
    signature = context.query["signature"]
    if not hmac.compare_digest(_sign(cloud, blob, expires).encode(), signature.encode()):
        raise forbidden("the signature of this URL is wrong")
    if cloud.clock.time() > expires:
        raise forbidden("this URL has expired: ask for a new one")
    data = cloud.table(BLOBS).get(blob)
    if data is None:
        raise not_found("file")
    return file_response(data, context.headers, ObservabilityRefused)


def _content(context: RequestContext, secret: str) -> tuple[Upload, bytes]:
    """Return an upload and its received bytes. Raises 400 if more were declared than announced."""
    upload = find_upload(context.cloud, secret)
    declared = context.headers.get("content-length")
    if declared is not None and int(declared) > upload.size:
        raise invalid(f"{declared} bytes come, {upload.size} were announced")
    return upload, context.raw


def _store_upload(cloud: Cloud, secret: str, upload: Upload, data: bytes) -> None:
    if upload.blob is not None:  # sent once more
        cloud.table(BLOBS).delete(upload.blob)
    upload.blob = secrets.token_hex(16)
    cloud.table(BLOBS).put(upload.blob, data)
    advance(cloud, secret, upload, UploadEvent.STORE)


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _sign(cloud: Cloud, blob: str, expires: int) -> str:
    table = cloud.table(SECRETS)
    if "downloads" not in table:
        table.put("downloads", secrets.token_bytes(32))
    text = f"{blob}\n{expires}".encode("utf-8", "surrogatepass")
    return hmac.new(table["downloads"], text, hashlib.sha256).hexdigest()


_SECRET = in_path("secret", _TEXT)
_PART = in_path("part", {"type": "integer", "minimum": 1, "maximum": MAX_PARTS})
_BODIES, _XML = {_OCTETS: _BINARY}, "application/xml"
_HOSTS, _ALSO = (Host.FILES, Host.INGRESS), (Host.API,)
OPERATIONS = (
    declare(
        f"PUT {_STORAGE}/uploads/{{secret}}", "PutUpload", "The bytes of a prepared upload",
        _put, tag="files", access=Access.OPEN, hosts=_HOSTS, also=_ALSO, max_body=MAX_FILE,
        description="The URL is the credential; no key is sent here.",
        parameters=(_SECRET,), bodies=_BODIES, answers={200: None}, refusals=(404, 415),
    ),
    declare(
        f"PUT {_STORAGE}/uploads/{{secret}}/{{part}}", "PutUploadPart",
        "One part of a prepared upload; its ETag is needed at the end", _put_part,
        tag="files", access=Access.OPEN, hosts=_HOSTS, also=_ALSO, max_body=MAX_FILE,
        parameters=(_SECRET, _PART), bodies=_BODIES, answers={200: None}, refusals=(404, 415),
    ),
    declare(
        f"POST {_STORAGE}/uploads/{{secret}}", "CompleteUpload",
        "Put the parts of an upload together", _complete,
        tag="files", access=Access.OPEN, hosts=_HOSTS, also=_ALSO,
        parameters=(_SECRET,), bodies={_XML: {"type": "string"}},
        answered_as=_XML, answers={200: {"type": "string"}}, refusals=(404,),
    ),
    declare(
        f"GET {_STORAGE}/files/{{blob}}/{{filename}}", "Download",
        "A stored file; a range of it with Range", _get,
        tag="files", access=Access.OPEN, hosts=(Host.FILES,), also=_ALSO,
        parameters=(
            in_path("blob", _TEXT),
            in_path("filename", _TEXT),
            Parameter(name="expires", schema=_SECONDS, required=True),
            Parameter(name="signature", schema=_TEXT, required=True),
        ),
        answered_as=_OCTETS, answers={200: _BINARY, 206: _BINARY, 304: None},
        refusals=(403, 404, 416),
    ),
)  # fmt: skip
