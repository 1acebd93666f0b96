"""The Serial Modem joins a cloud and asks it for a place."""

from __future__ import annotations

import pytest

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.modem.virtual_modems import ask, switched_on

MAC = '"02:00:00:00:00:0{}"'


def in_the_cloud(**options: object) -> VirtualModem:
    return switched_on(
        *("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1,1"),
        **{"firmware": "serial-modem-2.0.0", **options},
    )


def test_a_kit_without_a_key_or_a_network_reaches_no_cloud() -> None:
    assert ask(switched_on("AT+CFUN=1", dialect="serial-modem"), "AT#XNRFCLOUD=1") == ["ERROR"]
    kit = switched_on("AT%KEYGEN=16842753,2,0", dialect="serial-modem")
    assert ask(kit, "AT#XNRFCLOUD=1") == ["ERROR"]
    assert ask(kit, "AT#XNRFCLOUDPOS=1,0") == ["ERROR"]


def test_the_cloud_is_joined_written_to_and_left() -> None:
    kit = switched_on("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", dialect="serial-modem")
    assert ask(kit, "AT#XNRFCLOUD=1,1") == ["OK", "#XNRFCLOUD: 1,1"]
    state = f'#XNRFCLOUD: 1,1,16842753,"{kit.kit.saved.uuid}"'
    assert ask(kit, "AT#XNRFCLOUD?") == [state, "OK"]
    assert ask(kit, "AT#XNRFCLOUD=1") == ["ERROR"]
    assert ask(kit, "AT#XNRFCLOUD=2") == ["OK"]
    kit.receive(b'{"msg":"hello"}+++', now=kit.kit.now)
    assert kit.data_to_send() == b"\r\n#XDATAMODE: 0\r\n"
    assert ask(kit, "AT#XNRFCLOUD=0") == ["OK", "#XNRFCLOUD: 0,1"]
    assert ask(kit, "AT#XNRFCLOUD=2") == ["ERROR"]


def test_a_place_is_told_by_one_cell_by_several_and_by_what_the_host_heard() -> None:
    kit = in_the_cloud()
    where = kit.kit.position
    place = f"{where.lat:.6f},{where.lon:.6f}"
    assert ask(kit, "AT#XNRFCLOUDPOS=1,0") == ["OK", f"#XNRFCLOUDPOS: 0,0,{place},1094"]
    ok, cells, told = ask(kit, "AT#XNRFCLOUDPOS=4,0")
    assert (ok, told) == ("OK", f"#XNRFCLOUDPOS: 0,1,{place},270")
    assert cells.startswith("%NCELLMEAS: 0,")
    first, second = (point.access_point.bssid for point in kit.kit.world.access_points(where)[:2])
    command = f'AT#XNRFCLOUDPOS=0,1,"{first}",-40,"{second}"'
    assert ask(kit, command) == ["OK", f"#XNRFCLOUDPOS: 0,2,{place},25"]
    nobody = f"AT#XNRFCLOUDPOS=0,1,{MAC.format(1)},{MAC.format(2)}"
    assert ask(kit, nobody) == ["OK", "#XNRFCLOUDPOS: -1"]


@pytest.mark.parametrize(
    "given",
    ["0,0", "16,0", "0,1", f"0,1,{MAC.format(1)}", '0,1,"nonsense","02:00:00:00:00:01"', "1"],
)
def test_a_question_for_a_place_that_makes_no_sense_is_refused(given: str) -> None:
    assert ask(in_the_cloud(), f"AT#XNRFCLOUDPOS={given}") == ["ERROR"]


def test_a_level_that_no_radio_hears_is_refused() -> None:
    given = f"0,1,{MAC.format(1)},1,{MAC.format(2)}"
    assert ask(in_the_cloud(), f"AT#XNRFCLOUDPOS={given}") == ["ERROR"]


def test_switched_off_meanwhile_it_locates_nothing() -> None:
    kit = VirtualModem(VirtualOptions(firmware="serial-modem-2.0.0"), now=0.0, unix_time=0.0)
    kit.kit.session.cloud_ready = True
    kit.kit.session.fun = 1
    assert ask(kit, "AT#XNRFCLOUDPOS=4,0") == ["OK"]
    assert ask(kit, "AT%NCELLMEAS") == ["ERROR"]  # the firmware uses it itself
    ask(kit, "AT+CFUN=4")
    kit.advance(100.0)
    assert b"NCELLMEAS" not in kit.data_to_send()


def test_generation_1_takes_no_count_and_prints_no_status() -> None:
    kit = in_the_cloud(firmware="serial-modem-1.0.0")
    where = kit.kit.position
    place = f"{where.lat:.6f},{where.lon:.6f}"
    assert ask(kit, "AT#XNRFCLOUDPOS=1,0") == ["OK", f"#XNRFCLOUDPOS: 0,{place},1094"]
    assert ask(kit, "AT#XNRFCLOUDPOS=2,0") == ["OK", f"#XNRFCLOUDPOS: 1,{place},270"]
    assert ask(kit, "AT#XNRFCLOUDPOS=3,0") == ["ERROR"]


def test_generation_2_keeps_its_session_in_flight_and_tells_its_end_without_power() -> None:
    kit = in_the_cloud()
    uuid = kit.kit.saved.uuid
    assert ask(kit, "AT+CFUN=4") == ["OK"]
    assert ask(kit, "AT#XNRFCLOUD?") == [f'#XNRFCLOUD: 1,1,16842753,"{uuid}"', "OK"]
    assert ask(kit, "AT+CFUN=0") == ["OK", "#XNRFCLOUD: 0,1"]
    assert ask(in_the_cloud(), "AT#XMODEMRESET") == ["#XMODEMRESET: 0", "OK", "#XNRFCLOUD: 0,1"]
    fresh = switched_on(firmware="serial-modem-2.0.0")
    assert ask(fresh, "AT#XNRFCLOUD?") == ['#XNRFCLOUD: 0,0,16842753,""', "OK"]
    first = in_the_cloud(firmware="serial-modem-1.0.0")
    assert ask(first, "AT+CFUN=4") == ["OK"]
    assert ask(first, "AT#XNRFCLOUD?")[0].startswith("#XNRFCLOUD: 0,1,")
