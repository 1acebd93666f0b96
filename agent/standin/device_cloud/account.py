"""Account, status, and two deprecated account paths (clauses D9.4, D10.9)."""

from datetime import UTC, datetime

from starlette.responses import Response

from agent.standin import keys
from agent.standin.core.operation import in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, OBJECT, TEXT, object_schema
from agent.standin.device_cloud.access import OPEN
from agent.standin.device_cloud.devices.onboarding import certificate_for
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.refusals import forbidden, not_found
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, with_meta
from agent.standin.device_cloud.shapes import TEXTS, resource
from agent.standin.principal import Principal
from agent.standin.state import TEAMS, USERS, Cloud

EARLIEST_REMOVAL = datetime(2026, 7, 2, tzinfo=UTC)
"""The deprecated paths may be removed any time after July 1, 2026, and not before."""
CREATED_AT = "2025-01-02T03:04:05.678Z"
"""Creation time of every account."""
_COST = {
    "serviceId": "Devices",
    "serviceDescription": "Devices in your account",
    "quantity": 4,
    "price": 0.1,
    "total": 0.4,
}
"""The bill of every account, whatever it uses."""
PLANS_WITH_SERVICE_KEYS = frozenset({"PRO", "ENTERPRISE"})


async def _status(_context: Context) -> Response:
    return JSON({"status": "online", "login": True})


async def _account(context: Context) -> Response:
    return answer_one(_to_resource(context.cloud, context.principal))


async def _service_token(context: Context) -> Response:
    _require_deprecated_paths(context.cloud)
    record = keys.service_key(context.cloud, context.team, "location")
    token = keys.service_token(context.cloud, record)
    return JSON({"token": token, "createdAt": record.created_at})


async def _service_key_and_token(context: Context) -> Response:
    cloud, principal = context.cloud, context.principal
    _require_deprecated_paths(cloud)
    plan = cloud.table(TEAMS)[principal.team].plan
    if plan.upper() not in PLANS_WITH_SERVICE_KEYS:
        raise forbidden("a service key needs a Pro or Enterprise plan")
    if principal.role != "owner":
        raise forbidden("a service key needs the role of team owner")
    service = context.query.get("service", "location")
    # The account lists its keys, so it is the resource that this changes.
    context.check_if_match(_to_resource(cloud, principal).version)
    record = keys.make_service_key(cloud, principal.team, service)
    return JSON(
        {
            "serviceKey": record.private,
            "service": service,
            "token": keys.service_token(cloud, record),
            "createdAt": record.created_at,
        }
    )


async def _create_device(context: Context) -> Response:
    made = certificate_for(f"account-{context.team}", context.cloud.clock.now())
    return JSON({name: made[name] for name in _OF_A_DEVICE})


async def _delete_device(context: Context) -> Response:
    context.check_if_match(_to_resource(context.cloud, context.principal).version)
    return accepted()


def _require_deprecated_paths(cloud: Cloud) -> None:
    if not cloud.settings.account_paths and cloud.clock.now() >= EARLIEST_REMOVAL:
        raise not_found("this path was removed; organization auth tokens replace service tokens")


def _to_resource(cloud: Cloud, principal: Principal) -> Resource:
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
            "proxyUsageDeclarations": dict.fromkeys(("AGPS", "PGPS", "GROUND_FIX"), 0),
            "currentMonthCosts": [_COST],
            "currentMonthTotalCost": _COST["total"],
            "serviceKeys": [
                {"service": key.service, "enabled": True, "createdAt": key.created_at}
                for key in made
                if key is not None
            ],
        },
    }
    return with_meta(resource, CREATED_AT)


_PLAN = object_schema(
    name=TEXT,
    proxyUsageDeclarations={"type": "object", "additionalProperties": {"type": "integer"}},
    currentMonthCosts={"type": "array", "items": OBJECT},
    currentMonthTotalCost={"type": "number"},
    serviceKeys={
        "type": "array",
        "items": object_schema(service=TEXT, enabled={"type": "boolean"}, createdAt=MOMENT),
    },
)
_ACCOUNT = resource(
    mqttEndpoint=TEXT,
    mqttTopicPrefix=TEXT,
    team=object_schema(tenantId=TEXT, name=TEXT),
    role=TEXT,
    userId=TEXT,
    tags=TEXTS,
    plan=_PLAN,
)
_STATUS = object_schema(status=TEXT, login={"type": "boolean"})
_TOKEN = object_schema(token=TEXT, createdAt=MOMENT)
_KEY = object_schema(serviceKey=TEXT, service=TEXT, token=TEXT, createdAt=MOMENT)
_OF_A_DEVICE = ("clientCert", "privateKey")
_CREDENTIALS = object_schema(**dict.fromkeys(_OF_A_DEVICE, TEXT))
OPERATIONS = (
    declare(
        "GET /v1/status", "FetchStatus", "Whether the service is up.", _status,
        tag="Account", access=OPEN, answers={200: _STATUS},
    ),
    declare(
        "GET /v1/account", "FetchAccountInfo", "The team, its plan, the user's role.", _account,
        tag="Account", answers={200: _ACCOUNT},
    ),
    declare(
        "GET /v1/account/service-token", "FetchServiceToken",
        "A service token; organization auth tokens replace it.", _service_token,
        tag="Account", deprecated=True, answers={200: _TOKEN},
    ),
    declare(
        "POST /v1/account/service-key-and-token", "CreateServiceKeyAndToken",
        "A new service key in place of the old one.", _service_key_and_token,
        tag="Account", deprecated=True, changes=True, answers={200: _KEY},
        parameters=in_query(service={"type": "string", "enum": [*keys.SERVICES]}),
    ),
    declare(
        "POST /v1/devices/account", "CreateAccountDevice",
        "The credentials of the account's own MQTT client.", _create_device,
        tag="Account", answers={200: _CREDENTIALS},
    ),
    declare(
        "DELETE /v1/devices/account", "DeleteAccountDevice", "Withdraw them.", _delete_device,
        tag="Account", answers={202: None},
    ),
)  # fmt: skip
