from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from agent.call import Response
from agent.cloud import DeviceCloud
from agent.cloud.account import FetchAccount, FetchServiceToken
from agent.errors import BadAnswer, Forbidden, NotFound
from agent.http.client import _warn_once
from agent.redact import redact
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("D9.4", "D10.9")
async def test_the_deprecated_account_paths_warn_with_their_date(
    cloud: DeviceCloud, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_once.cache_clear()
    issued = await cloud.service_token()
    assert "July 1, 2026" in caplog.text
    assert "CELLAGENT_ORG_TOKEN" in caplog.text
    assert issued.token.reveal() not in repr(issued)
    made = await cloud.make_service_key_and_token()
    assert made.token.reveal() != issued.token.reveal()
    assert "PRIVATE" not in repr(made)
    assert redact(f"?key={quote(made.private_key, safe='')}") == "?key=[secret]"
    await standin.control({"plan": "DEVELOPER"})
    with pytest.raises(Forbidden) as refused:
        await cloud.make_service_key_and_token()
    assert "Pro or Enterprise plan and the team owner role" in refused.value.hint
    standin.cloud.settings.account_paths = False
    standin.clock.set(datetime(2026, 8, 1, tzinfo=UTC).timestamp())
    with pytest.raises(NotFound) as gone:
        await cloud.service_token()
    assert "July 1, 2026" in gone.value.hint


@pytest.mark.contract("D10.1")
@pytest.mark.parametrize("team", ["{}", "null", "7", '{"tenantId":null}', '{"tenantId":5}'])
def test_an_answer_that_names_no_team_checks_no_key(team: str) -> None:
    with pytest.raises(BadAnswer, match="names no team"):
        FetchAccount().parse(Response(200, {}, f'{{"team":{team},"role":"owner"}}'.encode()))


@pytest.mark.contract("D10.1")
def test_of_an_account_only_the_team_has_to_be_told() -> None:
    body = b'{"team":{"tenantId":"t","name":null},"role":null,"plan":{"name":["x"]}}'
    account = FetchAccount().parse(Response(200, {}, body))
    assert (account.team_id, account.team_name, account.role, account.plan) == ("t", "", "", "")


@pytest.mark.contract("D9.4")
@pytest.mark.parametrize(
    ("status", "named"),
    [(404, "July 1, 2026"), (410, "July 1, 2026"), (403, "owner role"), (400, "")],
)
def test_each_refusal_of_a_deprecated_account_path_is_explained(status: int, named: str) -> None:
    advice = FetchServiceToken().advice(status, None)
    assert named in advice
    assert bool(advice) is bool(named)


async def test_the_account_names_team_and_role(cloud: DeviceCloud, standin: StandIn) -> None:
    account = await cloud.account()
    assert account.team_id == standin.team_id
    assert account.role
    assert account.plan
