"""The line of JSON that tells whoever started the stand-in its addresses and credentials."""

from pathlib import Path

from agent.standin import state
from agent.standin.keys import SERVICES, evaluation_token, service_key, service_token
from agent.standin.store import make_private


def ready_line(cloud: state.Cloud, folder: Path) -> dict[str, object]:
    """Return the ready line of a stand-in that is being served; keys are written to `folder`."""
    return {
        "ready": True,
        "urls": cloud.urls,
        "organization": state.ORGANIZATION,
        "project": state.PROJECT,
        "team_id": cloud.team_id,
        "credentials": credentials(cloud, folder),
    }


def credentials(cloud: state.Cloud, folder: Path) -> dict[str, str]:
    """Return the `credentials` object of the ready line; service keys are written to `folder`.

    The file that it names is the key for location; service-key-fota.pem and so on are beside it: a
    key for one service opens no other (clause D10.4).
    """
    user = cloud.table(state.USERS)[state.EMAIL]
    keys = {service: service_key(cloud, cloud.team_id, service) for service in SERVICES}
    for service, key in keys.items():
        file = folder / f"service-key-{service}.pem"
        make_private(file)
        file.write_text(key.private)
    return {
        "api_key": state.current_api_keys(cloud, state.EMAIL, cloud.team_id)[0].key,
        "organization_auth_token": state.organization_token(cloud, state.ORGANIZATION),
        "project_key": cloud.table(state.PROJECTS)[
            f"{state.ORGANIZATION}/{state.PROJECT}"
        ].project_key,
        "user_email": state.EMAIL,
        "user_password": user.password,
        "user_api_key": user.user_api_key,
        "service_key_file": str(folder / "service-key-location.pem"),
        "service_token": service_token(cloud, keys["location"]),
        "evaluation_token": evaluation_token(cloud, cloud.team_id),
        "control_token": cloud.control_token,
    }
