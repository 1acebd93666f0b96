"""The virtual nRF93M1, as its reference and the logs of it have it."""

from __future__ import annotations

import base64

import pytest

from at.causes.live import causes_of_modem
from at.checkup import check_modem
from at.commands.catalog import command_of
from at.commands.nrf93m1.module import read_registration_token
from at.driver.modem import Modem
from at.firmware_gate import read_verdict
from at.found_state import read_found_state
from at.protocol.dialect import Dialect
from at.tokens.jwt import read_jwt, verify
from at.tokens.key_formats import load_public_key
from at.virtual.modem import VirtualModem
from at.virtual.options import OptionError, VirtualOptions
from at.virtual.server.runner import make_modem
from at.virtual.transport import VirtualTransport
from tests.support.modem.virtual_modems import (
    UNIX_TIME,
    ask,
    notices_until,
    printed,
    state_file,
    switched_on,
)

CONTACT = ("CONNECTING", "DTLS_STATE,4", "SENDING_AUTH", "RESPONSE,2.01", "CONNECTED")


def module(*lines: str, **options: object) -> VirtualModem:
    return switched_on(*lines, model="nrf93m1", **options)


def online(**options: object) -> VirtualModem:
    return module("AT+CFUN=1", **options)


def steps(lines: list[str]) -> list[str]:
    return [line.removeprefix("%COAP: ") for line in lines if line.startswith("%COAP: ")]


def in_order(wanted: tuple[str, ...], found: list[str]) -> bool:
    rest = iter(found)
    return all(any(line.startswith(one) for line in rest) for one in wanted)


def test_it_starts_with_rdy_echoes_and_leaves_empty_lines() -> None:
    kit = module()
    assert {"OK", "RDY"} <= set(ask(kit, "AT%FACTORYRESET"))
    assert printed(kit, "at+cgmm") == "at+cgmm\r\r\nnRF93M1-LABA-A0A (20250428)\r\n\r\nOK\r\n"
    assert printed(kit, "ATE0") == "ATE0\r\r\nOK\r\n"
    assert printed(kit, "AT+CGMR") == "\r\nmfw_nrf93m1_1.5.0\r\n\r\nOK\r\n"


def test_errors_have_texts_and_most_commands_of_an_nrf91_are_none_here() -> None:
    kit = module("ATE0", "AT+CMEE=2")
    assert ask(kit, "AT%REGJWT=team") == ["+CME ERROR: operation not allowed"]
    for line in ("AT%XMONITOR", "AT%CMNG=1", "AT%KEYGEN=1,2,0", "AT%SHORTSWVER", "AT#XSMVER"):
        assert ask(kit, line) == ["ERROR"]
    for line in ("AT%BCINFO", "AT%WIFISCAN", "AT%REGJWT=team"):
        assert ask(switched_on(), line) == ["ERROR"]


def test_the_uuid_is_made_at_its_first_use() -> None:
    kit = module("ATE0")
    told = f"%DEVICEUUID: {kit.kit.saved.uuid}"
    assert ask(kit, "AT%DEVICEUUID") == ["%DEVICEUUID: creating device uuid...", told, "OK"]
    assert ask(kit, "AT%DEVICEUUID") == [told, "OK"]


def test_a_registration_token_is_signed_by_the_key_that_it_tells_and_needs_the_time() -> None:
    kit = module("ATE0")
    assert ask(kit, "AT+CCLK?")[0].startswith('+CCLK: "00/01/01,')
    assert ask(kit, 'AT%REGJWT="team"') == ["ERROR"]
    assert ask(kit, 'AT+CCLK="2026/09/01,12:00:00+00"') == ["OK"]
    assert ask(kit, "AT+CCLK?")[0] == '+CCLK: "26/09/01,12:00:00+00"'
    line = ask(kit, 'AT%REGJWT="team"')[0]
    token = read_registration_token(line.removeprefix("%REGJWT: "))
    assert (token.device_uuid, token.team_id) == (kit.kit.saved.uuid, "team")
    assert set(token.claims) == {"sub", "id"}
    key = ask(kit, "AT%CLOUDACCESSKEY")[0].removeprefix("%CLOUDACCESSKEY: ")
    assert verify(read_jwt(token.token), load_public_key(base64.b64decode(key)))


