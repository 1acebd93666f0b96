"""What one test has: its kit, what is recorded of it, and how it ended."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.errors import UsageError
from agent.testing.choice import KitChoice, KitEntry, KitWish, NotRecorded, RecordMode, fits
from agent.testing.failure import lines_up_to
from agent.testing.paths import TRANSCRIPT, clear
from agent.testing.sources import KitSource, ReplaySource, console_file
from at.protocol.errors import TranscriptError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.testing.console import Console
    from agent.testing.kit import Kit
    from agent.testing.live_kit import RecordedSource
    from agent.testing.loop_thread import LoopThread
    from at.transcripts.recorder import RecordingTransport
    from at.transport.base import Transport


class TestBench:
    """The kit of one test, made when it is first asked for."""

    __test__ = False

    def __init__(
        self,
        file: Path,
        choice: KitChoice,
        wish: KitWish,
        thread: LoopThread,
        attachments: Path | None,
        tell: Callable[[str], None],
    ) -> None:
        self.file = file
        self._attachments = attachments
        if attachments is not None:
            clear(attachments)
        self._session: RecordingTransport | None = None
        self._choice, self._wish, self._thread, self._tell = choice, wish, thread, tell
        self._stack = contextlib.ExitStack()
        self._source: KitSource | None = None
        self._recorded: RecordedSource | None = None
        self._entry = KitEntry()
        self._user = ""
        self.users = {"modem", "modem_sync", "kit_port", "console", "kit"}
        """Fixtures that may talk to the kit: ours, and those of the user on top of them."""
        self.ends_late = False
        """Whether one of the user's may still do so behind the test, when it is torn down."""
        self.is_by_hand = False
        """Whether a mark says that its kit is a recording: no switch records it."""
        self._has_ended = False
        self._console: Console | None = None
        once = choice.mode in {RecordMode.ONCE, RecordMode.NEW}
        self.replays = choice.mode is RecordMode.NONE or (once and self._is_recorded)
        """Whether the kit is a recording."""

    @property
    def _is_recorded(self) -> bool:
        return self.file.exists() or console_file(self.file).exists()

    @property
    def records(self) -> bool:
        """Whether the session of the test is recorded."""
        return not self.replays and self._choice.mode is not RecordMode.LIVE

    @property
    def has_virtual_time(self) -> bool:
        """Whether time jumps in it: of a recording nothing has to be waited for."""
        return self.replays and not self._wish.real_time

    @property
    def source_name(self) -> str:
        """Where the kit came from: replay, virtual or a port."""
        return "replay" if self.replays else self._entry.port

    def source(self) -> KitSource:
        """Return the kit, made now if it is not. Raises UsageError; may skip the test."""
        if self._source is None:
            self._source = self._made()
            self._stack.callback(self._source.close)
        return self._source

    def _made(self) -> KitSource:
        if self.replays:
            if not self._is_recorded:
                raise NotRecorded(
                    f"there is no recording of this test: {self.file}",
                    hint="write it by hand"
                    if self.is_by_hand
                    else "record those that are missing: `pytest --cellagent-record=once`",
                )
            return ReplaySource(self.file, self._thread)
        fitting = [entry for entry in self._choice.kits if fits(entry, self._wish)]
        if not fitting:
            have = "; ".join(map(str, self._choice.kits))
            pytest.skip(f"no kit fits: the test wants {self._wish}, and there are {have}")
        # Of what comes here, a replay needs nothing.
        from agent.testing.live_kit import RecordedSource, VirtualSource, leased

        self._entry = entry = self._stack.enter_context(leased(fitting, self._tell))
        live: KitSource
        if entry.is_virtual:
            live = VirtualSource(self._wish, entry, self._thread)
        elif self._wish.faults:
            pytest.skip(f"{entry.port} is a real kit: it has no faults to switch on")
        else:
            live = KitSource(self._thread, entry.port, entry.console)
        if not self.records:
            return live
        self._recorded = RecordedSource(live, self._thread)
        return self._recorded

    # --- what the fixtures give

    def transport(self, user: str, is_free: Callable[[], bool] | None = None) -> Transport:
        """Return a way to the AT port for the driver that `user` (a fixture) has.

        On a virtual clock, `is_free` returns whether a wait would take no time now.
        """
        self._use(user)
        transport = self.source().transport(is_free)
        if self._attachments is None or self.replays or self.records:
            return transport
        from agent.files.private_files import make_folder
        from at.transcripts.recorder import RecordingTransport

        make_folder(self._attachments)
        self._session = RecordingTransport(transport, self._attachments / TRANSCRIPT)
        return self._session

    def port(self) -> str:
        """Return the AT port's name for any program."""
        self._use("kit_port")
        return self.source().port()

    def _use(self, user: str) -> None:
        if self._user not in {"", user}:
            raise UsageError(
                f"one test has {self._user} and {user}: the kit has one AT port",
                hint="leave one of the two out",
            )
        self._user = user

    def console(self) -> Console:
        """Return the console."""
        from agent.testing.console import Console

        if self._console is None:
            self._console = Console(self.source().console(), self._thread)
            self._stack.callback(self._console.close)
        return self._console

    def kit(self) -> Kit:
        """Return the kit for what is done to it."""
        from agent.testing.kit import Kit

        source = self.source()
        if self._recorded is not None:
            source = self._recorded.inner
        return Kit(None if self.replays else source, self._entry, self._thread)

    # --- the end

    def end(self) -> None:
        """End the session, once. Raises TranscriptError where it left its recording."""
        if self._source is not None and not self._has_ended:
            self._has_ended = True
            self._source.end()

    def close(self, *, passed: bool) -> None:
        """Close the kit; keep what was recorded if the test passed. Raises as `end`."""
        with self._stack:
            self.end()
            if passed and self._recorded is not None:
                try:
                    self._recorded.keep(self.file)
                except OSError as error:
                    place = error.filename or self.file
                    raise TranscriptError(
                        f"the recording cannot be kept: {place}: {error.strerror}"
                    ) from error

    def attach_session(self, *, failed: bool) -> None:
        """End the transcript among the test's files; of a recording, keep one that failed there."""
        if self._session is not None:
            self._thread.run(self._session.finish)
        elif failed and self._recorded is not None and self._attachments is not None:
            self._recorded.keep(self._attachments / TRANSCRIPT)

    @property
    def recorded_text(self) -> str:
        """The lines of the recording that were played last, "" where it is none."""
        if not isinstance(self._source, ReplaySource) or not self._source.line:
            return ""
        return lines_up_to(self.file, self._source.line)

    @property
    def console_text(self) -> str:
        """What the kit printed on its console, "" where no test asked for it."""
        return self._console.text if self._console is not None else ""
