"""What the provisioning client of Serial Modem 2.0 says to its host."""

from __future__ import annotations

import pytest

from at.commands.serial_modem.provisioning import ProvisioningNotice, StartProvisioning
from at.protocol.notices import Malformed
from tests.support.modem.answers import notice_of, notice_value


@pytest.mark.parametrize("status", range(-6, 3))
def test_each_status_of_the_manual_is_read(status):
    assert isinstance(notice_of(f"#XNRFPROV: {status}"), ProvisioningNotice)
    assert notice_value(f"#XNRFPROV: {status}") == {"status": status}


@pytest.mark.parametrize("text", ["", "3", "-7", "22", "1,0", "x", '"1"', "-"])
def test_anything_else_is_refused(text):
    assert isinstance(notice_of(f"#XNRFPROV: {text}"), Malformed)


def test_it_is_started_without_a_parameter():
    assert StartProvisioning().encode() == "AT#XNRFPROV"
