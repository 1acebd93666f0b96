"""The profile of a running stand-in, made of the line of JSON that it printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.config.secrets import SECRETS
from agent.config.write import write_profile


def write_standin_profile(
    name: str,
    ready: Mapping[str, Any],
    more: Mapping[str, object] | None = None,
    *,
    file: Path | None = None,
) -> Path:
    """Write a profile for the stand-in that printed `ready`; return the configuration file.

    `more` are sections of the profile that are not the stand-in's.
    """
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
        **(more or {}),
    }
    named = {"organization_token": secrets["organization_auth_token"]}
    named |= {key: secrets[key] for key in SECRETS if key in secrets}
    return write_profile(name, values, named, file=file)
