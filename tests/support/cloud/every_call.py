"""One call of each kind, with parameters that make a request."""

from typing import Any

from agent.call import Call
from agent.cloud import NewDevice, PublicKey
from agent.cloud.account import FetchAccount, FetchServiceToken, MakeServiceKeyAndToken
from agent.cloud.device_changes import (
    DeleteDevice,
    DiscoverServices,
    UpdateCharacteristicValue,
    UpdateDescriptorValue,
    UpdateDeviceName,
    UpdateDeviceState,
    UpdateDeviceTags,
)
from agent.cloud.device_reads import (
    FetchCharacteristicValue,
    FetchDevice,
    ListDevices,
    TransformDevice,
    TransformDevices,
)
from agent.cloud.firmware import CreateJob, DeleteFirmware, UploadFirmware
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.cloud.messages import ListMessages, SendMessage
from agent.cloud.openapi import FetchOpenApi
from agent.cloud.project_devices import FetchOnboardingResult, OnboardInProject, ProvenBy
from agent.cloud.public_keys import (
    FetchBulkOperation,
    OnboardByToken,
    OnboardDevices,
    RegisterPublicKeys,
)
from agent.config.project import ProjectSlugs
from agent.location.calls import GroundFix, LocateCell, LocateWifi
from agent.observability import KINDS, Scope
from agent.observability.api.client import FetchLatestRelease, FetchMe
from agent.observability.api.keys import (
    CycleProjectKey,
    CycleUserKey,
    DeleteUserKey,
    FetchProjectKey,
    FetchUserKey,
)
from agent.observability.api.resources import (
    CreateResource,
    DeleteResource,
    DeleteResources,
    FetchResource,
    ListResources,
    PutRelation,
    UpdateResource,
)
from agent.observability.ingest.chunks import PushChunks
from agent.observability.ingest.events import PushEvents
from agent.provisioning.running.steps.provisioning_commands import (
    ClaimDevice,
    CreateProvisioningCommand,
    FetchProvisioningCommand,
    ListProvisioningCommands,
)

PEM = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
COHORT, DEVICE = KINDS["cohort"], KINDS["device"]
SCOPE, HERE = Scope("acme", "kits"), ProjectSlugs("acme", "kits")
CALLS: list[Call[Any]] = [
    UploadFirmware(b"PK"),
    CreateJob("APP*1*v1", ["d"]),
    DeleteFirmware("APP*1*v1"),
    ListDevices(),
    TransformDevices("id"),
    FetchDevice("d"),
    TransformDevice("d", "id"),
    FetchCharacteristicValue("d", "c"),
    UpdateDeviceName("d", "n"),
    UpdateDeviceName("d", "n", "41"),
    UpdateDeviceTags("d", ("t",)),
    UpdateDeviceState("d", {"a": 1}),
    UpdateCharacteristicValue("d", "c", b"\1"),
    UpdateDescriptorValue("d", "c", "e", b"\1"),
    DeleteDevice("d"),
    DiscoverServices("d", "g"),
    RegisterPublicKeys((PublicKey("d", PEM),)),
    OnboardDevices((NewDevice("d", PEM),)),
    OnboardByToken("d", "h.p.s"),
    FetchBulkOperation("r"),
    SendMessage("d", {}),
    ListMessages(),
    FetchAccount(),
    FetchServiceToken(),
    MakeServiceKeyAndToken(),
    FetchOpenApi(),
    FetchCurrentJob("d"),
    UpdateJob("d", "j", "SUCCEEDED"),
    LocateWifi(HERE, access_points=({}, {})),
    LocateCell(HERE, cells=({},)),
    GroundFix(None, cells=({},)),
    ClaimDevice("token"),
    OnboardInProject(ProjectSlugs("acme", "kits"), ProvenBy.ATTESTATION, (("d", "token"),)),
    FetchOnboardingResult("/v1/organizations/acme/projects/kits/long-range/devices/bulk/1"),
    CreateProvisioningCommand("u", {"finished": {}}),
    FetchProvisioningCommand("u", "c"),
    ListProvisioningCommands("u"),
    ListResources(COHORT, SCOPE),
    FetchResource(COHORT, SCOPE, "c"),
    CreateResource(COHORT, SCOPE, {"a": 1}),
    UpdateResource(COHORT, SCOPE, "c", {"a": 1}),
    PutRelation(COHORT, SCOPE, "c", DEVICE, "d"),
    DeleteResource(COHORT, SCOPE, "c"),
    DeleteResources(COHORT, SCOPE, ["1"]),
    FetchMe(),
    FetchProjectKey(SCOPE),
    CycleProjectKey(SCOPE),
    FetchUserKey(),
    CycleUserKey(),
    DeleteUserKey(),
    FetchLatestRelease("d", "hw", "sw"),
    PushChunks("d", [b"\x08\x00\x00"]),
    PushEvents([b"{}"]),
]
