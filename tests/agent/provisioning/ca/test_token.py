"""The device CA's key on a real token (SoftHSM): certificates as from a file, each error named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pkcs11
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Attribute, KeyType, TokenFlag
from pkcs11.util.ec import encode_ec_public_key, encode_named_curve_parameters

from agent.config.pkcs11_uri import Pkcs11Uri
from agent.config.secrets import Secret
from agent.errors import AgentError, ConfigError, CredentialError, UsageError
from agent.provisioning.ca import token as on_token
from agent.provisioning.ca.certificates import pem_of
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ca.token import (
    Pin,
    key_on_token,
    refuse_last_try,
    refuse_locked,
    tries_left,
)
from tests.support.keys.operator_ca import make_ca, openssl_verifies
from tests.support.keys.soft_token import (
    BOARD,
    KEYS,
    LIFE,
    NOW,
    PIN,
    WRONG_PIN,
    SoftToken,
    ca_on,
    right_pin,
    uri_of,
)


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize("kind", KEYS)
def test_openssl_accepts_what_a_token_signed_and_it_is_as_from_a_file(
    token: SoftToken, tmp_path: Path, kind: str
) -> None:
    on_token, in_file = ca_on(token, tmp_path, KEYS[kind]())
    leaf, twin = (ca.sign(BOARD, "nrf-350457791234567", NOW, LIFE) for ca in (on_token, in_file))
    openssl_verifies(tmp_path / "ca.pem", pem_of(leaf))
    assert leaf.signature_algorithm_oid == twin.signature_algorithm_oid
    assert leaf.issuer == on_token.certificate.subject
    # But for its random number, the token's certificate says what the file's says.
    assert [(one.oid, one.critical, one.value) for one in leaf.extensions] == [
        (one.oid, one.critical, one.value) for one in twin.extensions
    ]
    size = abs(len(leaf.tbs_certificate_bytes) - len(twin.tbs_certificate_bytes))
    assert size <= 1  # of the number's leading bit


def generated(token: SoftToken, template: dict[Attribute, object]) -> ec.EllipticCurvePublicKey:
    """Have the token make a P-256 key, labelled ca, that nobody else ever has."""
    opened = pkcs11.lib(token.module).get_token(token_label=token.label)
    with opened.open(rw=True, user_pin=PIN) as session:
        curve = {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}
        parameters = session.create_domain_parameters(KeyType.EC, curve, local=True)
        public, private = parameters.generate_keypair(
            store=True, label="ca", id=b"\x07", private_template=template
        )
        assert private[Attribute.NEVER_EXTRACTABLE]
        made = serialization.load_der_public_key(encode_ec_public_key(public))
    assert isinstance(made, ec.EllipticCurvePublicKey)
    return made


def test_a_key_that_was_made_on_the_token_and_wants_its_pin_each_time_signs(
    token: SoftToken, tmp_path: Path
) -> None:
    made = generated(token, {Attribute.ALWAYS_AUTHENTICATE: True})
    # The certificate of this key, from a root whose key is in a file.
    (tmp_path / "root").mkdir()
    _, root_key = make_ca(tmp_path / "root")
    root = serialization.load_pem_private_key(root_key.read_bytes(), None)
    assert isinstance(root, ec.EllipticCurvePrivateKey)
    template = x509.load_pem_x509_certificate((tmp_path / "root" / "ca.pem").read_bytes())
    builder = (
        x509.CertificateBuilder(extensions=list(template.extensions))
        .subject_name(template.subject).issuer_name(template.subject).public_key(made)
        .serial_number(2).not_valid_before(template.not_valid_before_utc)
        .not_valid_after(template.not_valid_after_utc)
    )  # fmt: skip
    file = tmp_path / "ca.pem"
    file.write_text(pem_of(builder.sign(root, hashes.SHA256())))
    asked: list[str] = []

    def pin(label: str) -> Pin:
        asked.append(label)
        return right_pin(label)

    ca = DeviceCa.on_token(file, uri_of(token, token=token.label, id="\x07"), pin)
    for number in range(3):
        leaf = ca.sign(BOARD, f"board-{number}", NOW, LIFE)
        leaf.verify_directly_issued_by(ca.certificate)
    assert asked == ["bench"]


def test_sixteen_boards_at_once_are_signed_one_at_a_time(token: SoftToken, tmp_path: Path) -> None:
    ca, _ = ca_on(token, tmp_path)
    with ThreadPoolExecutor(16) as boards:
        leaves = list(boards.map(lambda n: ca.sign(BOARD, f"board-{n}", NOW, LIFE), range(320)))
    for leaf in leaves:
        leaf.verify_directly_issued_by(ca.certificate)
    assert len({leaf.serial_number for leaf in leaves}) == 320


def test_a_wrong_pin_is_refused_and_what_is_left_is_told(token: SoftToken, tmp_path: Path) -> None:
    """That it is tried once: tests/agent/cli/test_provision_token.py."""
    files = make_ca(tmp_path)
    token.import_key(files[1])
    with pytest.raises(CredentialError, match="refused the PIN from the test") as refused:
        DeviceCa.on_token(
            files[0], uri_of(token), lambda _: Pin(Secret(WRONG_PIN), "from the test")
        )
    assert refused.value.exit_code == 5
    assert "tries are left" in str(refused.value)
    assert WRONG_PIN not in str(refused.value) + refused.value.hint


@pytest.mark.parametrize(
    ("attributes", "says", "hint"),
    [
        ({"token": "elsewhere"}, "the token elsewhere is not there", "token=bench;serial="),
        ({"serial": "0"}, "the token 0 is not there", "plug it in"),
        ({"token": "bench", "object": "none"}, "holds no such private key", "object=ca;id=%01"),
        ({"token": "bench", "id": "\x09"}, "holds no such private key", "object=ca;id=%01"),
        ({"token": "bench"}, "2 private keys", "object=other;id=%02"),
        ({"token": "bench", "object": "other"}, "is not that of the CA in", "pkcs11-tool -O"),
        ({"token": "bench", "object": "rsa"}, "its certificate is for an EC key", ""),
    ],
    ids=str,
)
def test_a_key_that_cannot_be_told_or_is_another_is_named(
    token: SoftToken, tmp_path: Path, attributes: dict[str, str], says: str, hint: str
) -> None:
    for name in ("ca", "other", "rsa"):
        (tmp_path / name).mkdir()
    files = make_ca(tmp_path / "ca")
    token.import_key(files[1])
    token.import_key(make_ca(tmp_path / "other")[1], "other", "02")
    if attributes.get("object") == "rsa":
        token.import_key(make_ca(tmp_path / "rsa", key=KEYS["RSA"]())[1], "rsa", "03")
    with pytest.raises(UsageError, match=says) as refused:
        DeviceCa.on_token(files[0], uri_of(token, **attributes), right_pin)
    assert hint in refused.value.hint


def test_tokens_that_fit_alike_are_listed(token: SoftToken, tmp_path: Path) -> None:
    files = make_ca(tmp_path)
    token.initialize(token.label)
    with pytest.raises(UsageError, match="2 tokens fit") as refused:
        DeviceCa.on_token(files[0], uri_of(token), right_pin)
    assert refused.value.hint.count("token=bench;serial=") == 2


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("/nowhere/libtoken.so", "there is no PKCS #11 module /nowhere/libtoken.so"),
        ("libsofthsm2.so", "there is no PKCS #11 module libsofthsm2.so"),
        ("/usr", "there is no PKCS #11 module /usr"),
        (__file__, "cannot be used"),
    ],
)
def test_a_module_that_is_none_is_named(tmp_path: Path, module: str, says: str) -> None:
    file, _ = make_ca(tmp_path)
    with pytest.raises(UsageError, match=says) as refused:
        DeviceCa.on_token(file, Pkcs11Uri(module), right_pin)
    assert refused.value.hint


def test_a_module_that_others_may_change_is_not_loaded(tmp_path: Path) -> None:
    file, _ = make_ca(tmp_path)
    (module := tmp_path / "libtoken.so").write_bytes(b"")
    module.chmod(0o666)
    with pytest.raises(ConfigError, match=r"module-path: other users .* may change .*libtoken\.so"):
        DeviceCa.on_token(file, Pkcs11Uri(str(module)), right_pin)


def test_a_module_that_lacks_its_own_configuration_is_named(
    token: SoftToken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = make_ca(tmp_path)
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "none.conf"))
    with pytest.raises(UsageError, match=r"cannot be used|is not there"):
        DeviceCa.on_token(file, uri_of(token), right_pin)


def test_a_token_that_cannot_sign_so_is_named(token: SoftToken, tmp_path: Path) -> None:
    files = make_ca(tmp_path)
    token.import_key(files[1])
    token.configure("slots.mechanisms = CKM_RSA_PKCS,CKM_SHA256")
    with pytest.raises(UsageError, match="the token bench cannot sign by CKM_ECDSA"):
        DeviceCa.on_token(files[0], uri_of(token), right_pin)


def test_a_key_that_may_not_sign_is_named(token: SoftToken, tmp_path: Path) -> None:
    file, _ = make_ca(tmp_path)
    generated(token, {Attribute.SIGN: False})
    with pytest.raises(UsageError, match="object=ca;id=%07 may not sign") as refused:
        DeviceCa.on_token(file, uri_of(token), right_pin)
    assert "CKA_SIGN" in refused.value.hint


def test_a_token_that_is_pulled_while_its_pin_is_asked_for_is_told(
    token: SoftToken, tmp_path: Path
) -> None:
    files = make_ca(tmp_path)
    token.import_key(files[1])

    def pin_and_pull(label: str) -> Pin:
        token.pull()
        return right_pin(label)

    with pytest.raises(AgentError, match="the token bench") as failed:
        DeviceCa.on_token(files[0], uri_of(token), pin_and_pull)
    assert failed.value.hint


def test_a_token_that_takes_no_pin_is_given_none() -> None:
    """As those of some cloud services: by a stand-in, since SoftHSM always takes one."""
    open_to_all = SimpleNamespace(label="cloud", flags=TokenFlag.TOKEN_INITIALIZED)
    assert on_token._pin_for(open_to_all, lambda _: pytest.fail("asked for a PIN")) is None


FINAL = TokenFlag.USER_PIN_COUNT_LOW | TokenFlag.USER_PIN_FINAL_TRY


def test_the_last_try_is_for_a_person_alone() -> None:
    stored, typed = Pin(Secret(PIN), "from PIN_FILE"), Pin(Secret(PIN), "", typed=True)
    with pytest.raises(CredentialError, match="one more try, which the PIN from PIN_FILE"):
        refuse_last_try("bench", FINAL, stored)
    refuse_last_try("bench", FINAL, typed)
    refuse_last_try("bench", TokenFlag.USER_PIN_COUNT_LOW, stored)
    with pytest.raises(CredentialError, match="is locked") as locked:
        refuse_locked("bench", TokenFlag.USER_PIN_LOCKED)
    assert "SO PIN" in locked.value.hint


@pytest.mark.parametrize(
    ("flags", "says"),
    [(TokenFlag.USER_PIN_COUNT_LOW, "does not tell how many"), (FINAL, "one try is left")],
)
def test_what_a_token_tells_of_its_tries_is_said(flags: TokenFlag, says: str) -> None:
    assert says in tries_left(flags)


def test_a_certificate_of_another_kind_needs_no_token(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="neither an elliptic-curve nor an RSA"):
        key_on_token(Pkcs11Uri("/nowhere"), object(), right_pin)
