from __future__ import annotations

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.observability.api.resource_names import check_slug, check_version, to_slug, to_version
from agent.observability.ingest.chunk_codec import encode
from agent.observability.ingest.device_identity import (
    DeviceIdentity,
    IdentityTracker,
    PartialIdentity,
)

REPORTED = PartialIdentity("352656100441776", "nrf9161dk", "virtual-app", "1.2.3+abc")
EVENT = {2: 1, 3: 1, 7: "352656100441776", 10: "virtual-app", 9: "1.2.3+abc", 6: "nrf9161dk", 4: {}}
DUMP = b"\x01" + bytes(range(256)) * 4


def message(*events: object) -> bytes:
    return b"\x02" + cbor2.dumps(events[0] if len(events) == 1 else list(events))


def heard(*messages: bytes, mtu: int = 80) -> IdentityTracker:
    names = IdentityTracker(PartialIdentity())
    for each in messages:
        for chunk in encode(each, mtu):
            names.observe(chunk)
    return names


@pytest.mark.contract("O5.2")
@given(
    mtu=st.integers(9, 300), before=st.lists(st.sampled_from([DUMP, message(EVENT)]), max_size=3)
)
def test_a_device_is_called_as_its_own_events_call_it_however_they_were_cut(mtu, before):
    names = heard(*before, message(EVENT), DUMP, mtu=mtu)
    assert names.identity() == REPORTED.identity()


def test_the_last_of_several_events_counts_and_what_one_leaves_out_stays_known():
    first, last = {**EVENT, 9: "1.0.0"}, {**EVENT, 9: "2.0.0"}
    names = heard(message(first, last), message({2: 2, 3: 1, 4: {1: 1}}))
    assert names.identity().software_version == "2.0.0"
    assert names.identity().software_type == "virtual-app"


def test_devices_of_the_older_schema_tell_a_release():
    event = {key: value for key, value in EVENT.items() if key != 9} | {8: "3.0.0"}
    assert heard(message(event)).identity().software_version == "3.0.0"


@pytest.mark.parametrize(
    "events", [[{**EVENT, 7: "no slug!", 6: "", 9: 7, 10: "\x1b[31m"}], ["not an event"], [{2: 1}]]
)
def test_what_breaks_a_rule_of_the_service_is_no_name(events):
    unknown = DeviceIdentity("unknown", "unknown", "unknown", "unknown")
    assert heard(message(*events)).identity() == unknown


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_whatever_comes_as_a_chunk_does_no_harm(chunks):
    names = heard(message(EVENT))
    for chunk in chunks:
        names.observe(chunk)
    for chunk in encode(message({**EVENT, 9: "9.9.9"}), 80):
        names.observe(chunk)
    assert names.identity().software_version == "9.9.9"


@given(at=st.integers(1, 90), flip=st.integers(1, 255))
def test_a_damaged_message_teaches_nothing(at, flip):
    (chunk,) = encode(message(EVENT), 300)
    damaged = bytearray(chunk)
    damaged[min(at, len(damaged) - 1)] ^= flip
    names = IdentityTracker(PartialIdentity())
    names.observe(bytes(damaged))
    assert names.identity().software_version == "unknown"


def test_what_is_said_goes_before_what_is_reported_and_that_before_the_rest():
    names = IdentityTracker(
        PartialIdentity(software_type="main"),
        lambda: PartialIdentity("uuid", "nrf9161", "app", "v7"),
    )
    assert names.identity() == DeviceIdentity("uuid", "nrf9161", "main", "v7")
    for chunk in encode(message(EVENT), 80):
        names.observe(chunk)
    assert names.identity() == DeviceIdentity("uuid", "nrf9161dk", "main", "1.2.3+abc")
    assert names.sender == "uuid", "what is sent of one device is never under two names"
    assert names.reported_serial == "352656100441776"
    names.forget_software()
    assert names.identity().software_version == "v7"
    names.forget()
    assert names.identity() == DeviceIdentity("uuid", "nrf9161", "main", "v7")


def test_who_keeps_the_names_hears_each_change_once():
    learned: list[PartialIdentity] = []
    names = IdentityTracker(PartialIdentity(), reported=REPORTED, on_change=learned.append)
    for version in ("1.2.3+abc", "2.0.0", "2.0.0"):
        for chunk in encode(message({**EVENT, 9: version}), 80):
            names.observe(chunk)
    assert [each.software_version for each in learned] == ["2.0.0"]


@given(st.text(min_size=1, max_size=200))
def test_any_name_of_ours_can_be_made_one_of_the_service(text):
    assert check_slug("serial", to_slug(text))
    assert check_version("version", to_version(text))


def test_a_name_that_somebody_gave_and_that_breaks_its_rule_is_told():
    with pytest.raises(UsageError, match="device_serial"):
        IdentityTracker(PartialIdentity("a b")).identity()
