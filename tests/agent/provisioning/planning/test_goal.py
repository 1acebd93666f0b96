"""A goal that cannot be reached is refused, and a board's id at the cloud follows from it."""

from __future__ import annotations

import pytest

from agent.errors import RefusedByRule
from agent.provisioning.planning.goal import CertificateSource, Goal, KeyOrigin, RegistrationMethod

TAG = 16842753


def test_a_modems_own_key_signs_no_certificate_and_a_hosts_key_does() -> None:
    with pytest.raises(ValueError, match="signs no certificate"):
        Goal(TAG, certificate=CertificateSource.SELF_SIGNED)
    host = Goal(TAG, key_origin=KeyOrigin.HOST, certificate=CertificateSource.SELF_SIGNED)
    assert host.certificate is CertificateSource.SELF_SIGNED


@pytest.mark.parametrize(
    ("prefix", "device_id"), [("", "the-uuid"), ("nrf-", "nrf-350457791234567")]
)
def test_a_device_is_named_by_its_uuid_or_by_prefix_and_imei(prefix: str, device_id: str) -> None:
    assert Goal(TAG, id_prefix=prefix).device_id("the-uuid", "350457791234567") == device_id


@pytest.mark.contract("D10.8")
def test_a_claim_cannot_be_proven_because_it_gives_the_service_no_key() -> None:
    with pytest.raises(RefusedByRule, match="gives the service no key") as refused:
        Goal(TAG, registration=RegistrationMethod.CLAIM)
    assert "--no-proof" in refused.value.hint
    assert "--registration onboard" in refused.value.hint
    assert Goal(TAG, registration=RegistrationMethod.CLAIM, prove=False).prove is False
