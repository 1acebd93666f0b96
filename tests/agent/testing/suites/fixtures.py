"""Fixtures of the user's on top of ours, which talk to the kit before the test and behind it."""

import pytest
import pytest_asyncio


@pytest.fixture
def api(modem):
    return modem


@pytest_asyncio.fixture
async def online(api):
    assert (await api.execute("AT+CFUN=1")).ok
    yield api
    assert (await api.execute("AT+CFUN=0")).ok


@pytest_asyncio.fixture
async def model(online):
    return (await online.execute("AT+CGMM")).lines


@pytest.mark.asyncio
async def test_coroutines(online, model):
    assert (await online.execute("AT+CGMM")).lines == model


class TestOfAClass:
    @pytest.mark.asyncio
    async def test_without(self, modem):
        assert (await modem.execute("AT+CGMM")).ok


@pytest.fixture
def online_sync(modem_sync):
    assert modem_sync.execute("AT+CFUN=1").ok
    yield modem_sync
    assert modem_sync.execute("AT+CFUN=0").ok


def test_plain_functions(online_sync):
    assert online_sync.execute("AT+CGMR").ok
