"""A CA's private key on a PKCS #11 token: unlocks the token by its PIN, finds or makes the key."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import pkcs11
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from msgspec import Struct
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, TokenFlag
from pkcs11 import exceptions as refusals
from pkcs11.util.ec import encode_ec_public_key, encode_named_curve_parameters

from agent.errors import CredentialError, UsageError
from agent.files.paths import named_path
from agent.files.private_files import require_trusted_config
from agent.provisioning.ca import token_keys

if TYPE_CHECKING:
    from agent.config.pkcs11_uri import Pkcs11Uri
    from agent.config.secrets import Secret

T = TypeVar("T")
_LISTED = 5
_ID_BYTES = 8


class Pin(Struct, frozen=True):
    """A PIN. `source` says where it came from; `typed`: a person typed it and can type another."""

    value: Secret
    source: str
    typed: bool = False


AskPin = Callable[[str], Pin]
"""Returns the PIN of the token with this label; called once, after the token was found."""


def key_on_token(
    uri: Pkcs11Uri, public_key: object, ask_pin: AskPin
) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    """Return the key that `uri` names, which signs on its token.

    The caller has yet to prove that it belongs to `public_key`. Raises UsageError where the module,
    the token or the key is missing or ambiguous, CredentialError for the PIN, TokenError.
    """
    if not isinstance(public_key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise UsageError("the CA's certificate is for neither an elliptic-curve nor an RSA key")
    elliptic = isinstance(public_key, ec.EllipticCurvePublicKey)
    token, pin, session = _unlocked(uri, ask_pin)
    unlocked = _silence(token)
    kind = KeyType.EC if elliptic else KeyType.RSA
    key = token_keys.in_time(partial(_find_key, session, uri, kind), unlocked)
    mechanism = Mechanism.ECDSA if elliptic else Mechanism.SHA256_RSA_PKCS
    if mechanism not in token_keys.in_time(token.slot.get_mechanisms, unlocked):
        raise UsageError(
            f"the token {token.label} cannot sign by CKM_{mechanism.name}",
            hint="another token can, or a CA with another kind of key",
        )
    each_time = token_keys.in_time(
        partial(_attribute, key, Attribute.ALWAYS_AUTHENTICATE, False), unlocked
    )
    signer = token_keys.Signer(
        key, mechanism, token.label, pin.value if pin and each_time else None
    )
    if isinstance(public_key, ec.EllipticCurvePublicKey):
        return token_keys.TokenEcKey(public_key, signer.sign)
    return token_keys.TokenRsaKey(public_key, signer.sign)


@contextmanager
def new_key_on_token(uri: Pkcs11Uri, ask_pin: AskPin) -> Iterator[token_keys.TokenEcKey]:
    """Make a P-256 key that never leaves its token, called as `uri` says; yield it, to sign.

    It is destroyed again if the block raises. Raises UsageError where `uri` does not say what to
    call it, or a private key is called so already; else as `key_on_token`.
    """
    if uri.object is None:
        raise UsageError("the URI does not say what to call the key", hint="add object=device-ca")
    token, _, session = _unlocked(uri, ask_pin, writes=True)
    unlocked = _silence(token)

    def make() -> tuple[Any, Any, bytes]:
        curve = {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}
        public, private = session.create_domain_parameters(
            KeyType.EC, curve, local=True
        ).generate_keypair(
            store=True,
            label=uri.object,
            id=uri.id or secrets.token_bytes(_ID_BYTES),
            private_template={Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False},
        )
        return public, private, encode_ec_public_key(public)

    with ExitStack() as stack:
        stack.callback(token_keys.in_time, session.close, unlocked)
        if token_keys.in_time(partial(_keys, session, uri), unlocked):
            raise UsageError(
                f"the token {token.label} holds that key already: a CA is never overwritten",
                hint="use that one, or name another object= in the URI",
            )
        public, private, encoded = token_keys.in_time(make, f"the token {token.label} made no key")
        public_key = load_der_public_key(encoded)
        assert isinstance(public_key, ec.EllipticCurvePublicKey)
        signer = token_keys.Signer(private, Mechanism.ECDSA, token.label, None)
        try:
            yield token_keys.TokenEcKey(public_key, signer.sign)
        except BaseException:
            for half in (private, public):
                token_keys.in_time(half.destroy, unlocked)
            raise


def _unlocked(
    uri: Pkcs11Uri, ask_pin: AskPin, *, writes: bool = False
) -> tuple[pkcs11.Token, Pin | None, pkcs11.Session]:
    """Find the token and open a session with its PIN."""
    token = token_keys.in_time(
        partial(_find_token, uri), f"the module {uri.module_path} does not answer"
    )
    pin = _pin_for(token, ask_pin)
    session = token_keys.in_time(partial(_log_in, token, pin, writes=writes), _silence(token))
    return token, pin, session


def _silence(token: pkcs11.Token) -> str:
    return f"the token {token.label} does not answer"


def _find_token(uri: Pkcs11Uri) -> pkcs11.Token:
    path = named_path(uri.module_path)
    # A bare name would be looked for in the folders of the system's libraries.
    if not path.is_absolute() or not path.is_file():
        raise UsageError(
            f"there is no PKCS #11 module {path}",
            hint="install the token's software, or correct module-path (an absolute path)",
        )
    require_trusted_config(path, "module-path", path.stat())  # what is in it runs, and has the PIN
    tokens = []
    try:
        for slot in pkcs11.lib(str(path)).get_slots(token_present=True):
            with suppress(refusals.TokenNotPresent, refusals.TokenNotRecognised):
                tokens.append(slot.get_token())
    except refusals.PKCS11Error as error:
        raise UsageError(
            f"the PKCS #11 module {path} cannot be used: {token_keys.reason_of(error)}",
            hint="is it the right library, and is its own configuration in place?",
        ) from error
    usable = [token for token in tokens if token.flags & TokenFlag.TOKEN_INITIALIZED]
    found = [token for token in usable if _matches(token, uri)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{len(found)} tokens fit the URI", hint=f"add serial=: {_listed(found, _token_name)}"
        )
    raise UsageError(
        f"the token {uri.token or uri.serial or 'that the URI names'} is not there",
        hint="plug it in, or correct the URI; there is: "
        + (_listed(usable, _token_name) or "no token at all"),
    )


def _matches(token: pkcs11.Token, uri: Pkcs11Uri) -> bool:
    named = (
        (uri.token, token.label),
        (uri.manufacturer, token.manufacturer_id),
        (uri.model, token.model),
        (uri.serial, token.serial.decode("utf-8", "replace")),
        (uri.slot_id, token.slot.slot_id),
    )
    return all(asked is None or asked == actual for asked, actual in named)


def _pin_for(token: pkcs11.Token, ask_pin: AskPin) -> Pin | None:
    """Return the token's PIN; None where it takes none, as tokens of some cloud services."""
    if not token.flags & TokenFlag.LOGIN_REQUIRED:
        return None
    refuse_locked(token.label, token.flags)
    pin = ask_pin(token.label)
    refuse_last_try(token.label, token.flags, pin)
    return pin


