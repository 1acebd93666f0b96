"""Firmware bundles: uploaded as a zip with a manifest, listed, deleted."""

from __future__ import annotations

import base64
import secrets
import zipfile
from typing import Annotated

import msgspec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core import zip_files
from agent.standin.core.operation import in_path, in_query
from agent.standin.core.responses import JSON, file_response
from agent.standin.core.schema import MOMENT, TEXT, Schema, object_schema, texts
from agent.standin.core.zip_files import BadArchive
from agent.standin.device_cloud.access import OPEN
from agent.standin.device_cloud.location.assistance import predictions
from agent.standin.device_cloud.operations import BYTES, Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid, not_found
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, told, with_meta
from agent.standin.device_cloud.shapes import FLAG, TEXTS, list_of, resource
from agent.standin.device_cloud.tables import BUNDLES, FILES, PREDICTIONS, Bundle
from agent.standin.state import Cloud

LARGEST_ZIP = 32 * 1024 * 1024
LARGEST_FILE = 16 * 1024 * 1024
MOST_FILES = 16
FIRMWARE_TYPES = frozenset(
    {"APP", "BOOT", "MODEM", "MDM_FULL", "SMP", "CUSTOM", "SOFTDEVICE", "BOOTLOADER"}
)
# The type of a file in a manifest -> the firmware type of the bundle. The last ones exist in the
# stand-in only, so that every type of job can be tried.
_TYPES = {
    "application": "APP",
    "mcuboot": "BOOT",
    "bootloader": "BOOTLOADER",
    "softdevice": "SOFTDEVICE",
    "init_packet": "SOFTDEVICE",
    **{name.lower(): name for name in sorted(FIRMWARE_TYPES)},
}


async def _download(context: Context) -> Response:
    cloud, path = context.cloud, context.path["path"]
    content = cloud.table(FILES).get(path)
    if content is None and path in cloud.table(PREDICTIONS):
        content = predictions(*cloud.table(PREDICTIONS)[path])
    if content is None:
        raise not_found("no such file")
    return file_response(content, context.headers, DeviceCloudRefused)


async def _listed(context: Context) -> Response:
    types = {"MODEM", "MDM_FULL"} if context.query.get("modemOnly") else FIRMWARE_TYPES
    found = (row for row in context.owned(BUNDLES).values() if row.type in types)
    return context.page().answer(found, to_resource)


async def _fetch(context: Context) -> Response:
    return answer_one(to_resource(find(context, context.path["bundle_id"])))


async def _upload(context: Context) -> Response:
    body: bytes = context.body
    if context.media_type == "text/plain":
        try:
            body = base64.b64decode(body, validate=True)
        except ValueError as error:
            raise bad_request("the body is not base64") from error
    manifest, files = read_zip(body)
    bundle = add(context.cloud, context.team, manifest, files)
    base = context.cloud.urls["downloads"]
    return JSON({"uris": [f"{base}/{path}" for path in bundle.paths]}, 202)


async def _delete(context: Context) -> Response:
    cloud = context.cloud
    row = find(context, context.path["bundle_id"])
    context.check_if_match(to_resource(row).version)
    for path in row.paths:
        cloud.table(FILES).delete(path)
    cloud.table(BUNDLES).delete(row.id)
    return accepted()


def find(context: Context, bundle_id: str) -> Bundle:
    """Return a bundle of the team. Raises a 404 where there is none."""
    return context.own(BUNDLES, bundle_id, not_found(f"no bundle {bundle_id[:128]!r}"))


def to_resource(row: Bundle) -> Resource:
    """Return the bundle resource."""
    resource = {
        "bundleId": row.id,
        **told({"name": row.name, "description": row.description}),
        "type": row.type,
        "version": row.version,
        "lastModified": row.created_at,
        "size": row.size,
        "filenames": [path.rpartition("/")[2] for path in row.paths],
    }
    return with_meta(resource, row.created_at)


