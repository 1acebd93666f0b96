"""A core dump of the device SDK is parsed whole, or named as wrong."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.ingest.coredumps import BadCoredump, parse_coredump
from tests.support.dumps.sdk_bytes import block, coredump


@pytest.mark.contract("O5.1", "O5.2")
def test_a_core_dump_says_who_died_and_of_what() -> None:
    dump = parse_coredump(coredump("kit-1", reason=0x9400, memory=b"m" * 32))
    assert (dump.device_serial, dump.reason, dump.machine) == ("kit-1", 0x9400, "arm")
    assert (dump.software_type, dump.software_version) == ("modem-app", "2.4.1")
    assert dump.hardware_version == "nrf9161dk"
    assert dump.build_id == bytes(range(20)).hex()
    assert dump.regions == ((0x2000_0000, 32),)
    assert not dump.truncated


@pytest.mark.contract("O5.2")
def test_an_older_dump_has_no_footer_and_a_newer_one_is_not_known() -> None:
    dump = parse_coredump(coredump("kit-1", memory=b"m" * 32, version=1))
    assert (dump.device_serial, dump.reason, dump.truncated) == ("kit-1", 0x9400, False)
    assert dump.regions == ((0x2000_0000, 32),)
    with pytest.raises(BadCoredump, match="version 3 is not known"):
        parse_coredump(coredump(version=3))
    with pytest.raises(BadCoredump, match="too short for a header and a footer"):
        parse_coredump(struct.pack("<4sIII", b"CORE", 2, 16, 0))


@given(cut=st.integers(0, 300), version=st.sampled_from([1, 2]))
def test_a_torn_dump_is_never_taken_for_a_whole_one(cut: int, version: int) -> None:
    whole = coredump(version=version)
    with pytest.raises(BadCoredump):
        parse_coredump(whole[: min(cut, len(whole) - 1)])


def test_a_block_longer_than_the_dump_is_refused() -> None:
    bad = block(1, bytes(8))
    bad = bad[:8] + struct.pack("<I", 0xFFFF_FFFF) + bad[12:]
    size = 12 + len(bad) + 16
    data = struct.pack("<4sII", b"CORE", 2, size) + bad + struct.pack("<4sIII", b"DUMP", 0, 0, 0)
    with pytest.raises(BadCoredump, match="does not fit"):
        parse_coredump(data)


@pytest.mark.contract("O5.2")
@given(name=st.binary(max_size=20))
def test_a_name_that_is_no_text_is_shown_as_far_as_it_is_one(name: bytes) -> None:
    body = block(2, name) + block(1, bytes(8), 0x2000_0000)
    size = 12 + len(body) + 16
    data = struct.pack("<4sII", b"CORE", 2, size) + body + struct.pack("<4sIII", b"DUMP", 0, 0, 0)
    assert parse_coredump(data).device_serial == name.decode("utf-8", "replace")