def test_the_on_target_test_of_the_module_passes() -> None:
    """Reset, identity, then position, message and shadow, each after a whole contact."""
    kit = module("AT+CEREG=5")
    kit.restart()
    kit.advance(kit.kit.now)
    assert "RDY" in kit.data_to_send().decode()
    assert any(kit.kit.saved.uuid in line for line in ask(kit, "AT%DEVICEUUID"))
    assert "mfw_nrf93m1_1.5.0" in ask(kit, "AT+CGMR")
    for line in ("AT+NFWUPD=0", "AT+CEREG=5", "AT+CFUN=0"):
        assert ask(kit, line)[-1] == "OK"
    for _ in range(2):
        # What it subscribed to before holds after +CFUN=0.
        assert any(line.startswith("+CEREG: 1") for line in ask(kit, "AT+CFUN=1"))
        for line, told in (
            ("AT%NRFCLOUDLOCATION=1,1", "%NRFCLOUDLOCATION: 6"),
            ('AT%NRFCLOUDMESSAGE={"appId":"BUTTON","data":"1"}', "%NRFCLOUDMESSAGE: SENT"),
            ("AT%NRFCLOUDSHADOW=config.switch,true", "%COAP: RESPONSE,2.04"),
        ):
            for _ in range(2):
                lines = ask(kit, line)
                assert in_order(CONTACT, steps(lines)), lines
                assert any(one.startswith(told) for one in lines), lines
        assert ask(kit, "AT+CFUN=0")[-1] == "OK"


def test_with_the_delays_of_a_real_one_the_steps_come_one_by_one() -> None:
    kit = VirtualModem(VirtualOptions(model="nrf93m1"), now=0.0, unix_time=UNIX_TIME)
    kit.receive(b"ATE0\rAT+CFUN=1\r", now=0.0)
    notices_until(kit, 20.0)
    kit.advance(20.0)
    kit.data_to_send()
    kit.receive(b"AT%NRFCLOUDLOCATION=4,1\r", now=20.0)
    times = [at for at, line in notices_until(kit, 40.0) if line.startswith("%COAP")]
    assert times == sorted(times)
    assert len(set(times)) > 5


