from __future__ import annotations

from dataclasses import dataclass

import pytest
from credential_calls import Modem, modem_jwt

from agent.auth.bearer import ApiKey, OrganizationToken
from agent.auth.credential import HOSTS, Keyring
from agent.call import Call, Host, Scheme
from agent.config.secrets import Secret
from agent.errors import CredentialMissing


async def test_the_preferred_kind_is_used_where_it_is_taken() -> None:
    @dataclass(frozen=True, slots=True)
    class Either(Call[None]):
        schemes = (Scheme.DEVICE_JWT, Scheme.API_KEY)

    key, jwt_ = ApiKey(Secret("api-key-of-the-test")), modem_jwt(Modem())
    assert Keyring([key, jwt_]).choose(Either()) is jwt_
    assert Keyring([key, jwt_], prefer=Scheme.API_KEY).choose(Either()) is key
    assert Keyring([key, jwt_]).choose(Either(), Scheme.API_KEY) is key
    assert Keyring([jwt_], prefer=Scheme.API_KEY).choose(Either()) is jwt_
    with pytest.raises(CredentialMissing):
        Keyring([jwt_]).choose(Either(), Scheme.API_KEY)


@pytest.mark.contract("O4.3", "D10.7")
def test_no_kind_goes_to_a_host_that_is_not_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Wrong(Call[None]):
        host = Host.CHUNKS
        schemes = (Scheme.API_KEY, Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)

    keyring = Keyring([ApiKey(Secret("api-key-of-the-test")), OrganizationToken(Secret("oat_xyz"))])
    with pytest.raises(CredentialMissing):
        keyring.choose(Wrong())
    assert Host.CHUNKS in HOSTS[Scheme.PROJECT_KEY]
