"""The profile that makes the other commands use a running stand-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.config.write import write_profile


def write_standin_profile(name: str, ready: dict[str, Any], *, file: Path | None = None) -> Path:
    """Write the profile for the stand-in of a ready line; return the configuration's path."""
    secrets = ready["credentials"]
    key_file = Path(secrets["service_key_file"])
    values = {
        "hosts": {host: url for host, url in ready["urls"].items() if host != "downloads"},
        "account": {
            "organization": ready["organization"],
            "project": ready["project"],
            "team_id": ready["team_id"],
            "email": secrets["user_email"],
        },
        "credentials": {
            "service_key_files": {
                service: str(key_file.with_name(f"service-key-{service}.pem"))
                for service in ("location", "fota")
            }
        },
    }
    return write_profile(
        name,
        values,
        {
            "api_key": secrets["api_key"],
            "organization_token": secrets["organization_auth_token"],
            "project_key": secrets["project_key"],
            "user_api_key": secrets["user_api_key"],
            "user_password": secrets["user_password"],
            "service_token": secrets["service_token"],
            "evaluation_token": secrets["evaluation_token"],
            "control_token": secrets["control_token"],
        },
        file=file,
    )
