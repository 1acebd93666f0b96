"""The kit's flash, which survives a power cut: identity, credentials, settings, firmware slots.

Its file is JSON, readable by its owner alone (0600).
"""

from __future__ import annotations

import json
import os
import tempfile
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path

from at.ports.process_lock import HeldByAnother, ProcessLock
from at.protocol.errors import PortBusy, PortError
from at.virtual.options import MODELS, VirtualOptions

FORMAT = 1


@dataclass(slots=True)
class CredentialSlot:
    """One slot of the credential store.

    `content` is the text that was written, `private_key` the PEM of a key that the modem made.
    """

    sha256: str
    content: str | None = None
    private_key: str | None = None


@dataclass(slots=True)
class SavedState:
    """The state in the kit's flash."""

    model: str
    firmware: str
    imei: str
    uuid: str
    dialect: str
    identity_key: str = ""
    """PEM of the device identity key; made when it is first needed."""
    credentials: dict[str, CredentialSlot] = field(default_factory=dict)
    """By "tag,type"."""
    system_mode: tuple[int, int, int, int] = (1, 0, 1, 0)
    by_satellite: bool = False
    """NB-IoT by satellite: the fifth parameter of %XSYSTEMMODE, of firmware that has it."""
    settings: dict[str, str] = field(default_factory=dict)
    """Parameters of settings that start-up code sends, by the command's name."""
    band_lock: str = ""
    """The permanent band lock, as it was written: bits, or satellite bands in a list."""
    psm: tuple[int, str, str] = (0, "00000110", "00100001")
    """Power saving as requested: mode, periodic update, active time."""
    edrx: dict[str, str] = field(default_factory=dict)
    """Requested paging cycle by technology: "4" LTE-M, "5" NB-IoT."""
    operation_mode: int = 0
    app_version: str = "1.0.0"
    pending_image: str = ""
    """Version of the application image that the next restart starts."""
    pending_modem: str = ""
    """Revision of the modem firmware that the next restart starts."""
    fota_report: str = ""
    """What #XFOTA reports once the new firmware runs, "" for nothing."""
    position: tuple[float, float] = (0.0, 0.0)
    """True position when the state was last stored: degrees of latitude and longitude."""
    writes: int = 0
    """Writes to the credential store since the kit was made, because flash wears."""

    @classmethod
    def fresh(cls, options: VirtualOptions) -> SavedState:
        """Return the state of a new kit."""
        return cls(
            model=options.model,
            firmware=options.firmware,
            imei=options.imei,
            uuid=options.uuid,
            dialect=options.dialect,
            app_version=options.application or "1.0.0",
        )

    def encode(self) -> bytes:
        """Return the state as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode()

    @classmethod
    def decode(cls, data: bytes) -> SavedState:
        """Return the state from JSON. Raises ValueError, KeyError, TypeError."""
        from msgspec import convert  # only here: a kit without a file needs none of it

        stored = json.loads(data)
        if stored["format"] != FORMAT or stored["model"] not in MODELS:
            raise ValueError("of another format")
        return convert(stored, cls)  # earlier versions stored more


class StateFile:
    """The file of one kit's flash, locked by one process: two would overwrite each other's changes.

    Raises PortBusy, which names the holder, and PortError where the folder is not writable.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = ProcessLock(self.path.with_name(f"{self.path.name}.lock"))
        except HeldByAnother as held:
            raise PortBusy(
                f"{self.path}, the state of a virtual modem, is in use by {held.holder}",
                hint="stop it, talk to the modem that it serves, or name another state file",
                holder=held.holder,
            ) from held
        except OSError as error:
            raise self._failed(error) from error
        self._stored: SavedState | None = None

    def load(self) -> SavedState | None:
        """Return the state; None without a file. Raises PortError if the file is another kind."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from error
        try:
            return SavedState.decode(data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PortError(
                f"{self.path} is not the state of a virtual modem",
                hint="give another file, or move this one away to begin with a fresh kit",
            ) from error

    def store(self, saved: SavedState) -> None:
        """Write changes atomically: a kill or a power cut leaves the old state or the new one."""
        if saved == self._stored:  # as after most bytes of most commands
            return
        try:
            # mkstemp makes the file 0600 from the first moment, whatever the umask.
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(saved.encode())
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._failed(error) from error
        self._stored = deepcopy(saved)

    def release(self) -> None:
        """Unlock the file for other processes."""
        self._lock.release()

    def _failed(self, error: OSError) -> PortError:
        return PortError(f"the state of the virtual modem, {self.path}: {error.strerror}")