@pytest.mark.parametrize(("method", "used"), [(1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (7, 4)])
def test_a_position_says_what_it_was_found_by(method: int, used: int) -> None:
    kit = online()
    lines = ask(kit, f"AT%NRFCLOUDLOCATION={method},1")
    (place,) = [line for line in lines if line.startswith("%NRFCLOUDLOCATION")]
    where = kit.kit.position
    assert place.startswith(f"%NRFCLOUDLOCATION: {where.lat:.6f},{where.lon:.6f},")
    assert place.endswith(f",{used}")
    assert "%NRFCLOUDLOCATION: ACK RECEIVED" in ask(kit, f"AT%NRFCLOUDLOCATION={method},0")


def test_a_position_may_come_after_its_ok() -> None:
    kit = online(faults=("late-location",))
    lines = ask(kit, "AT%NRFCLOUDLOCATION=1,1")
    assert lines.index("OK") < [line[:18] for line in lines].index("%NRFCLOUDLOCATION:")


def test_a_session_that_is_kept_needs_no_new_contact() -> None:
    kit = online(faults=("cloud-session-kept",))
    ask(kit, "AT%NRFCLOUDLOCATION=1,1")
    assert steps(ask(kit, "AT%NRFCLOUDMESSAGE=[1]")) == ["RESPONSE,2.01"]


def test_a_module_that_is_not_onboarded_or_not_online_says_so() -> None:
    kit = online(faults=("not-onboarded",))
    lines = ask(kit, "AT%NRFCLOUDMESSAGE=[1]")
    assert (steps(lines)[-1], lines[-1]) == ("RESPONSE,4.01", "ERROR")
    assert steps(ask(module(), "AT%NRFCLOUDMESSAGE=[1]")) == ["ERROR,NO_BEARER"]


@pytest.mark.parametrize("text", ["hello", '{"a":', "7", '{"a":"' + "x" * 511 + '"}'])
def test_a_message_is_json_of_up_to_511_characters(text: str) -> None:
    assert ask(online(), f"AT%NRFCLOUDMESSAGE={text}")[-1] == "ERROR"


def test_what_it_hears_is_read_by_the_types() -> None:
    kit = online()
    for line in ("AT%BCINFO", "AT%WIFISCAN=12000,1,6,3,0"):
        _echo, *body, final = ask(kit, line)
        command = command_of(line)
        assert command is not None
        value = command.parse(body)
        assert final == "OK"
        assert len(getattr(value, "networks", body)) == len(body) > 1
    assert ask(module("ATE0"), "AT%BCINFO") == ["OK"]


def test_chunks_of_its_own_and_of_the_host_are_sent() -> None:
    kit = online()
    for _ in range(2):
        assert ask(kit, "AT%NRFCLOUDOBSHEARTBEAT")[-1] == "OK"
    ask(kit, "AT+CFUN=4")
    assert ask(kit, "AT%NRFCLOUDOBSUPLOAD")[-1] == "ERROR"
    ask(kit, "AT+CFUN=1")
    assert "%NRFCLOUDOBSUPLOAD: UPLOADED,2" in ask(kit, 'AT%NRFCLOUDOBSUPLOAD="key"')
    assert "%NRFCLOUDOBSUPLOAD: UPLOADED,0" in ask(kit, "AT%NRFCLOUDOBSUPLOAD")
    assert ask(kit, 'AT%NRFCLOUDOBSFORWARD="CAKm"')[-1] == "OK"
    assert kit.kit.forwarded == [b"\x08\x02\xa6"]
    assert ask(kit, 'AT%NRFCLOUDOBSFORWARD="C"')[-1] == "ERROR"


def test_an_update_ends_with_rdy_and_the_version_that_the_cloud_has() -> None:
    kit = online(faults=("release-offered=mfw_nrf93m1_1.6.0",))
    lines = ask(kit, 'AT%NRFCLOUDFOTA=2,"key"')
    assert lines.index("OK") < lines.index("%FOTA: CHECKING")
    assert lines[-1] == "%FOTA: UPDATE_AVAILABLE"
    lines = ask(kit, "AT%NRFCLOUDFOTA=3,key")
    kit.advance(kit.kit.now + 10)
    lines += [line for line in kit.data_to_send().decode().split("\r\n") if line]
    wanted = ("%FOTA: CHECKING", "%FOTA: ZONE,1", "%FOTA: UPGRADING", '%FOTA: "APPLY"')
    assert in_order((*wanted, '%FOTA: "DONE",0', "RDY"), lines)
    assert "mfw_nrf93m1_1.6.0" in ask(kit, "AT+CGMR")


def test_an_update_that_does_not_stick_leaves_the_version() -> None:
    for fault in ("flash-failed", "update-reverted"):
        kit = online(faults=("release-offered", fault))
        ask(kit, "AT%NRFCLOUDFOTA=3,key")
        kit.advance(kit.kit.now + 10)
        assert "mfw_nrf93m1_1.5.0" in ask(kit, "AT+CGMR")


def test_without_a_release_there_is_no_update() -> None:
    assert ask(online(), "AT%NRFCLOUDFOTA=3,key")[-1] == "%FOTA: NO_UPDATE"


def test_it_powers_down() -> None:
    kit = online()
    assert ask(kit, "AT%POWD=1")[1:] == ["OK", "POWERED DOWN"]
    assert ask(kit, "AT") == []


def test_its_shell_is_typed_modem_at() -> None:
    kit = module(dialect="modem-shell")
    assert "mfw_nrf93m1_1.5.0\r\nOK\r\n" in printed(kit, "modem at AT+CGMR")
    assert "mfw_nrf93m1_1.5.0\r\nOK\r\n" in printed(kit, "modem at 'AT+CGMR'")
    assert "at: command not found" in printed(kit, "at AT+CGMR")


def test_a_model_speaks_its_own_dialects_alone() -> None:
    with pytest.raises(OptionError, match="does not speak at-host"):
        module(dialect="at-host")
    with pytest.raises(OptionError, match="does not speak nrf93m1"):
        switched_on(dialect="nrf93m1")
    assert VirtualOptions(firmware="mfw_nrf93m1_1.4.1").completed().model == "nrf93m1"


async def test_a_check_up_tells_the_model_and_a_clock_that_is_not_set() -> None:
    modem = Modem(VirtualTransport(model="nrf93m1", instant=True))
    await modem.open()
    try:
        told = {check.name: (check.value, check.shown) for check in await check_modem(modem)}
        verdict = await read_verdict(modem)
        causes = [cause.cause for cause in await causes_of_modem(modem, watch_s=0)]
        found = await read_found_state(modem)
    finally:
        await modem.close()
    assert modem.dialect is Dialect.NRF93M1
    assert told["model"][0] == "nRF93M1-LABA-A0A (20250428)"
    assert told["time"] == (None, "not set")
    assert verdict.allowed
    assert "1.3.0 does not apply" in verdict.note
    assert "system-mode-refused" not in causes
    assert found.clock == ""


def test_its_state_is_kept_in_a_file(tmp_path) -> None:
    with state_file(tmp_path / "kit.json") as flash:
        kit = make_modem(VirtualOptions(model="nrf93m1", instant=True), flash)
        ask(kit, "AT%DEVICEUUID")
        flash.store(kit.kit.saved)
    with state_file(tmp_path / "kit.json") as flash:
        kit = make_modem(VirtualOptions(), flash)
        assert "nRF93M1-LABA-A0A (20250428)" in ask(kit, "AT+CGMM")
