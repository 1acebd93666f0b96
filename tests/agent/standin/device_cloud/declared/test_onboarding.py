"""Onboarding as it is declared: what a CSV holds is what the handlers check (D9.3)."""

from __future__ import annotations

import pytest

from agent.standin.device_cloud.declared.onboarding import onboarding, provisioning
from agent.standin.device_cloud.devices.claiming import CLAIMS
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES, CsvTable
from agent.standin.device_cloud.devices.onboarding import PROJECT_DEVICES

OPERATIONS = {one.name: one for one in (*onboarding(), *provisioning())}


@pytest.mark.contract("D9.3")
@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("RegisterPublicKeys", KEYS),
        ("RegisterCertificates", KEYS),
        ("OnboardDevices", NEW_DEVICES),
        ("CreateProjectDevices", PROJECT_DEVICES),
        ("ClaimDeviceOwnership", CLAIMS),
    ],
)
def test_a_csv_is_declared_with_the_columns_that_are_checked(name: str, table: CsvTable) -> None:
    assert OPERATIONS[name].bodies["text/csv"] == table.schema


def test_what_is_created_is_answered_with_its_id_or_its_resource() -> None:
    for name in ("RegisterPublicKeys", "RegisterCertificates", "OnboardDevices"):
        (schema,) = OPERATIONS[name].answers[202].values()
        assert schema["required"] == ["bulkOpsRequestId"]
    for name in ("CreateDeviceProvisioningCommand", "CreateProvisioningByName"):
        (schema,) = OPERATIONS[name].answers[201].values()
        assert schema["required"] == ["$meta"]
