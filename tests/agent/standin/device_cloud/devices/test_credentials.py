"""What the document says of a CSV and what the server takes are the same (clauses D1.2, D9.3)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.standin.core.schema import check
from agent.standin.device_cloud.devices.claiming import CLAIMS
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES, CsvTable
from agent.standin.device_cloud.refusals import DeviceCloudRefused

TABLES = pytest.mark.parametrize("table", [KEYS, NEW_DEVICES, CLAIMS], ids=lambda one: one.columns)


def taken(table: CsvTable, text: str) -> bool:
    try:
        table.rows(text)
    except DeviceCloudRefused as refused:
        return refused.status != 422
    return True


@TABLES
@given(text=st.text(alphabet='a1,"\r\n\x00[]{} \ufe00', max_size=60))
@example(text='a,"x""y"\r\nb,c\r')
@example(text="[null, null]")
@example(text="a,b\n\n")
def test_any_text_is_judged_as_the_document_says(table: CsvTable, text: str) -> None:
    assert taken(table, text) is not bool(check(text, table.schema))


@TABLES
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
