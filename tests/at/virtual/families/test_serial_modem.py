"""The Serial Modem restarts and says who it is, by commands of its own."""

from __future__ import annotations

from virtual_modems import ask, switched_on


def test_a_reset_of_the_modem_keeps_the_echo_and_drops_the_rest() -> None:
    kit = switched_on("ATE1", "AT+CMEE=1", "AT+CFUN=1", dialect="serial-modem")
    assert ask(kit, "AT#XMODEMRESET")[1:] == ["#XMODEMRESET: 0", "OK"]
    assert ask(kit, "AT+CMEE?")[1:] == ["+CMEE: 0", "OK"]
    assert ask(kit, "AT+CFUN?")[1:] == ["+CFUN: 0", "OK"]


def test_the_uuid_is_that_of_the_device() -> None:
    kit = switched_on(dialect="serial-modem")
    assert ask(kit, "AT#XUUID")[0] == f"#XUUID: {kit.kit.saved.uuid}"
