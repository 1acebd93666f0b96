from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota.image import BadImage, hash_of, is_mcuboot, read_image
from tests.support.fota.signed_images import HEADER_BYTES, signed_image, signing_key


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
    with pytest.raises(BadImage, match=r"1 byte too many behind .* with --pad or --confirm"):
        read_image(cut)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_header_that_states_another_length_of_the_protected_records_is_refused(
    tmp_path: Path, more: int
) -> None:
    path = signed_image(tmp_path, protected=True)
    whole = bytearray(path.read_bytes())
    whole[10] += more  # the low byte of the length
    path.write_bytes(whole)
    with pytest.raises(BadImage, match="state different lengths"):
        read_image(path)


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
