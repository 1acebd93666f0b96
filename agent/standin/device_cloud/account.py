"""Account, status, and two deprecated account paths (clauses D9.4, D10.9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin import keys
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.device_cloud import access
from agent.standin.device_cloud.refusals import forbidden, invalid, not_found
from agent.standin.device_cloud.resource import answer_one, check_if_match, with_meta
from agent.standin.principal import Principal
from agent.standin.state import TEAMS, USERS, Cloud

EARLIEST_REMOVAL = datetime(2026, 7, 2, tzinfo=UTC)
"""The deprecated paths may be removed any time after July 1, 2026, and not before."""
CREATED_AT = "2025-01-02T03:04:05.678Z"
"""Creation time of every account."""
PLANS_WITH_SERVICE_KEYS = frozenset({"PRO", "ENTERPRISE"})


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of account and status."""

    async def status(_request: Request) -> Response:
        return JSON({"status": "online", "login": True})

    async def account(request: Request) -> Response:
        return answer_one(_to_resource(cloud, access.user(request, cloud)))

    async def service_token(request: Request) -> Response:
        principal = access.user(request, cloud)
        _require_deprecated_paths(cloud)
        record = keys.service_key(cloud, principal.team, "location")
        token = keys.service_token(cloud, principal.team)
        return JSON({"token": token, "createdAt": record.created_at})

    async def service_key_and_token(request: Request) -> Response:
        principal = access.user(request, cloud)
        _require_deprecated_paths(cloud)
        plan = cloud.table(TEAMS)[principal.team].plan
        if plan.upper() not in PLANS_WITH_SERVICE_KEYS:
            raise forbidden("a service key needs a Pro or Enterprise plan")
        if principal.role != "owner":
            raise forbidden("a service key needs the role of team owner")
        service = request.query_params.get("service", "location")
        if service not in keys.SERVICES:
            raise invalid(f"there are keys for {', '.join(keys.SERVICES)}")
        # The account lists its keys, so it is the resource that this changes.
        check_if_match(request, _to_resource(cloud, principal)["$meta"]["version"])
        record = keys.make_service_key(cloud, principal.team, service)
        token = keys.signed_by(cloud, record)
        return JSON(
            {
                "serviceKey": record.private,
                "service": service,
                "token": token,
                "createdAt": record.created_at,
            }
        )

    return [
        Endpoint("/v1/status", status, methods=["GET"], name="FetchStatus"),
        Endpoint("/v1/account", account, methods=["GET"], name="FetchAccountInfo"),
        Endpoint("/v1/account/service-token", service_token, methods=["GET"]),
        Endpoint("/v1/account/service-key-and-token", service_key_and_token, methods=["POST"]),
    ]


def _require_deprecated_paths(cloud: Cloud) -> None:
    if not cloud.settings.account_paths and cloud.clock.now() >= EARLIEST_REMOVAL:
        raise not_found("this path was removed; organization auth tokens replace service tokens")


def _to_resource(cloud: Cloud, principal: Principal) -> dict[str, Any]:
    team = principal.team
    record = cloud.table(TEAMS)[team]
    made = (cloud.table(keys.SERVICE_KEYS).get(f"{team}/{service}") for service in keys.SERVICES)
    resource = {
        "mqttEndpoint": "mqtt.standin.invalid",
        "mqttTopicPrefix": f"prod/{team}/",
        "team": {"tenantId": team, "name": record.name},
        "role": principal.role,
        "userId": cloud.table(USERS)[principal.email].id,
        "tags": [],
        "plan": {
            "name": record.plan,
            "proxyUsageDeclarations": {},
            "currentMonthCosts": [],
            "serviceKeys": [
                {"service": key.service, "enabled": True, "createdAt": key.created_at}
                for key in made
                if key is not None
            ],
        },
    }
    return with_meta(resource, CREATED_AT)
