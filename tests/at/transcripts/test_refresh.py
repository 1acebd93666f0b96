"""A recording made anew keeps what a person wrote into the old one."""

from __future__ import annotations

import pytest

from at.protocol.errors import TranscriptError
from at.transcripts.refresh import refreshed
from at.transcripts.transcript import parse_transcript

OLD = r"""# transcript: 2
# device: nRF9161-LACA
# origin: by hand
# what a person says

> AT%XSYSTEMMODE={any}
< OK
! any-order
# the IMEI is another each time
> AT+CGSN=1
< +CGSN: "{imei}"
< OK
> AT+CESQ
< +CESQ: 99,99,255,255,{int:19},{int:47}
< OK
! in-order
?> AT+CMEE={int}
< OK
?< +CEREG: 2
> AT+OLD
< OK
> AT+COPS=?
! silence 3
< OK
> AT+CFUN=1
! reset
< %AFTER: 1
< OK
"""
NEW = r"""# transcript: 1
# origin: recorded
@0.1 > AT%XSYSTEMMODE=1,0,0,0
@0.2 < OK
@0.3 > AT+CESQ
@0.4 < +CESQ: 99,99,255,255,21,50
@0.5 < OK
@0.6 > AT+CGSN=1
@0.7 < +CGSN: "001009990000002"
@0.8 < OK
@0.9 > AT+NEW
@0.91 < OK
@1.0 > AT+COPS=?
@1.1 < +COPS: (1)
@1.2 < OK
@1.3 > AT+CFUN=1
@1.35 < *** Booting nRF Connect SDK ***
@1.4 < %AFTER: 2
@1.5 < OK
"""
MERGED = r"""# transcript: 2
# device: nRF9161-LACA
# origin: recorded
# what a person says

@0.100000 > AT%XSYSTEMMODE={any}
@0.200000 < OK
! any-order
# the IMEI is another each time
@0.600000 > AT+CGSN=1
@0.700000 < +CGSN: "{imei}"
@0.800000 < OK
@0.300000 > AT+CESQ
@0.400000 < +CESQ: 99,99,255,255,{int:21},{int:50}
@0.500000 < OK
! in-order
@0.900000 > AT+NEW
@0.910000 < OK
?> AT+CMEE={int}
< OK
?< +CEREG: 2
@1.000000 > AT+COPS=?
! silence 3
@1.100000 < +COPS: (1)
@1.200000 < OK
@1.300000 > AT+CFUN=1
! reset
@1.400000 < %AFTER: 2
@1.500000 < OK
"""


def test_rules_marks_comments_and_what_is_optional_stay_where_the_new_session_fits_them() -> None:
    text = refreshed(OLD, parse_transcript(NEW))
    assert text == MERGED
    assert refreshed(text, parse_transcript(NEW)) == text


def test_what_no_longer_fits_its_rule_is_what_was_recorded() -> None:
    old = "# transcript: 2\n> AT+CESQ\n< +CESQ: {int}\n! silence 2\n< OK\n"
    new = parse_transcript("> AT+CESQ\n< +CESQ: none\n< ERROR\n")
    text = refreshed(old, new)
    assert text == "# transcript: 2\n> AT+CESQ\n< +CESQ: none\n< ERROR\n! silence 2\n"


@pytest.mark.parametrize(
    ("was", "came", "merged"),
    [
        ("AT,< OK,?< +N: {int:2}", "AT,< +N: 5,< OK", "AT,?< +N: {int:5},< OK"),
        ("AT,?< +N: 2,< OK,> B,< OK", "AT,< OK,< +N: 2,> B,< OK", "AT,< OK,?< +N: 2,> B,< OK"),
        ("AT,< OK,?< +N: 2,> B,< OK", "AT,< OK,> B,< OK,< +N: 2", "AT,< OK,> B,< OK,?< +N: 2"),
        ("AT,?< +N: 1,?< +N: 2,< OK", "AT,< OK,< +N: 2", "AT,?< +N: 1,< OK,?< +N: 2"),
        ("AT,?< +N: 2,< OK", "AT,< OK,< +N: 2,< +N: 2", "AT,< OK,?< +N: 2,< +N: 2"),
        ("AT,?< +N: 2,< OK", "AT,< OK,< +M: 2", "AT,?< +N: 2,< OK,< +M: 2"),
    ],
)  # fmt: skip
def test_a_notice_that_may_be_left_out_moves_to_where_it_came_now(
    was: str, came: str, merged: str
) -> None:
    old, new, becomes = (f"> {text}\n".replace(",", "\n") for text in (was, came, merged))
    text = refreshed(f"# transcript: 2\n{old}", parse_transcript(new))
    assert text == f"# transcript: 2\n{becomes}"
    assert refreshed(text, parse_transcript(new)) == text


def test_a_transcript_without_rules_is_replaced_and_a_malformed_one_refused() -> None:
    new = parse_transcript("> AT\n< OK\n")
    assert refreshed("# a comment\n> AT+CGMR\n< OK\n", new) == "# transcript: 1\n> AT\n< OK\n"
    with pytest.raises(TranscriptError, match="line 2") as refused:
        refreshed("# transcript: 2\n> AT{imsi}\n", new)
    assert refused.value.line == 2
