"""The credential store of a claimed board: what it is to hold goes through the service.

The service is given a command, the kit takes it, with this host's help, and the service tells what
came of it. A run that was cut off left at most one command waiting: the next one takes that up, and
ends the session in which the kit may still wait for the run before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.errors import DeadlineExceeded
from agent.json_value import JSONValue, object_in
from agent.provisioning.boards.board import HeldCredential, MadeKey, WrongAnswer
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.running.steps.provisioning_commands import (
    PENDING,
    SUCCEEDED,
    CreateProvisioningCommand,
    FetchProvisioningCommand,
    ListProvisioningCommands,
)
from at.commands.credentials import CredentialType

if TYPE_CHECKING:
    from agent.http import HttpClient
    from agent.provisioning.boards.modem_board import ModemBoard

_KINDS = {
    CredentialType.ROOT_CA: "serverCertificate",
    CredentialType.CLIENT_CERTIFICATE: "clientCertificate",
}
_REQUEST = "certificateSigningRequest"
_KEY_USAGE = "101010000"  # as the service's own tools ask for it
_FINISHED = "finished"
_TOKEN_LIFE_S = 60
_PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Between looks at a command that the kit has answered: the service may take a moment."""


@dataclass(slots=True)
class CommandedStore:
    """Credentials of the board behind `board`, written by commands of the provisioning service."""

    board: ModemBoard
    client: HttpClient
    uuid: str
    _has_commanded: bool = field(default=False, init=False)

    async def credentials(self) -> Sequence[HeldCredential]:
        """Return the list of the credential store, as the modem gives it."""
        return await self.board.credentials()

    async def delete(self, tag: int, kind: int) -> None:
        """Delete a credential, over the cable: no command of the service is known that does."""
        await self.board.delete(tag, kind)

    async def write(self, tag: int, kind: int, content: str) -> None:
        """Have the kit write a certificate. Raises WrongAnswer, ProvisioningFailed."""
        name = _KINDS[CredentialType(kind)]
        await self._carried_out({name: {"content": content, "secTag": tag}})

    async def make_key(self, tag: int) -> MadeKey:
        """Have the kit make a key; return it once the kit has signed with it here.

        Raises WrongAnswer, ProvisioningFailed.
        """
        asked: dict[str, JSONValue] = {"attributes": "", "keyUsage": _KEY_USAGE, "secTag": tag}
        said = await self._carried_out({_REQUEST: asked})
        # The service names it "csr"; "message" was seen, too.
        text = said.get("csr") or said.get("message")
        if not isinstance(text, str):
            raise WrongAnswer("the service has an answer of the kit without a certificate request")
        made = await self.board.judged_key(text, tag)
        token = await self.board.token("", _TOKEN_LIFE_S, tag)
        if token.kid != key_fingerprint(made.public_pem):
            raise WrongAnswer(
                f"the service has the request of another key than that in tag {tag} of this kit",
                hint="a stand-in that plays the device answers so: has this kit its address?",
            )
        return made

    async def finish(self) -> None:
        """Tell the kit's client that this was all, if it was given commands."""
        if self._has_commanded:
            await self._carried_out({_FINISHED: {}})

    async def _carried_out(self, command: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Return what the kit answered to a command. Raises WrongAnswer, DeadlineExceeded."""
        every = await self.client.send(ListProvisioningCommands(self.uuid))
        listed = [one for one in every if one.status in PENDING]
        was_left, self._has_commanded = bool(listed) and not self._has_commanded, True
        waiting = next((one for one in listed if dict(one.request) == command), None)
        if waiting is None:
            new = CreateProvisioningCommand(self.uuid, command, description="cellagent")
            waiting = await self.client.send(new)
        # Behind the service's answers, which may take long: another kit's client sets its mode.
        await self.board.require_same("the start of its provisioning client")
        await self.board.take_commands(was_left=was_left)
        (kind,) = command
        for pause_s in _PAUSES_S:
            await asyncio.sleep(pause_s)
            done = await self.client.send(FetchProvisioningCommand(self.uuid, waiting.id))
            if done.status not in PENDING:
                break
        else:
            raise DeadlineExceeded(f"the service has no answer of the kit to its {kind}")
        answer = object_in(done.response, kind)
        if done.status != SUCCEEDED:
            why = ", ".join(f"{name} {value}" for name, value in answer.items())
            raise WrongAnswer(
                f"the kit did not carry out the {kind} of the service ({done.status}"
                + (f": {why})" if why else ")")
            )
        return answer
