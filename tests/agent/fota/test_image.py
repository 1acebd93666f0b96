from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signed_images import HEADER_BYTES, signed_image, signing_key

from agent.fota.image import (
    BadImage,
    hash_of,
    is_mcuboot,
    is_older,
    parse_version,
    read_image,
    same_version,
)


@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize("key", [None, "ecdsa", "ed25519"])
def test_an_image_of_mcubootss_own_signer_is_read(
    tmp_path: Path, key: str | None, protected: bool
) -> None:
    path = signed_image(tmp_path, "1.2.3+45", key=key and signing_key(key), protected=protected)
    image = read_image(path)
    assert is_mcuboot(path)
    assert image.version == "1.2.3+45"
    assert image.header_bytes == HEADER_BYTES
    assert image.body_bytes == 4096
    assert not image.encrypted
    assert hash_of(path, image.hashed_bytes, image.algorithm) == image.stated_hash


@pytest.mark.parametrize("protected", [False, True])
def test_another_reader_sees_the_same_image(tmp_path: Path, protected: bool) -> None:
    mcuboot = pytest.importorskip("smpclient.mcuboot", reason="pip install 'cellagent[mcuboot]'")
    path = signed_image(tmp_path, "3.4.5+6", key=signing_key("ecdsa"), protected=protected)
    ours, theirs = read_image(path), mcuboot.ImageInfo.load_file(str(path))
    assert ours.version == str(theirs.header.ver).replace("-build", "+")
    assert ours.body_bytes == theirs.header.img_size
    stated = theirs.get_tlv(mcuboot.IMAGE_TLV.SHA256)
    assert ours.stated_hash == bytes(stated.value)


def test_every_cut_of_an_image_is_no_image(tmp_path: Path) -> None:
    path = signed_image(tmp_path, key=signing_key("ecdsa"), protected=True)
    whole = path.read_bytes()
    cut = tmp_path / "cut.bin"
    for size in [*range(HEADER_BYTES), *range(HEADER_BYTES, len(whole), 37), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(BadImage):
            read_image(cut)
    cut.write_bytes(whole + b"\0")
    with pytest.raises(BadImage, match="1 bytes follow"):
        read_image(cut)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_are_an_image_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes, at: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "fuzz.bin"
    seed = folder / "seed.bin"
    if not seed.exists():
        seed.write_bytes(signed_image(tmp_path_factory.mktemp("s"), body=b"\1" * 64).read_bytes())
    whole = bytearray(seed.read_bytes())
    start = (HEADER_BYTES - 100 + at) if at % 2 else at
    whole[start : start + len(tail)] = tail
    path.write_bytes(whole)
    try:
        image = read_image(path)
    except BadImage:
        return
    assert image.hashed_bytes <= len(whole)


def test_a_flip_in_what_the_hash_covers_is_seen(tmp_path: Path) -> None:
    path = signed_image(tmp_path, protected=True)
    image = read_image(path)
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(300):
        at, bit = draw.randrange(image.hashed_bytes), draw.randrange(8)
        broken = bytearray(whole)
        broken[at] ^= 1 << bit
        path.write_bytes(broken)
        try:
            found = read_image(path)
        except BadImage:
            continue
        assert hash_of(path, found.hashed_bytes, found.algorithm) != found.stated_hash, at


NUMBERS = st.integers(0, 65535)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("v2.0.1", "2.0.1", True),
        ("2.0.1", "2.0.1+0", True),
        ("2.0.1.4", "2.0.1+4", True),
        ("2.0.1.4", "2.0.1+0", False),
        ("2.0.1-rc1", "2.0.1+0", True),
        ("2.0.1-rc1", "2.0.1-rc2", False),
        ("2.0.1", "2.0.10", False),
        ("2.0", "2.0.0", True),
        ("nightly", "nightly", True),
        ("nightly", "2.0.1", False),
        ("mfw_nrf9160_1.3.6", "mfw_nrf9160_1.3.6", True),
        ("mfw_nrf9160_1.3.6", "1.3.6", True),
        ("mfw_nrf9160_1.3.6", "mfw_nrf9160_1.3.5", False),
        ("v1.0.0-3-gabcdef0", "v1.0.0-3-gabcdef0", True),
    ],
)
def test_versions_are_the_same_by_their_numbers(one: str, other: str, same: bool) -> None:
    assert same_version(one, other) is same
    assert same_version(other, one) is same


def test_versions_compare_as_numbers_not_as_text() -> None:
    assert is_older("1.9.0", "1.10.0") is True
    assert is_older("1.10.0", "1.9.0") is False
    assert is_older("1.0.0+1", "1.0.0+2") is True
    assert is_older("nightly", "1.0.0") is None


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_order_is_that_of_the_numbers(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    left, right = (".".join(map(str, numbers)) for numbers in (one, other))
    assert is_older(left, right) is (one < other)
    assert same_version(left, right) is (one == other)


@given(st.text(max_size=60))
def test_any_text_is_read_or_is_no_version(text: str) -> None:
    found = parse_version(text)
    assert found is None or len(found.core) == 3
    assert same_version(text, text)
