"""The credentials that the ready line names, and the files that hold private keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent.standin import keys
from agent.standin.state import (
    EMAIL,
    ORGANIZATION,
    PROJECT,
    current_api_key,
    organization_token,
)

if TYPE_CHECKING:
    from pathlib import Path

    from agent.standin.state import Cloud


def credentials(cloud: Cloud, folder: Path) -> dict[str, str]:
    """Return the `credentials` object of the ready line; service keys are written to `folder`.

    The file that it names is the key for location; those of the other services stand beside it,
    as service-key-fota.pem and so on: a key for one service opens no other (clause D10.4).
    """
    user = cloud.table("users").get(EMAIL)
    for service in keys.SERVICES:
        record = keys.service_key(cloud, cloud.team_id, service)
        write_private(folder / f"service-key-{service}.pem", record["private"])
    return {
        "api_key": current_api_key(cloud, EMAIL, cloud.team_id),
        "organization_auth_token": organization_token(cloud, ORGANIZATION),
        "project_key": cloud.table("projects").get(f"{ORGANIZATION}/{PROJECT}")["project_key"],
        "user_email": EMAIL,
        "user_password": user["password"],
        "user_api_key": user["user_api_key"],
        "service_key_file": str(folder / "service-key-location.pem"),
        "service_token": keys.service_token(cloud, cloud.team_id),
        "evaluation_token": keys.evaluation_token(cloud, cloud.team_id),
        "control_token": cloud.control_token,
    }


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else may read, from its first moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
