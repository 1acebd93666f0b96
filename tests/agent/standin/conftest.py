"""What the tests of the stand-in share."""

from __future__ import annotations

import pytest

from tests.support.cloud.device_api import Api
from tests.support.cloud.standin import StandIn


@pytest.fixture
def api(standin: StandIn) -> Api:
    """Return the device cloud as an owner of devices sees it."""
    return Api(standin)
