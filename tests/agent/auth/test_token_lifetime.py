from __future__ import annotations

import asyncio

from agent.auth.token_lifetime import LIFE_S, RENEW_AFTER_S, CachedToken
from tests.support.cloud.credential_calls import Modem, Push, modem_jwt


class Clock:
    def __init__(self) -> None:
        self.value = 1000.0

    def __call__(self) -> float:
        return self.value


async def test_a_token_is_renewed_at_four_fifths_of_its_life_and_after_a_refusal() -> None:
    modem, clock = Modem(), Clock()
    credential = modem_jwt(modem, "x", monotonic=clock)
    first = await credential.headers(Push())
    clock.value += RENEW_AFTER_S - 0.1
    assert await credential.headers(Push()) == first
    assert RENEW_AFTER_S == 0.8 * LIFE_S
    clock.value = 1000.0 + RENEW_AFTER_S
    assert await credential.headers(Push()) != first
    assert credential.forget() is True
    await credential.headers(Push())
    assert len(modem.asked) == 3


async def test_the_time_that_a_modem_takes_for_a_token_is_taken_off_its_life() -> None:
    clock, made = Clock(), 0

    async def make() -> str:
        nonlocal made
        made += 1
        clock.value += 30.0
        return f"token {made}"

    token = CachedToken(make, monotonic=clock)
    assert await token.get() == "token 1"
    clock.value = 1000.0 + RENEW_AFTER_S - 1
    assert await token.get() == "token 1"
    clock.value += 1
    assert await token.get() == "token 2"


async def test_calls_at_the_same_time_have_one_token_made() -> None:
    made: list[str] = []

    async def make() -> str:
        await asyncio.sleep(0)  # the others ask meanwhile
        made.append(f"token {len(made)}")
        return made[-1]

    token = CachedToken(make)
    assert set(await asyncio.gather(*(token.get() for _ in range(20)))) == {"token 0"}
    assert made == ["token 0"]
