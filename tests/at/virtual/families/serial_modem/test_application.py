"""The Serial Modem restarts and says who it is, by commands of its own."""

from __future__ import annotations

from tests.support.modem.virtual_modems import ask, switched_on


def test_a_reset_of_the_modem_keeps_the_echo_and_drops_the_rest() -> None:
    kit = switched_on("ATE1", "AT+CMEE=1", "AT+CFUN=1", dialect="serial-modem")
    assert ask(kit, "AT#XMODEMRESET")[1:] == ["#XMODEMRESET: 0", "OK"]
    assert ask(kit, "AT+CMEE?")[1:] == ["+CMEE: 0", "OK"]
    assert ask(kit, "AT+CFUN?")[1:] == ["+CFUN: 0", "OK"]


def test_the_uuid_is_that_of_the_device() -> None:
    kit = switched_on(dialect="serial-modem")
    assert ask(kit, "AT#XUUID")[0] == f"#XUUID: {kit.kit.saved.uuid}"


def test_the_first_generation_knows_nothing_of_the_second() -> None:
    first = switched_on(dialect="serial-modem")
    second = switched_on(firmware="serial-modem-2.0.0")
    assert ask(first, "AT#XSMVER") == ['#XSMVER: "v1.0.0","3.1.1"', "OK"]
    assert ask(second, "AT#XSMVER") == ['#XSMVER: "v2.0.0","3.4.0"', "OK"]
    assert ask(second, "AT#XSLMVER") == ["ERROR"]  # its name before it was Serial Modem
    listed = [set(ask(kit, "AT#XCLAC")) for kit in (first, second)]
    new = listed[1] - listed[0]
    assert {"AT#XNRFPROV", "AT#XTRACE", "AT#XNRFCLOUDFOTA"} <= new
    assert listed[0] - listed[1] == set()
    for command in new:
        assert ask(first, f"{command}=?") == ["ERROR"], command
        assert "AT+IPR" not in listed[1]


def test_logs_and_trace_share_a_port() -> None:
    kit = switched_on(firmware="serial-modem-2.0.0")
    assert ask(kit, "AT#XLOG=?") == ["#XLOG: (0,1,2)", "OK"]
    assert ask(switched_on(dialect="serial-modem"), "AT#XLOG=?") == ["#XLOG: (0,1)", "OK"]
    assert ask(kit, "AT#XLOG=2") == ["OK"]
    assert ask(kit, "AT#XLOG?") == ["#XLOG: 2", "OK"]
    assert ask(kit, "AT#XTRACE=1") == ["ERROR"]
    for command, answer in (
        *(("AT#XLOG=0", "OK"), ("AT#XTRACE=1", "OK"), ("AT#XLOG=1", "ERROR")),
        *(("AT#XTRACE?", "#XTRACE: 1"), ("AT#XLOG=3", "ERROR"), ("AT#XTRACE=0", "OK")),
    ):
        assert ask(kit, command)[0] == answer, command


def test_a_number_of_the_boot_loader_is_what_was_asked_for() -> None:
    kit = switched_on(firmware="serial-modem-2.0.0")
    assert [ask(kit, f"AT#XBOOTINFO={op}")[0] for op in "012"] == [
        *("#XBOOTINFO: 1", "#XBOOTINFO: 0", "ERROR")
    ]


def test_the_speed_of_the_port_is_one_of_five_until_a_restart() -> None:
    kit = switched_on(firmware="serial-modem-2.0.0")
    assert ask(kit, "AT+IPR=?") == ["+IPR: (),(115200,230400,460800,921600,1000000)", "OK"]
    assert ask(kit, "AT+IPR=1000000") == ["OK"]
    assert ask(kit, "AT+IPR=9600") == ["ERROR"]
    assert ask(kit, "AT+IPR?")[0] == "+IPR: 1000000"
    ask(kit, "AT#XRESET")
    assert ask(kit, "AT+IPR?")[0] == "+IPR: 115200"
    assert ask(switched_on(), "AT+IPR?") == ["ERROR"]
