"""The profiles that need no file: the stand-in, the public services, and a neutral one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NEUTRAL = "custom"

BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    # The names of the contract, no host: what a profile of one's own starts from.
    NEUTRAL: {},
    # `cellagent cloud serve --write-profile NAME` fills in the URLs of the one that runs.
    "standin": {
        "account": {"project_key_header": "Service-Project-Key"},
        "fota": {"hosts": ["127.0.0.1"]},
    },
    # The real services: complete but for the user's slugs, email and secrets.
    "public": {
        "hosts": {
            "device_cloud": "https://api.nrfcloud.com",
            "provisioning": "https://api.provisioning.nrfcloud.com",
            "api": "https://api.memfault.com",
            "chunks": "https://chunks.memfault.com",
            "ingress": "https://ingress.memfault.com",
            "files": "https://files.memfault.com",
        },
        "account": {"project_key_header": "Memfault-Project-Key"},
        "fota": {"hosts": ["firmware.nrfcloud.com", "bundles.nrfcloud.com"]},
    },
}
