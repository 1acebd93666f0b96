"""Frames: whatever happens to the bytes around it, a whole frame is found, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.outbox.frames import HEADER_SIZE, Frame, FrameCodec, FrameKind, Record, is_sound

CODEC = FrameCodec("an outbox")
bodies = st.lists(st.binary(max_size=80), min_size=1, max_size=8)


def segment(found: list[bytes], number: int = 7) -> bytes:
    """Return a segment of items with these bodies."""
    items = [Record(FrameKind.ITEM, id_, b"head", body) for id_, body in enumerate(found, 1)]
    return CODEC.encode(number, 0, [*items, Record(FrameKind.END)])


def items(frames: list[Frame]) -> list[bytes]:
    return [frame.record.body for frame in frames if frame.record.kind == FrameKind.ITEM]


def scan(data: bytes, number: int = 7) -> tuple[list[bytes], bool]:
    """Return the bodies of the items that are found, and whether they are all."""
    frames = CODEC.scan(data).get(number, [])
    return items(frames), bool(frames) and is_sound(frames)


@given(bodies)
def test_what_was_encoded_is_found_in_order(found: list[bytes]) -> None:
    frames = CODEC.scan(segment(found) + bytes(100))[7]
    assert items(frames) == found
    assert [frame.record.number for frame in frames[:-1]] == [*range(1, len(found) + 1)]
    assert is_sound(frames)


@given(bodies, st.data())
def test_one_changed_byte_costs_its_own_frame_only_and_is_told(
    found: list[bytes], data: st.DataObject
) -> None:
    sound = segment(found)
    offsets = [frame.offset for frame in CODEC.scan(sound)[7]]
    at = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    hit = max(n for n, offset in enumerate(offsets) if offset <= at)
    wanted = [body for n, body in enumerate(found) if n != hit]
    assert scan(bytes(changed)) == (wanted, False)


@given(bodies, st.data())
def test_what_is_cut_off_is_missed_wherever_it_is_cut(
    found: list[bytes], data: st.DataObject
) -> None:
    sound = segment(found)
    whole, is_all = scan(sound[: data.draw(st.integers(0, len(sound) - 1))])
    assert whole == found[: len(whole)]
    assert not is_all


@given(bodies, st.integers(0, 200))
def test_a_frame_within_a_body_is_none_though_the_length_before_it_is_damaged(
    found: list[bytes], shift: int
) -> None:
    inner = segment(found)
    other = FrameCodec("another").encode(7, 40, [Record(FrameKind.ITEM, 1)])
    for body in (inner, bytes(shift) + inner, other):
        sound = segment([b"before", body, b"behind"])
        at = sound.index(body) - len(b"head") - 8  # its length, before the CRC
        for changed in (sound[:at] + b"\0\0\0\0" + sound[at + 4 :], sound):
            assert scan(changed)[0] in ([b"before", b"behind"], [b"before", body, b"behind"])


@given(bodies, bodies, st.booleans())
def test_what_an_earlier_segment_left_in_the_file_is_nothing_of_this_one(
    new: list[bytes], old: list[bytes], is_damaged: bool
) -> None:
    now, before = segment(new, 8), segment(old, 7)
    if is_damaged:  # its end is lost: old frames stand behind it
        now = now[:-1] + bytes([now[-1] ^ 1])
    assert scan(now + before[len(now) :], 8) == (new, not is_damaged)


def test_an_end_that_came_back_from_an_earlier_time_hides_nothing_behind_it_and_is_told() -> None:
    new, old = segment([b"first", b"second", b"third"]), segment([b"first"])
    behind = new.index(b"second") - len(b"head") - HEADER_SIZE
    again = old[behind:]
    kept, is_all = scan(new[:behind] + again + new[behind + len(again) :])
    assert (kept, is_all) == ([b"first", b"third"], False)
