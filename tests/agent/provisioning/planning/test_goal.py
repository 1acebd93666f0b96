"""A goal that cannot be reached is refused, and a board's id at the cloud follows from it."""

from __future__ import annotations

import pytest

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
def test_a_claim_with_a_proof_takes_commands_and_gives_the_key_in_the_end() -> None:
    claim = Goal(TAG, registration=RegistrationMethod.CLAIM)
    assert (claim.takes_commands, claim.gives_key) == (True, True)
    stops = Goal(TAG, registration=RegistrationMethod.CLAIM, prove=False)
    assert (stops.takes_commands, stops.gives_key) == (False, False)
    with pytest.raises(ValueError, match="--host-key"):
        Goal(TAG, key_origin=KeyOrigin.HOST, registration=RegistrationMethod.CLAIM)


@pytest.mark.parametrize("prefix", ["nrf-", "A", "50:8c:b1:", "line_3.", "9" * 49])
def test_what_a_device_id_may_have_is_taken_as_its_beginning(prefix: str) -> None:
    assert Goal(TAG, id_prefix=prefix).device_id("uuid", "1") == f"{prefix}1"


@pytest.mark.parametrize(
    "prefix",
    ['"nrf-"', "'", "nrf ", " nrf-", "nrf,", "a/b", "-nrf", "=1+", "nrf-\n", "ü", "9" * 50],
)
def test_a_prefix_that_no_device_id_may_have_is_refused_with_what_is_allowed(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"at most 49 letters \(a-z\), digits and"):
        Goal(TAG, id_prefix=prefix)
