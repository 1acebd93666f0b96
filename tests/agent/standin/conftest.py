"""What the tests of the stand-in share."""

from __future__ import annotations

import pytest
from device_api import Api
from standin import StandIn


@pytest.fixture
def api(standin: StandIn) -> Api:
    """Return the device cloud as an owner of devices sees it."""
    return Api(standin)
