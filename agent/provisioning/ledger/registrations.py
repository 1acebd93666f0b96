"""The registrations of keys: as which devices a key works, until another one takes its place.

The service keeps one key for each device, and one key may be that of several devices. So a key is
dead when its last registration is replaced, and not before.
"""

from msgspec import Struct

from agent.provisioning.ledger.backend import Execute

NO_SERVICE = "none"
"""The method of a key that no service was given: its board has the device id all the same."""
_LIVE = "replaced_at IS NULL"
LIVE_KEY = (
    "uuid = :uuid AND retired_at IS NULL AND (security_tag = :tag "
    "OR (security_tag IS NULL AND CAST(:tag AS INTEGER) IS NULL))"
)
_KEY = f"(SELECT id FROM keys WHERE {LIVE_KEY})"  # noqa: S608
_OURS = "key IN (SELECT id FROM keys WHERE uuid = :uuid)"
_LIVE_OF_THE_KEY = f"SELECT 1 FROM registrations WHERE key = keys.id AND {_LIVE}"  # noqa: S608
_LATEST = (
    "SELECT method || ' ' || device_id FROM registrations WHERE key = keys.id "  # noqa: S608
    f"AND {_LIVE} AND method <> '{NO_SERVICE}' ORDER BY id DESC LIMIT 1"
)
_HOLDERS = (
    "SELECT 1 FROM registrations JOIN keys ON keys.id = registrations.key "  # noqa: S608
    f"WHERE device_id = :device_id AND {_LIVE} AND uuid <> :uuid"
)
HELD_BY_ANOTHER = f"EXISTS ({_HOLDERS})"
"""The condition that a key of another board than `:uuid` works as the device `:device_id`."""


class DeviceKey(Struct, frozen=True):
    """The live key of a board's `security_tag`, that is to work as a device. `at` is now, a column.

    Its methods are changes within the transaction of `execute`; none where there is no such key.
    """

    execute: Execute
    at: object
    uuid: str
    security_tag: int | None
    device_id: str

    def begin(self, method: str) -> None:
        """Record that the service is asked: from now on it may take the key.

        What this key was before, claimed or registered, says nothing of this time.
        """
        self._set(method, None)

    def finish(self, method: str) -> None:
        """Record that the service took the key: it is the only one of the device."""
        self._set(method, self.at)
        self._replace(_OURS, f"the key of tag {self.security_tag} took its place")
        self._take_from_others()

    def hold(self, method: str) -> None:
        """Record that the board has the device id, whose key no service was given."""
        self._doubt()
        record = self._insert if method == NO_SERVICE else self._set
        record(method, self.at)
        self._take_from_others()

    def _take_from_others(self) -> None:
        """Record that no key of another board works as the device."""
        given = f"device {self.device_id} was given to board {self.uuid}"
        self._replace(f"NOT {_OURS}", given)

    def _doubt(self) -> None:
        """Record that the board's keys may have been replaced by one whose answer was lost.

        That one is about to be settled: it is another board's, or this key by another method.
        """
        self.execute(
            "UPDATE registrations SET registered_at = NULL "  # noqa: S608
            f"WHERE device_id = :device_id AND {_LIVE} AND {_OURS} "
            "AND EXISTS (SELECT 1 FROM registrations AS lost "
            "WHERE lost.device_id = :device_id AND lost.replaced_at IS NULL "
            f"AND lost.registered_at IS NULL AND (lost.key = {_KEY} OR NOT lost.{_OURS}))",
            self._values(),
        )

    def _insert(self, method: str, registered_at: object) -> None:
        self.execute(
            "INSERT INTO registrations (key, device_id, method, begun_at, registered_at, "  # noqa: S608
            "replaced_because) SELECT id, :device_id, :method, :at, :registered_at, '' FROM keys "
            f"WHERE {LIVE_KEY} ON CONFLICT DO NOTHING",
            {**self._values(), "method": method, "registered_at": registered_at},
        )

    def _set(self, method: str, registered_at: object) -> None:
        self._insert(method, registered_at)
        self.execute(
            "UPDATE registrations SET method = :method, registered_at = :registered_at "  # noqa: S608
            f"WHERE key = {_KEY} AND device_id = :device_id AND {_LIVE}",
            {**self._values(), "method": method, "registered_at": registered_at},
        )

    def _replace(self, whose: str, because: str) -> None:
        """Replace the other keys of the device; one that is of no device any more retires."""
        others = f"key <> {_KEY} AND device_id = :device_id AND {whose}"
        values = {**self._values(), "because": because}
        self.execute(
            "UPDATE registrations SET replaced_at = :at, replaced_because = :because "  # noqa: S608
            f"WHERE {others} AND {_LIVE}",
            values,
        )
        replaced = (
            "retired_at IS NULL AND id IN (SELECT key FROM registrations "  # noqa: S608
            f"WHERE {others} AND replaced_at = :at AND replaced_because = :because)"
        )
        self.execute(
            "UPDATE keys SET retired_at = :at, retired_because = :because "  # noqa: S608
            f"WHERE {replaced} AND NOT EXISTS ({_LIVE_OF_THE_KEY})",
            values,
        )
        self.execute(
            f"UPDATE keys SET registered_as = COALESCE(({_LATEST}), '') WHERE {replaced}",  # noqa: S608
            values,
        )

    def _values(self) -> dict[str, object]:
        return {
            "device_id": self.device_id,
            "uuid": self.uuid,
            "tag": self.security_tag,
            "at": self.at,
        }
