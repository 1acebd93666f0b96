"""A log line that cuts a line of the modem in two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.transcripts.interruptions import is_cut, without_logs
from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import Direction

LOG = b"[00:00:01.000,000] <inf> app: up\r\n"
ANSWERS = {
    "AT+CGSN=1": b'+CGSN: "352656100367872"\r\n',
    "AT+CGSN": b"352656100367872\r\n",
    "AT+CIMI": b"262011234567890\r\n",
    "AT%XICCID": b"%XICCID: 8949020000001234567F\r\n",
    "AT%DEVICEUUID": b"%DEVICEUUID: 50363154-3930-44d9-80d9-0b2d1f3f2b1f\r\n",
}


@pytest.mark.parametrize("head", [b"", b"uart:~$ ", b"\x1b[1;32muart:~$ \x1b[m", b"\x1b[1;31m"])
def test_a_log_line_behind_a_prompt_cuts_nothing(head: bytes) -> None:
    assert not is_cut(head + LOG)
    assert without_logs(head + LOG) == (head + LOG, [])


@pytest.mark.parametrize("command", ANSWERS)
@given(data=st.data())
def test_an_answer_that_was_cut_has_the_made_up_value_of_the_whole_one(
    command: str, data: st.DataObject
) -> None:
    answer = ANSWERS[command]
    place = data.draw(st.integers(1, len(answer) - 3))
    cut = answer[:place] + LOG + answer[place:]
    recorded = []
    for stream in (answer, cut):
        recorder = Recorder(Redactor(identity=True))
        recorder.add(Direction.SENT, f"{command}\r".encode(), 0.0)
        edge = data.draw(st.integers(0, len(stream)))
        steps = recorder.add(Direction.RECEIVED, stream[:edge], 0.0)
        steps += recorder.add(Direction.RECEIVED, stream[edge:], 0.0)
        steps += recorder.add(Direction.RECEIVED, b"OK\r\n", 0.0)
        recorded.append(b"".join(step.data for step in steps))
    whole, interrupted = recorded
    assert interrupted.replace(LOG, b"") == whole
    assert interrupted == whole[:place] + LOG + whole[place:]
