"""The credentials in a kit's security tag: known once they were seen, told when they vanish."""

from collections.abc import Sequence
from contextlib import suppress

from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import Finding
from agent.errors import AgentError
from at.commands.credentials import CredentialType, ListCredentials
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected, ParseError

_NAMES = {
    CredentialType.ROOT_CA: "the CA certificate",
    CredentialType.CLIENT_CERTIFICATE: "the device's certificate",
    CredentialType.CLIENT_PRIVATE_KEY: "the private key",
}


class KitCredentials:
    """Lists them at the first contact, after each restart, and while some are gone."""

    def __init__(self, store: KitStore) -> None:
        self._store = store
        self._is_due = True
        self.findings: tuple[Finding, ...] = ()

    def expect_loss(self) -> None:
        """List them at the next check: the kit restarted, or is another's for a while."""
        self._is_due = True

    async def check(self, modem: Modem, security_tag: int) -> None:
        """List the credentials in the tag, if they may have changed; set what is gone.

        Raises LinkLost, CommandTimeout. A modem that does not list them says nothing.
        """
        if not self._is_due and not self.findings:
            return
        known = self._store.record.credentials.get(security_tag, ())
        try:
            found = await _listed(modem, security_tag)
            if not found.issuperset(known):
                # A row that the application printed into is in no list: it is in the next.
                found |= await _listed(modem, security_tag)
        except (CommandRejected, ParseError):
            return
        self._is_due = False
        with suppress(AgentError):  # the disk is full: they are seen again
            every = {
                **self._store.record.credentials,
                security_tag: tuple(sorted({*known, *found})),
            }
            self._store.update(credentials=every)
        self.findings = _findings(security_tag, sorted({*known} - found))


async def _listed(modem: Modem, security_tag: int) -> set[int]:
    """Return the types of the credentials that the modem lists. Raises AtError."""
    listed = await modem.send(ListCredentials(security_tag))
    return {item.type for item in listed.credentials if item.sec_tag == security_tag}


def _findings(security_tag: int, gone: Sequence[int]) -> tuple[Finding, ...]:
    if not gone:
        return ()
    kinds = {kind.value: name for kind, name in _NAMES.items()}
    names = ", ".join(kinds.get(kind, f"the item of type {kind}") for kind in gone)
    is_one = len(gone) == 1
    return (
        Finding(
            f"{names} {'is' if is_one else 'are'} gone from security tag {security_tag},"
            f" where this agent saw {'it' if is_one else 'them'} before: after an update of the"
            " modem's firmware, a loss of power while it wrote, or a deletion",
            f"provision it again: `cellagent provision run --security-tag {security_tag}`, with"
            " --rekey where a ledger knows its lost key",
        ),
    )