def _log_in(token: pkcs11.Token, pin: Pin | None, *, writes: bool) -> pkcs11.Session:
    """Open a session with the PIN, which is tried once: a token locks itself after a few."""
    try:
        return token.open(rw=writes, user_pin=pin.value.reveal() if pin is not None else None)
    except token_keys.PIN_REFUSED as error:
        flags = token.flags
        with suppress(refusals.PKCS11Error):
            flags = token.slot.get_token().flags
        refuse_locked(token.label, flags)
        raise CredentialError(
            f"the token {token.label} refused the PIN {pin.source if pin else ''}; "
            f"{tries_left(flags)}",
            hint="nothing was written; correct the PIN before the next run: each run tries it once",
        ) from error
    except refusals.PKCS11Error as error:
        raise UsageError(
            f"the token {token.label} cannot be opened: {token_keys.reason_of(error)}",
            hint="see to its PIN with its maker's program or pkcs11-tool",
        ) from error


def refuse_locked(label: str, flags: TokenFlag) -> None:
    """Raise CredentialError where the token takes no PIN any more."""
    if flags & TokenFlag.USER_PIN_LOCKED:
        raise CredentialError(
            f"the PIN of the token {label} is locked",
            hint="unlock it with its SO PIN or PUK, by its maker's program or pkcs11-tool",
        )


