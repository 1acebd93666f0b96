"""`cellagent modem decode`: captured bytes of a modem to one JSON object per thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click

from agent.cli.framework.command import OfflineCommand, agent_command, emit
from agent.cli.framework.saved_text import read_pieces
from agent.cli.framework.session import Session

if TYPE_CHECKING:
    from at.tokens.attestation import Signed


@agent_command("cellagent modem decode capture.txt --command 'AT+CEREG?'", OfflineCommand)
@click.argument("source", metavar="[FILE|-]", type=click.File("rb"), default="-")
@click.option(
    "--command", "sent", metavar="CMD", help="The command that was sent, if no echo says so."
)
def command(session: Session, source: BinaryIO, sent: str | None) -> None:
    """Read captured bytes from FILE or standard input; print one JSON object per thing on the line.

    Answers, notices, log lines, echoes and prompts are printed as soon as they are complete. A
    line that breaks its grammar has `error` set and no value; what cannot be classified is
    `unknown`. What a modem signed (%KEYGEN, %ATTESTTOKEN) is checked with the profile's
    provisioning.attestation_keys. No port is opened.
    """
    from at.decode import Decoder

    def check(one: Signed) -> Signed:  # the profile is read when something that is signed comes
        return session.identity_keys.check(one)

    decoder = Decoder(sent, check)
    for data in read_pieces(source):
        for found in decoder.feed(data):
            emit(found)
    for found in decoder.finish():
        emit(found)
