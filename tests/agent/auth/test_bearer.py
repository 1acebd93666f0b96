from __future__ import annotations

import pytest

from agent.auth.bearer import ApiKey, EvaluationToken, OrganizationToken, ServiceToken
from agent.config.secrets import Secret


@pytest.mark.contract("D10.1", "D10.6", "D10.7", "D10.10", "O4.2")
def test_each_issued_token_says_what_a_refusal_may_mean() -> None:
    secret = Secret("token-of-the-test")
    assert "account page" in ApiKey(secret).advice(401)
    assert "role" in ApiKey(secret).advice(403)
    assert "shown once" in OrganizationToken(secret).advice(401)
    assert "deprecated" in EvaluationToken(secret).warning
    assert "service key" in EvaluationToken(secret).advice(401)
    assert "organization auth token" in ServiceToken(secret).warning
    for deprecated in (EvaluationToken(secret), ServiceToken(secret)):
        assert deprecated.advice(403) == deprecated.warning
    for kind in (ApiKey, OrganizationToken, EvaluationToken, ServiceToken):
        assert "token-of-the-test" not in repr(kind(secret))
