"""`cellagent modem decode`: captured bytes of a modem to one JSON object per thing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit
from agent.cli.framework.session import Session

if TYPE_CHECKING:
    from at.tokens.attestation import Signed


@agent_command("cellagent modem decode --command AT+CEREG? < capture.txt", OfflineCommand)
@click.option(
    "--command", "sent", metavar="CMD", help="The command that was sent, if no echo says so."
)
def command(session: Session, sent: str | None) -> None:
    """Read captured bytes from standard input; print one JSON object per thing on the line.

    Answers, notices, log lines, echoes and prompts are printed as soon as they are complete. A
    line that breaks its grammar has `error` set and no value; what cannot be classified is
    `unknown`. What a modem signed (%KEYGEN, %ATTESTTOKEN) is checked with the profile's
    provisioning.attestation_keys. No port is opened.
    """
    from at.decode import Decoder

    def check(one: Signed) -> Signed:  # the profile is read when something that is signed comes
        return session.identity_keys.check(one)

    decoder = Decoder(sent, check)
    source = sys.stdin.fileno()
    while data := os.read(source, 65536):
        for found in decoder.feed(data):
            emit(found)
    for found in decoder.finish():
        emit(found)
