"""pytest fixtures that replay a recorded modem session. pytest loads this module itself.

    async def test_reads_the_signal(modem_from_transcript):
        async with modem_from_transcript("signal.transcript") as modem:
            answer = await modem.execute("AT+CESQ")

Needs a plugin that runs coroutine tests, such as pytest-asyncio. Only the standard library is
imported before the fixture is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from at.protocol.counts import counted

if TYPE_CHECKING:
    from at.driver.modem import Modem
    from at.transcripts.transcript import Transcript

    ModemFromTranscript = Callable[..., AbstractAsyncContextManager[Modem]]


@pytest.fixture
def modem_from_transcript(request: pytest.FixtureRequest) -> ModemFromTranscript:
    """Return a function from a transcript to an open modem that plays it.

    `source` is a file, relative to the test's folder or to pytest's root, or a `Transcript`.
    `strict=True`: what is sent must be the recorded bytes, and all of them, else the test fails
    with a TranscriptError that names the step. `strict=False` answers by command.
    """

    @contextlib.asynccontextmanager
    async def opened(
        source: str | Path | Transcript, *, strict: bool = True
    ) -> AsyncIterator[Modem]:
        from at.driver.modem import Modem
        from at.protocol.errors import TranscriptError
        from at.transcripts.replay_transport import ReplayTransport
        from at.transcripts.step_matching import shown

        if isinstance(source, str | Path):
            beside = request.path.parent / source
            source = beside if beside.exists() else request.config.rootpath / source
        transport = ReplayTransport(source, strict=strict)
        modem = Modem(transport)
        try:
            await modem.open()
            try:
                yield modem
            finally:
                await modem.close()
            if transport.error is not None:
                raise transport.error
            if strict and transport.remaining:
                step = transport.remaining[0]
                raise TranscriptError(
                    f"{counted(len(transport.remaining), 'steps')} of the transcript never sent; "
                    f"the first is line {step.line}, {shown(step.data)}"
                )
        except TranscriptError as error:
            if isinstance(source, Path):
                error.add_note(f"the transcript is {source}")
            raise

    return opened
