from __future__ import annotations

import asyncio
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from agent.auth.key_files import DeviceKey, ServiceKeys, signing_key
from agent.call import Call, Scheme
from agent.errors import ConfigError, CredentialError, CredentialMissing
from tests.support.cloud.credential_calls import NOW, UUID, Push, claims_of, pem


@dataclass(frozen=True, slots=True)
class Locate(Call[None]):
    device: str = ""
    schemes = (Scheme.SERVICE_JWT,)
    service = "location"

    def serves(self) -> str:
        return self.device


@pytest.mark.contract("D10.3")
async def test_a_host_made_device_token_always_names_the_device(p256: Path) -> None:
    credential = DeviceKey(p256, UUID, now=lambda: NOW)
    headers = await credential.headers(Push())
    token = headers["authorization"].removeprefix("Bearer ")
    public = signing_key(p256, of_another_kind="").public_key()
    claims = jwt.decode(
        token, public, ["ES256"], options={"verify_exp": False, "verify_iat": False}
    )
    assert claims == {"sub": UUID, "iat": int(NOW), "exp": int(NOW) + 600}
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "typ": "JWT"}
    with pytest.raises(ConfigError, match=r"kit\.device_id"):
        DeviceKey(p256, "")
    makes, registers = DeviceKey(p256, "kit 1").refused[401].split("`")[1::2]
    made = await asyncio.to_thread(subprocess.run, shlex.split(makes), check=False)
    *words, file = shlex.split(registers)
    assert (made.returncode, words[-2:]) == (0, ["register-key", "kit 1"])
    assert load_pem_public_key(await asyncio.to_thread(Path(file).read_bytes)) == public


@pytest.mark.contract("D10.4", "C2")
async def test_each_service_has_its_own_key_and_the_team_as_audience(tmp_path: Path) -> None:
    files = {
        name: str(pem(tmp_path / name, ec.generate_private_key(ec.SECP256R1())))
        for name in ("location", "fota")
    }
    credential = ServiceKeys(files, "team-1", now=lambda: NOW)
    headers = await credential.headers(Locate("nrf-1"))
    token = headers["authorization"].removeprefix("Bearer ")
    public = signing_key(Path(files["location"]), of_another_kind="").public_key()
    claims = jwt.decode(
        token,
        public,
        ["ES256"],
        audience="team-1",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert claims["sub"] == "nrf-1"
    assert "sub" not in claims_of(await credential.headers(Locate()))
    both = ServiceKeys({"all": files["fota"], "location": files["location"]}, "team-1")
    own = (await both.headers(Locate()))["authorization"].removeprefix("Bearer ")
    jwt.decode(own, public, ["ES256"], audience="team-1")
    with pytest.raises(
        CredentialMissing, match="no service key for location; there are keys for: fota"
    ):
        await ServiceKeys({"fota": files["fota"]}, "team-1").headers(Locate())
    with pytest.raises(ConfigError, match="team_id"):
        ServiceKeys(files, "")


@pytest.mark.contract("D10.9")
def test_a_refused_service_key_names_plan_and_role() -> None:
    advice = ServiceKeys({}, "team-1").advice(403)
    assert "Pro or Enterprise" in advice
    assert "team owner" in advice


async def test_tokens_for_many_devices_are_kept_within_a_bound(p256: Path) -> None:
    credential = ServiceKeys({"all": str(p256)}, "team-1")
    for number in range(300):
        await credential.headers(Locate(f"nrf-{number}"))
    assert len(credential._tokens) == 256


@pytest.mark.contract("D10.2", "D10.4")
async def test_keys_of_other_kinds_are_refused_with_the_way_out_of_each(tmp_path: Path) -> None:
    of_rsa = pem(tmp_path / "rsa", rsa.generate_private_key(65537, 2048))
    of_p384 = pem(tmp_path / "p384", ec.generate_private_key(ec.SECP384R1()))
    for path, says in ((of_rsa, "RSA key"), (of_p384, "no P-256 key")):
        with pytest.raises(CredentialError, match=says) as of_a_device:
            await DeviceKey(path, UUID).make()
        assert "provision it again" in of_a_device.value.hint
        with pytest.raises(CredentialError, match=says) as of_a_service:
            await ServiceKeys({"all": str(path)}, "team-1").headers(Locate(""))
        # There is no device to be provisioned again.
        assert "which the service made" in of_a_service.value.hint
        assert "provision" not in of_a_service.value.hint
    junk = tmp_path / "junk"
    junk.write_text("no key")
    junk.chmod(0o600)
    with pytest.raises(CredentialError, match="no private key in PEM form"):
        await DeviceKey(junk, UUID).make()
    junk.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        await DeviceKey(junk, UUID).make()


async def test_a_key_that_takes_the_place_of_another_in_its_file_signs_the_next_token(
    tmp_path: Path,
) -> None:
    path = tmp_path / "key"
    device, service = DeviceKey(path, UUID), ServiceKeys({"all": str(path)}, "team-1")
    for _ in range(2):
        key = ec.generate_private_key(ec.SECP256R1())
        pem(path, key)
        for credential in (device, service):
            credential.forget()  # after a 401
            headers = await credential.headers(Locate())
            token = headers["authorization"].removeprefix("Bearer ")
            jwt.decode(token, key.public_key(), ["ES256"], options={"verify_aud": False})


async def test_a_key_may_be_named_from_the_home_of_who_runs_it(
    p256: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(p256.parent))
    monkeypatch.setenv("USERPROFILE", str(p256.parent))
    named = f"~/{p256.name}"
    for credential in (DeviceKey(named, UUID), ServiceKeys({"all": named}, "team-1")):
        assert (await credential.headers(Locate()))["authorization"]
