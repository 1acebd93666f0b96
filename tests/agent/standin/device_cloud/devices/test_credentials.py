"""CSV and keys at the stand-in: what the document says is what is taken (D1.2, D9.3)."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.standin.core.schema import check
from agent.standin.device_cloud.devices.claiming import CLAIMS
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES, CsvTable
from agent.standin.device_cloud.refusals import DeviceCloudRefused
from agent.standin.state import API_KEYS
from tests.support.cloud.device_tokens import DEVICE, fetch, token, upload
from tests.support.cloud.standin import StandIn
from tests.support.keys.key_files import pem

TABLES = pytest.mark.parametrize("table", [KEYS, NEW_DEVICES, CLAIMS], ids=lambda one: one.columns)


def taken(table: CsvTable, text: str) -> bool:
    try:
        table.rows(text)
    except DeviceCloudRefused as refused:
        return refused.status != 422
    return True


@pytest.mark.contract("D9.3")
@TABLES
@given(text=st.text(alphabet='a1,"\r\n\x00[]{} \ufe00', max_size=60))
@example(text='a,"x""y"\r\nb,c\r')
@example(text="[null, null]")
@example(text="a,b\n\n")
def test_any_text_is_judged_as_the_document_says(table: CsvTable, text: str) -> None:
    assert taken(table, text) is not bool(check(text, table.schema))


@TABLES
@settings(max_examples=25)  # each is drawn from a large pattern
@given(data=st.data())
def test_a_text_that_the_document_describes_is_taken(table: CsvTable, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(table.schema["pattern"].removeprefix(r"^\ufeff?")[:-1]))
    if not check(text, table.schema):
        assert taken(table, text)


@TABLES
def test_a_column_too_many_is_named_with_its_row(table: CsvTable) -> None:
    good = ",".join(["x" * 40] * table.most)
    with pytest.raises(DeviceCloudRefused, match=r"\[1\]: the columns are"):
        table.rows(f"{good}\n{good},\n")


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ("", 422),
        ('a,"x\n', 422),
        ("a,x\n\nb,y\n", 422),
        ("a,x\n" * 1001, 422),
        ("a,x\n" * 1000, 202),
    ],
    ids=["empty", "open quote", "blank line", "1001 rows", "1000 rows"],
)
async def test_a_csv_is_checked_before_it_is_accepted(
    standin: StandIn, rows: str, status: int
) -> None:
    answer = await standin.client.post(
        "/v1/devices/public-keys",
        headers=standin.bearer("api_key") | {"Content-Type": "application/octet-stream"},
        content=rows,
    )
    assert answer.status_code == status


@pytest.mark.contract("D10.1", "D9.3")
@pytest.mark.parametrize("registered", [False, True], ids=["without a key", "with a key"])
async def test_no_other_team_registers_a_key_for_our_device(
    standin: StandIn, registered: bool
) -> None:
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    row = f'{DEVICE},"{pem(ours)}"\n'
    if registered:
        await upload(standin, "public-keys", row)
    rows = standin.cloud.table(API_KEYS).values()
    key = next(one.key for one in rows if one.team != standin.team_id)
    accepted = await standin.client.post(
        "/v1/devices/public-keys",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "text/csv"},
        content=f'{DEVICE},"{pem(theirs)}"\n',
    )
    assert accepted.status_code == 202
    standin.clock.advance(1)
    assert await fetch(standin, token(theirs, {"sub": DEVICE})) == 401
    assert (await upload(standin, "public-keys", row))["status"] == "SUCCEEDED"
    assert await fetch(standin, token(ours, {"sub": DEVICE})) == 200
