"""Keys that the service creates: service keys, the old evaluation token (D10.4, D10.6)."""

import uuid

from msgspec import Struct

from agent.standin import jwt, state
from agent.standin.store import TableOf

SERVICES = ("location", "fota", "device")
TRIAL_S = 30 * 86400
SERVICE_TOKEN_S = 365 * 86400


class ServiceKey(Struct, kw_only=True):
    """The key pair of a service of a team, as PEM."""

    team: str
    service: str
    private: str
    public: str
    created_at: str


class EvaluationToken(Struct, kw_only=True):
    """The evaluation token of a team, and the key (PEM) that verifies it."""

    token: str
    public: str
    created_at: float


SERVICE_KEYS = TableOf("service_keys", ServiceKey)
"""By "team/service"."""
EVALUATION_TOKENS = TableOf("evaluation_tokens", EvaluationToken)
"""By team."""


def make_service_key(cloud: state.Cloud, team: str, service: str) -> ServiceKey:
    """Create and store the key of a service; its predecessor stops working."""
    private, public = jwt.new_key()
    record = ServiceKey(
        team=team, service=service, private=private, public=public, created_at=cloud.clock.iso()
    )
    cloud.table(SERVICE_KEYS).put(f"{team}/{service}", record)
    return record


def service_key(cloud: state.Cloud, team: str, service: str) -> ServiceKey:
    """Return the key of a service; it is created at the first call."""
    found = cloud.table(SERVICE_KEYS).get(f"{team}/{service}")
    return found or make_service_key(cloud, team, service)


def service_token(cloud: state.Cloud, record: ServiceKey) -> str:
    """Return a service token: a JWT for the team of a key, signed with it, valid for a year."""
    now = int(cloud.clock.time())
    claims = {"aud": record.team, "iat": now, "exp": now + SERVICE_TOKEN_S}
    return jwt.sign(claims, record.private)


def evaluation_token(cloud: state.Cloud, team: str) -> str:
    """Return the team's evaluation token, of a kind that is no longer issued."""
    table = cloud.table(EVALUATION_TOKENS)
    record = table.get(team)
    if record is None:
        private, public = jwt.new_key()
        now = cloud.clock.time()
        token = jwt.sign({"aud": team, "iat": int(now), "jti": str(uuid.uuid4())}, private)
        record = EvaluationToken(token=token, public=public, created_at=now)
        table.put(team, record)
    return record.token
