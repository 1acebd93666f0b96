"""What a kit prints, and marks that say which kit it is."""

import pytest


def test_what_it_prints(console, kit):
    kit.print("state 1", "state 2")
    assert console.expect(r"state (\d)", 10)[1] == "1"
    assert console.expect(r"state (\d)", 10)[1] == "2"


def test_a_crash(console, kit, modem_sync):
    assert modem_sync.execute("AT").ok
    kit.crash()
    console.expect("#CD:BEGIN#", 10)
    assert "ZEPHYR FATAL ERROR" in console.text


@pytest.mark.kit(model="nrf9160", firmware="1.3.7", registered=False)
@pytest.mark.kit_fault("no-sim")
def test_marks(modem_sync):
    assert modem_sync.execute("AT+CGMR").lines == ("mfw_nrf9160_1.3.7",)
    assert not modem_sync.execute("AT+CPIN?").ok
