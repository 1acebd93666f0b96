"""PKCS #11 URIs: what RFC 7512 writes is read, a PIN in one is refused and never shown."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.parse import profile_from
from agent.config.pkcs11_uri import Pkcs11Uri, is_pkcs11, parse_pkcs11
from agent.config.write import set_value
from agent.errors import ConfigError
from agent.redact import redact

MODULE = "/usr/lib/softhsm/libsofthsm2.so"
BY = f"?module-path={MODULE}"
SOFT = "pkcs11:token=The%20Software%20PKCS%2311%20Softtoken"


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        (f"pkcs11:?module-path={MODULE}", Pkcs11Uri(MODULE)),
        (
            f"{SOFT};object=ca;id=%69%95;type=private{BY}&pin-source=file:/etc/token_pin",
            Pkcs11Uri(
                MODULE,
                token="The Software PKCS#11 Softtoken",
                object="ca",
                id=b"\x69\x95",
                pin_file="/etc/token_pin",
            ),
        ),
        (
            # As p11tool and pkcs11-tool list a key.
            f"PKCS11:model=SoftHSM%20v2;manufacturer=SoftHSM%20project;serial=3c1f;slot-id=7{BY}",
            Pkcs11Uri(
                MODULE, model="SoftHSM v2", manufacturer="SoftHSM project", serial="3c1f", slot_id=7
            ),
        ),
    ],
)
def test_a_uri_is_read_as_the_rfc_writes_it(uri: str, parts: Pkcs11Uri) -> None:
    assert is_pkcs11(uri)
    assert parse_pkcs11(uri, "test") == parts


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("file:/run/pin", "/run/pin"),
        ("file:///run/pin", "/run/pin"),
        ("file://localhost/run/pin", "/run/pin"),
        ("/run/pin", "/run/pin"),
        ("~/pin", "~/pin"),
        ("file:C:/pin", "C:/pin"),
    ],
)
def test_a_pin_source_is_a_file_of_this_host(source: str, file: str) -> None:
    uri = f"pkcs11:?module-path={MODULE}&pin-source={source}"
    assert parse_pkcs11(uri, "test").pin_file == file


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("pkcs11:token=x", "names no module; add [?]module-path="),
        ("pkcs11:?module-path=", "names no module"),
        (
            f"pkcs11:tokn=x?module-path={MODULE}",
            "'tokn' cannot be used here; a key is named by token, .*[?] by module",
        ),
        (f"pkcs11:module-path=x?module-path={MODULE}", "'module-path' cannot be used"),
        (f"pkcs11:?module-path={MODULE}&module-name=opensc", "'module-name' cannot be used"),
        (f"pkcs11:type=cert?module-path={MODULE}", "only type=private"),
        (f"pkcs11:token=a;token=b?module-path={MODULE}", "token stands there twice"),
        (f"pkcs11:secret-1234?module-path={MODULE}", "not NAME=VALUE"),
        (f"pkcs11:=secret-1234?module-path={MODULE}", "not NAME=VALUE"),
        (f"pkcs11:token=50%?module-path={MODULE}", "a % that is no %XX; write % as %25"),
        (f"pkcs11:token=%ff?module-path={MODULE}", "token is not UTF-8"),
        (f"pkcs11:token=\udcff?module-path={MODULE}", "token is not UTF-8"),
        ("pkcs11:?module-path=/usr%00/secret-1234", "module-path holds a NUL"),
        (
            f"pkcs11:pin-value=secret-1234?module-path={MODULE}",
            "pin-value puts the PIN .*; change the PIN",
        ),
        (f"pkcs11:slot-id=first?module-path={MODULE}", "slot-id is no number"),
        (
            f"pkcs11:?module-path={MODULE}&pin-source=%7C/bin/secret-1234",
            "names a program.*; set CELLAGENT_D",
        ),
        (
            f"pkcs11:?module-path={MODULE}&pin-source=secret-1234",
            "neither file:/PATH.*; set CELLAGENT_D",
        ),
        (f"pkcs11:?module-path={MODULE}&pin-source=file://host/secret-1234", "neither file:/PATH"),
        (f"pkcs11:?module-path={MODULE}&pin-value=secret-1234", "pin-value puts the PIN where"),
    ],
)
def test_what_cannot_be_used_is_named_and_its_value_is_not_shown(uri: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_pkcs11(uri, "provisioning.device_ca_key_file")
    said = f"{refused.value}; {refused.value.hint}"
    assert re.search(says, said)
    assert said.startswith("provisioning.device_ca_key_file: ")
    assert "1234" not in said


def test_a_pin_does_not_come_into_the_profile_nor_out_of_it() -> None:
    uri = f"pkcs11:token=x?module-path={MODULE}&pin-value=secret-1234"
    for attempt in (
        lambda: set_value("provisioning.device_ca_key_file", uri, profile="bench"),
        lambda: profile_from({"provisioning": {"device_ca_key_file": uri}}, "bench"),
    ):
        with pytest.raises(ConfigError, match="pin-value") as refused:
            attempt()
        assert "1234" not in str(refused.value) + refused.value.hint
    # Named in the wrong place, it is still not shown.
    assert "1234" not in redact(f"cannot read {uri} (No such file)")


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=64)


@given(
    token=TEXTS,
    label=TEXTS,
    number=st.binary(max_size=20),
    pin_file=TEXTS.filter(lambda name: not name.startswith("/")),
)
def test_whatever_the_labels_are_they_arrive(
    token: str, label: str, number: bytes, pin_file: str
) -> None:
    named = f"token={quote(token)};object={quote(label)};id={quote_from_bytes(number)}"
    uri = f"pkcs11:{named}?pin-source=file:/{quote(pin_file)}&module-path={MODULE}"
    assert parse_pkcs11(uri, "test") == Pkcs11Uri(
        MODULE, token=token, object=label, id=number, pin_file=f"/{pin_file}"
    )


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(rest: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_pkcs11(f"pkcs11:{rest}", "test")
