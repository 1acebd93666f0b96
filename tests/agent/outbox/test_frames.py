"""Frames: whatever happens to the bytes around it, a whole frame is found, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.outbox.frames import HEADER_SIZE, FrameCodec, FrameKind

CODEC = FrameCodec("an outbox")
bodies = st.lists(st.binary(max_size=80), min_size=1, max_size=8)


def segment(found: list[bytes], number: int = 7) -> tuple[bytes, list[int]]:
    """Return a segment of items with these bodies, and where each frame begins."""
    data, offsets = b"", []
    for id_, body in enumerate(found, 1):
        offsets.append(len(data))
        data += CODEC.encode(FrameKind.ITEM, number, len(data), id_, b"head", body)
    return data + CODEC.encode(FrameKind.END, number, len(data), 0), offsets


@given(bodies)
def test_what_was_encoded_is_found_in_order(found: list[bytes]) -> None:
    scan = CODEC.scan(segment(found)[0] + bytes(100), 7)
    assert [frame.body for frame in scan.frames[:-1]] == found
    assert [frame.number for frame in scan.frames[:-1]] == [*range(1, len(found) + 1)]
    assert scan.damaged == []


@given(bodies, st.data())
def test_one_changed_byte_costs_its_own_frame_only_and_is_told(
    found: list[bytes], data: st.DataObject
) -> None:
    sound, offsets = segment(found)
    at = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    scan = CODEC.scan(bytes(changed), 7)
    hit = max((n for n, offset in enumerate(offsets) if offset <= at), default=0)
    end = at >= len(sound) - HEADER_SIZE
    wanted = [body for n, body in enumerate(found) if end or n != hit]
    assert [f.body for f in scan.frames if f.kind == FrameKind.ITEM] == wanted
    assert scan.damaged


@given(bodies, st.data())
def test_what_is_cut_off_is_missed_wherever_it_is_cut(
    found: list[bytes], data: st.DataObject
) -> None:
    sound, _ = segment(found)
    scan = CODEC.scan(sound[: data.draw(st.integers(0, len(sound) - 1))], 7)
    whole = [frame.body for frame in scan.frames]
    assert whole == found[: len(whole)]
    assert scan.damaged


@given(bodies, st.integers(0, 200))
def test_a_frame_within_a_body_is_none_though_the_length_before_it_is_damaged(
    found: list[bytes], shift: int
) -> None:
    inner, _ = segment(found)
    for body in (inner, bytes(shift) + inner, FrameCodec("another").encode(1, 7, 40, 1)):
        sound, _ = segment([b"before", body, b"behind"])
        at = sound.index(body) - HEADER_SIZE - 4 + 28  # its length
        for changed in (sound[:at] + b"\0\0\0\0" + sound[at + 4 :], sound):
            scan = CODEC.scan(changed, 7)
            kept = [frame.body for frame in scan.frames if frame.kind == FrameKind.ITEM]
            assert kept in ([b"before", b"behind"], [b"before", body, b"behind"])


@given(bodies, bodies)
def test_what_an_earlier_segment_left_in_the_file_is_nothing_of_this_one(
    new: list[bytes], old: list[bytes]
) -> None:
    now, _ = segment(new, 8)
    before, _ = segment(old, 7)
    for damaged in (now, now[:-1] + b"\xff"):  # its end is lost: old frames stand behind it
        scan = CODEC.scan(damaged + before[len(damaged) :], 8)
        assert [f.body for f in scan.frames if f.kind == FrameKind.ITEM] == new
