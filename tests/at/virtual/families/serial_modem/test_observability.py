"""Observations of Serial Modem 2.0: settings, uploads, forwarded chunks, the check for updates."""

from __future__ import annotations

import pytest

from at.virtual.modem import VirtualModem
from tests.support.modem.virtual_modems import ask, switched_on

SM2 = "serial-modem-2.0.0"
CHUNK = '"CAKnAgIDAQpqdGVzdHNlcmlhbA=="'
KEY = '"00112233445566778899aabbccddeeff"'


def in_the_cloud(**options: object) -> VirtualModem:
    start = ("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1")
    return switched_on(*start, **{"firmware": SM2, **options})


def test_settings_outlive_a_restart_and_what_is_left_out_stays() -> None:
    kit = switched_on(firmware=SM2)
    assert ask(kit, "AT#XNRFCLOUDOBSAUTO?") == ['#XNRFCLOUDOBSAUTO: 0,3600,""', "OK"]
    for given in (f"1,600,{KEY}", "0"):
        assert ask(kit, f"AT#XNRFCLOUDOBSAUTO={given}") == ["OK"]
    assert ask(kit, "AT#XNRFCLOUDOBSCOREDUMP=0") == ["OK"]
    ask(kit, "AT#XRESET")
    assert ask(kit, "AT#XNRFCLOUDOBSAUTO?")[0] == f"#XNRFCLOUDOBSAUTO: 0,600,{KEY}"
    assert ask(kit, 'AT#XNRFCLOUDOBSAUTO=1,,""') == ["OK"]
    assert ask(kit, "AT#XNRFCLOUDOBSAUTO?")[0] == '#XNRFCLOUDOBSAUTO: 1,600,""'
    assert ask(kit, "AT#XNRFCLOUDOBSCOREDUMP?")[0] == "#XNRFCLOUDOBSCOREDUMP: 0"


def test_an_upload_sends_what_is_stored_once() -> None:
    kit = in_the_cloud()
    assert ask(kit, "AT#XNRFCLOUDOBSHEARTBEAT") == ["OK"]
    assert ask(kit, "AT#XNRFCLOUDOBSUPLOAD") == ["OK", "#XNRFCLOUDOBSUPLOAD: 0,108"]
    assert ask(kit, f"AT#XNRFCLOUDOBSUPLOAD={KEY}") == ["OK", "#XNRFCLOUDOBSUPLOAD: 0,0"]


def test_a_chunk_is_forwarded_one_at_a_time() -> None:
    kit = in_the_cloud()
    assert ask(kit, f"AT#XNRFCLOUDOBSFORWARD={CHUNK}") == ["OK", "#XNRFCLOUDOBSFORWARD: 0"]
    slow = switched_on(firmware=SM2, instant=False)
    slow.kit.session.cloud_ready = True
    assert ask(slow, f"AT#XNRFCLOUDOBSFORWARD={CHUNK},{KEY}") == ["OK"]
    assert ask(slow, f"AT#XNRFCLOUDOBSFORWARD={CHUNK}") == ["ERROR"]
    slow.kit.session.cloud_ready = False
    slow.advance(slow.kit.now + 1)
    assert b"#XNRFCLOUDOBSFORWARD: -1" in slow.data_to_send()


def test_an_update_is_looked_for_and_none_is_found() -> None:
    kit = in_the_cloud()
    for operation in (1, 2, 4, 6):
        command = f"AT#XNRFCLOUDFOTA={operation},{KEY}"
        assert ask(kit, command) == ["OK", "#XNRFCLOUDFOTA: 0"]
    kit.kit.session.fetching = True  # of #XFOTA
    assert ask(kit, "AT#XNRFCLOUDFOTA=1") == ["ERROR"]


@pytest.mark.parametrize(
    "command",
    [
        *(f"AT#XNRFCLOUDFOTA={given}" for given in ("0", "3", "5", "7", '1,"' + "k" * 33 + '"')),
        *(f"AT#XNRFCLOUDOBSAUTO={given}" for given in ("2", "1,59", "1,86401", "1,60,k")),
        *("AT#XNRFCLOUDOBSFORWARD", 'AT#XNRFCLOUDOBSFORWARD="no"', 'AT#XNRFCLOUDOBSFORWARD=""'),
        *("AT#XNRFCLOUDOBSCOREDUMP=2", "AT#XNRFCLOUDOBSUPLOAD=1", "AT#XNRFCLOUDOBSUPLOAD?"),
        *("AT#XNRFCLOUDOBSHEARTBEAT=1", "AT#XNRFCLOUDOBSEXPORT"),
    ],
)
def test_what_makes_no_sense_is_refused(command: str) -> None:
    assert ask(in_the_cloud(), command) == ["ERROR"]


def test_what_needs_a_connection_is_refused_without_one() -> None:
    kit = switched_on("AT+CFUN=1", firmware=SM2)
    for command in ("UPLOAD", f"FORWARD={CHUNK}"):
        assert ask(kit, f"AT#XNRFCLOUDOBS{command}") == ["ERROR"]
    assert ask(kit, "AT#XNRFCLOUDFOTA=4") == ["ERROR"]
