"""The AT driver: any nRF91 kit, real, recorded or virtual. Usable without the agent.

The typed commands are imported from their family: `from at.commands.signal import ReadMonitor`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from at.driver.modem import Modem, open_modem
    from at.protocol.errors import (
        AtError,
        CommandRejected,
        CommandTimeout,
        LinkLost,
        ModemReset,
        NoAnswer,
        ParseError,
        PortError,
        TranscriptError,
        UnsafeArgument,
    )
    from at.protocol.line.items import Answer
    from at.protocol.notices import Notice
    from at.transcripts.transcript import Transcript

__all__ = [
    "Answer",
    "AtError",
    "CommandRejected",
    "CommandTimeout",
    "LinkLost",
    "Modem",
    "ModemReset",
    "NoAnswer",
    "Notice",
    "ParseError",
    "PortError",
    "Transcript",
    "TranscriptError",
    "UnsafeArgument",
    "open_modem",
]

_MODULE_OF = {
    "Answer": "at.protocol.line.items",
    "Modem": "at.driver.modem",
    "Notice": "at.protocol.notices",
    "Transcript": "at.transcripts.transcript",
    "open_modem": "at.driver.modem",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Resolved on first use (PEP 562): importing a part of the driver stays as cheap as it is.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_MODULE_OF.get(name, "at.protocol.errors")), name)