def refuse_last_try(label: str, flags: TokenFlag, pin: Pin) -> None:
    """Raise CredentialError where a stored PIN would be the last that the token takes."""
    if flags & TokenFlag.USER_PIN_FINAL_TRY and not pin.typed:
        raise CredentialError(
            f"the token {label} takes one more try, which the PIN {pin.source} is not given",
            hint="take that PIN away and type it on a terminal; a right one resets the count",
        )


def tries_left(flags: TokenFlag) -> str:
    """Return a hint about the tries left after a wrong PIN: a token shows a flag, no number."""
    if flags & TokenFlag.USER_PIN_FINAL_TRY:
        return "one try is left before it locks itself"
    return "it does not tell how many tries are left before it locks itself"


def _find_key(session: pkcs11.Session, uri: Pkcs11Uri, kind: KeyType) -> Any:
    everything: list[Any] = list(session.get_objects({Attribute.CLASS: ObjectClass.PRIVATE_KEY}))
    keys = _keys(session, uri)
    label = session.token.label
    if not keys:
        raise UsageError(
            f"the token {label} holds no such private key",
            hint=f"it holds: {_listed(everything, _key_name) or 'none that this PIN opens'}",
        )
    if len(keys) > 1:
        raise UsageError(
            f"{len(keys)} private keys on the token {label} fit the URI",
            hint=f"name one: {_listed(keys, _key_name)}",
        )
    [key] = keys
    if key.key_type is not kind:
        raise UsageError(
            f"{_key_name(key)} is not the CA's: its certificate is for an {kind.name} key"
        )
    if not isinstance(key, pkcs11.SignMixin):
        raise UsageError(
            f"{_key_name(key)} may not sign", hint="its CKA_SIGN says no: make the CA's key anew"
        )
    return key


def _keys(session: pkcs11.Session, uri: Pkcs11Uri) -> list[Any]:
    """Return the private keys that the URI fits."""
    template: dict[Attribute, Any] = {Attribute.CLASS: ObjectClass.PRIVATE_KEY}
    if uri.object is not None:
        template[Attribute.LABEL] = uri.object
    if uri.id is not None:
        template[Attribute.ID] = uri.id
    return list(session.get_objects(template))


def _attribute(key: Any, attribute: Attribute, missing: T) -> T:
    """Return an attribute that some tokens lack, or store in a form of their own."""
    try:
        found: T = key[attribute]
    except (refusals.PKCS11Error, LookupError, ValueError):
        return missing
    return found


def _listed(things: Sequence[T], name: Callable[[T], str]) -> str:
    more = f" and {len(things) - _LISTED} more" if len(things) > _LISTED else ""
    return ", ".join(name(thing) for thing in things[:_LISTED]) + more


def _token_name(token: pkcs11.Token) -> str:
    return f"token={quote(token.label)};serial={quote(token.serial.decode('utf-8', 'replace'))}"


def _key_name(key: Any) -> str:
    label, number = _attribute(key, Attribute.LABEL, ""), _attribute(key, Attribute.ID, b"")
    return f"object={quote(label)};id={''.join(f'%{byte:02x}' for byte in number)}"
