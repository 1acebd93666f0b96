"""The JSON Schema of each resource in responses, and the parts of such schemas."""

from agent.standin.core.schema import MOMENT, NUMBER, OBJECT, TEXT, Schema, object_schema, texts

TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
OPEN_OR_NULL: Schema = {"type": ["object", "null"]}


def nullable(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    return {"anyOf": [schema, {"type": "null"}]}


MOMENT_OR_NULL = nullable(MOMENT)


RELEASE_REF = object_schema(id=NUMBER, version=TEXT, revision=TEXT)
DEVICE_REF = object_schema(id=NUMBER, device_serial=TEXT, hardware_version=TEXT)
COHORT_REF = object_schema(id=NUMBER, name=TEXT, slug=TEXT)
A_RELEASE, A_DEVICE, A_COHORT = map(nullable, (RELEASE_REF, DEVICE_REF, COHORT_REF))

ORGANIZATION = object_schema(id=TEXT, name=TEXT, slug=TEXT, created_date=MOMENT)
PROJECT = object_schema(
    **texts("id", "name", "slug", "platform", "os", "api_key"),
    count_devices=NUMBER,
    created_date=MOMENT,
)
ARTIFACT = object_schema(
    id=NUMBER,
    type={"type": "string", "enum": ["firmware", "symbols"]},
    hardware_version=TEXT_OR_NULL,
    software_type=TEXT,
    build_id=TEXT_OR_NULL,
    **texts("filename", "url", "md5"),
    size=NUMBER,
    created_date=MOMENT,
    updated_date=MOMENT,
)
RELEASE = object_schema(
    id=NUMBER,
    **texts("version", "min_version", "revision", "notes"),
    extra_info=OPEN_OR_NULL,
    must_pass_through={"type": "boolean"},
    count_devices=NUMBER,
    artifacts={"type": "array", "items": ARTIFACT},
    created_date=MOMENT,
    updated_date=MOMENT,
)
COHORT = object_schema(
    id=NUMBER,
    name=TEXT,
    slug=TEXT,
    count_devices=NUMBER,
    last_deployment=OPEN_OR_NULL,
    created_date=MOMENT,
    updated_date=MOMENT,
)
DEVICE = object_schema(
    id=NUMBER,
    device_serial=TEXT,
    hardware_version=TEXT,
    owner_ref=TEXT_OR_NULL,
    nickname=TEXT,
    description=TEXT,
    cohort=A_COHORT,
    last_seen=MOMENT_OR_NULL,
    last_seen_release=A_RELEASE,
    created_date=MOMENT,
    updated_date=MOMENT,
)
DEPLOYMENT = object_schema(
    id=NUMBER,
    type=TEXT,
    status=TEXT,
    release=A_RELEASE,
    cohort=A_COHORT,
    deployer=OPEN_OR_NULL,
    rollout_percent=NUMBER,
    deployed_date=MOMENT,
    extra_info=OPEN_OR_NULL,
)
EVENT = object_schema(
    id=NUMBER,
    type=TEXT,
    device=A_DEVICE,
    release=A_RELEASE,
    software_type=TEXT,
    software_version=TEXT,
    sdk_version=TEXT_OR_NULL,
    event_info=OBJECT,
    user_info=OPEN_OR_NULL,
    created_date=MOMENT,
    captured_date=MOMENT,
    received_date=MOMENT,
)
TRACE = object_schema(
    id=NUMBER,
    reason=TEXT,
    reason_code={"type": ["integer", "null"]},
    source={"type": "string", "enum": ["event", "coredump"]},
    source_type={"type": "string", "enum": ["event", "coredump"]},
    issue=object_schema(id=NUMBER, title=TEXT),
    device=A_DEVICE,
    release=A_RELEASE,
    software_type=TEXT,
    software_version=TEXT,
    trace_info=OBJECT,
    captured_date=MOMENT,
    created_date=MOMENT,
)
ISSUE = object_schema(
    id=NUMBER,
    status={"type": "string", "enum": ["open", "closed", "resolved"]},
    title=TEXT,
    signature=TEXT,
    device_count=NUMBER,
    trace_count=NUMBER,
    first_seen=MOMENT,
    last_seen=MOMENT,
    first_release=A_RELEASE,
    last_release=A_RELEASE,
    last_trace=NUMBER,
    created_date=MOMENT,
)
INSTALL = object_schema(
    id=NUMBER,
    status=TEXT,
    device=A_DEVICE,
    release_from=A_RELEASE,
    release_to=A_RELEASE,
    software_type=TEXT,
    began_at=MOMENT,
    transitioned_at=MOMENT,
)
COREDUMP = object_schema(id=NUMBER, trace=NUMBER, device=A_DEVICE, size=NUMBER, created_date=MOMENT)
FILE = object_schema(
    id=NUMBER, kind=TEXT, name=TEXT, md5=TEXT, size=NUMBER, details=OBJECT, created_date=MOMENT
)