def add(cloud: Cloud, team: str, manifest: Manifest, files: dict[str, bytes]) -> Bundle:
    """Store a bundle; its files can be downloaded from then on."""
    (kind, *others) = [_TYPES.get(str(one.type), "") for one in manifest.files]
    if kind not in FIRMWARE_TYPES or any(other != kind for other in others):
        raise invalid("the files of the manifest are of one known type")
    bundle_id = f"{kind}*{secrets.token_hex(4)}*{manifest.fwversion}"
    paths = []
    for name, content in files.items():
        path = f"{team}/{bundle_id}/{name}"
        cloud.table(FILES).put(path, content)
        paths.append(path)
    row = Bundle(
        id=bundle_id,
        team=team,
        name=str(manifest.name or bundle_id),
        description=str(manifest.description or ""),
        type=kind,
        version=manifest.fwversion,
        created_at=cloud.clock.iso(),
        size=sum(map(len, files.values())),
        paths=paths,
    )
    cloud.table(BUNDLES).put(bundle_id, row)
    return row


class _File(msgspec.Struct):
    file: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]{1,100}\Z")]
    type: JSONValue = None


class Manifest(msgspec.Struct):
    """What manifest.json says of a bundle; its name may be whatever JSON."""

    files: Annotated[list[_File], msgspec.Meta(min_length=1, max_length=MOST_FILES)]
    fwversion: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]{1,60}\Z")]
    name: JSONValue = None
    description: JSONValue = None


def read_zip(body: bytes) -> tuple[Manifest, dict[str, bytes]]:
    """Return the manifest and the files that it names. Raises 422 on anything unexpected."""
    try:
        with zip_files.opened(body) as archive:
            if len(archive.namelist()) > MOST_FILES + 1:
                raise invalid(f"a bundle holds {MOST_FILES} files at most")
            raw = _member(archive, "manifest.json", 65536)
            manifest = msgspec.json.decode(raw, type=Manifest)
            names = [one.file for one in manifest.files]
            return manifest, {name: _member(archive, name, LARGEST_FILE) for name in names}
    except BadArchive as error:
        raise invalid(str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid(f"manifest.json: {error}") from error


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    content = zip_files.member(archive, name, limit)
    if not content:
        raise BadArchive(f"{name} is empty")
    return content


_ZIP: Schema = {
    "type": "string",
    "format": "firmware-bundle",
    "contentMediaType": "application/zip",
    "description": "A zip: manifest.json, and the files of one firmware type that it names.",
}
_BASE64: Schema = {**_ZIP, "format": "firmware-bundle-base64", "contentEncoding": "base64"}
_ONE = "/v1/firmwares/{bundle_id}"
_BUNDLE = resource(
    "name",
    "description",
    **texts("bundleId", "name", "description", "type", "version"),
    lastModified=MOMENT,
    size={"type": "integer"},
    filenames=TEXTS,
)
OPERATIONS = (
    declare(
        "GET /v1/firmwares", "ListFirmware", "Bundles.", _listed, tag="FOTA",
        parameters=(*in_query(modemOnly=FLAG), *PAGES),
        answers={200: list_of(_BUNDLE)},
    ),
    declare(
        "POST /v1/firmwares", "UploadFirmware", "A bundle, as a zip with a manifest.", _upload,
        tag="FOTA", bodies={"application/zip": _ZIP, BYTES: _ZIP, "text/plain": _BASE64},
        max_body=LARGEST_ZIP, answers={202: object_schema(uris=TEXTS)},
    ),
    declare(
        f"GET {_ONE}", "FetchFirmware", "A bundle.", _fetch, tag="FOTA", answers={200: _BUNDLE},
    ),
    declare(
        f"DELETE {_ONE}", "DeleteFirmware", "Delete a bundle.", _delete, tag="FOTA",
        answers={202: None},
    ),
)  # fmt: skip
DOWNLOADS = (
    declare(
        "GET /{path:path}", "Download", "A file.", _download, tag="FOTA", access=OPEN,
        parameters=(in_path("path", TEXT),),
        answered_as=BYTES, answers={200: TEXT, 206: TEXT},
    ),
)  # fmt: skip
"""What another host serves, which has no document."""
