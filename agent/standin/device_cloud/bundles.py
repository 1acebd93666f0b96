"""Firmware bundles: uploaded as a zip with a manifest, listed, deleted."""

from __future__ import annotations

import base64
import binascii
import io
import re
import secrets
import zipfile
import zlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON, file_response
from agent.standin.device_cloud import access, paging
from agent.standin.device_cloud.assistance import predictions
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid, not_found
from agent.standin.device_cloud.resource import accepted, answer_one, check_if_match, with_meta
from agent.standin.state import Cloud


def download_routes(cloud: Cloud) -> list[Route]:
    """Return the route that serves files."""

    async def file(request: Request) -> Response:
        path = request.path_params["path"]
        content = cloud.table("files").get(path)
        if content is None and path in cloud.table("predictions"):
            content = predictions(*cloud.table("predictions").get(path))
        if content is None:
            raise not_found("no such file")
        return file_response(content, request.headers, DeviceCloudRefused)

    return [Endpoint("/{path:path}", file, methods=["GET"])]


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
_VERSION = re.compile(r"[a-zA-Z0-9._-]{1,60}")
_FILE = re.compile(r"[a-zA-Z0-9._-]{1,100}")


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of bundles."""

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        modem = paging.boolean(request, "modemOnly", default=False)
        found = (
            to_resource(row)
            for row in cloud.table("bundles").values()
            if row["team"] == principal.team and (not modem or row["type"] in {"MODEM", "MDM_FULL"})
        )
        items, rest = paging.page(request).cut(found)
        return JSON({"items": items, **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        return answer_one(
            to_resource(find(cloud, principal.team, request.path_params["bundle_id"]))
        )

    async def upload(request: Request) -> Response:
        principal = access.user(request, cloud)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind == "text/plain":
            try:
                body = base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError) as error:
                raise bad_request("the body is not base64") from error
        elif kind not in {"application/zip", "application/octet-stream"}:
            raise DeviceCloudRefused(415, "a bundle is sent as application/zip")
        manifest, files = read_zip(body)
        bundle = add(cloud, principal.team, manifest, files)
        base = cloud.urls["downloads"]
        return JSON({"uris": [f"{base}/{path}" for path in bundle["paths"]]}, 202)

    async def delete(request: Request) -> Response:
        principal = access.user(request, cloud)
        row = find(cloud, principal.team, request.path_params["bundle_id"])
        check_if_match(request, to_resource(row)["$meta"]["version"])
        for path in row["paths"]:
            cloud.table("files").delete(path)
        cloud.table("bundles").delete(row["bundleId"])
        return accepted()

    one = "/v1/firmwares/{bundle_id}"
    return [
        Endpoint("/v1/firmwares", listed, methods=["GET"], name="ListFirmware"),
        Endpoint(
            "/v1/firmwares",
            upload,
            methods=["POST"],
            name="UploadFirmware",
            max_body=LARGEST_ZIP,
        ),
        Endpoint(one, fetch, methods=["GET"], name="FetchFirmware"),
        Endpoint(one, delete, methods=["DELETE"], name="DeleteFirmware"),
    ]


def find(cloud: Cloud, team: str, bundle_id: str) -> dict[str, Any]:
    """Return a bundle of the team. Raises a 404 where there is none."""
    row: dict[str, Any] | None = cloud.table("bundles").get(bundle_id)
    if row is None or row["team"] != team:
        raise not_found(f"no bundle {bundle_id[:128]!r}")
    return row


def to_resource(row: dict[str, Any]) -> dict[str, Any]:
    """Return the bundle resource."""
    resource = {
        "bundleId": row["bundleId"],
        "name": row["name"],
        "description": row["description"],
        "type": row["type"],
        "version": row["version"],
        "lastModified": row["created_at"],
        "size": row["size"],
        "uris": row["uris"],
        "files": row["files"],
    }
    return with_meta(resource, row["created_at"])


def add(
    cloud: Cloud, team: str, manifest: dict[str, Any], files: dict[str, bytes]
) -> dict[str, Any]:
    """Store a bundle; its files can be downloaded from then on. Return its row."""
    (kind, *others) = [_TYPES.get(str(entry.get("type")), "") for entry in manifest["files"]]
    if kind not in FIRMWARE_TYPES or any(other != kind for other in others):
        raise invalid("the files of the manifest are of one known type")
    version = manifest.get("fwversion")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise invalid("fwversion is 1 to 60 letters, digits and . _ -")
    bundle_id = f"{kind}*{secrets.token_hex(4)}*{version}"
    paths = []
    for name, content in files.items():
        path = f"{team}/{bundle_id}/{name}"
        cloud.table("files").put(path, content)
        paths.append(path)
    row = {
        "bundleId": bundle_id,
        "team": team,
        "name": str(manifest.get("name") or bundle_id),
        "description": str(manifest.get("description") or ""),
        "type": kind,
        "version": version,
        "created_at": cloud.clock.iso(),
        "size": sum(map(len, files.values())),
        "paths": paths,
        "uris": [f"{cloud.urls['downloads']}/{path}" for path in paths],
        "files": [{"file": name, "size": len(content)} for name, content in files.items()],
    }
    cloud.table("bundles").put(bundle_id, row)
    return row


def read_zip(body: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the files that it names. Raises 422 on anything unexpected."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            if len(archive.namelist()) > MOST_FILES + 1:
                raise invalid(f"a bundle holds {MOST_FILES} files at most")
            manifest = msgspec.json.decode(_member(archive, "manifest.json", 65536))
            names = _files_of(manifest)
            return manifest, {name: _member(archive, name, LARGEST_FILE) for name in names}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise invalid(f"the body is no zip that can be read: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid(f"manifest.json is not JSON: {error}") from error


def _files_of(manifest: Any) -> list[str]:
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), list):
        raise invalid("manifest.json holds `files`, a list")
    entries = manifest["files"]
    if not 1 <= len(entries) <= MOST_FILES or not all(isinstance(e, dict) for e in entries):
        raise invalid(f"manifest.json names 1 to {MOST_FILES} files")
    names = [entry.get("file") for entry in entries]
    if not all(isinstance(name, str) and _FILE.fullmatch(name) for name in names):
        raise invalid("a file's name is letters, digits and . _ -")
    return [str(name) for name in names]


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    try:
        with archive.open(name) as member:
            content = member.read(limit + 1)
    except KeyError as error:
        raise invalid(f"the zip holds no {name}") from error
    if len(content) > limit:
        raise invalid(f"{name} is larger than {limit} bytes")
    return content
