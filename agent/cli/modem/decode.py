"""`cellagent modem decode`: captured bytes of a modem to one JSON object per thing."""

from __future__ import annotations

import os
import sys
from functools import cache

import click

from agent.cli.framework.command import AgentCommand, emit
from agent.cli.framework.session import identity_keys


@click.command(
    cls=AgentCommand,
    name="decode",
    epilog="Example: cellagent modem decode --command AT+CEREG? < capture.txt",
)
@click.option(
    "--command", "sent", metavar="CMD", help="The command that was sent, if no echo says so."
)
def command(sent: str | None) -> None:
    """Read captured bytes from standard input; print one JSON object per thing on the line.

    Answers, notices, log lines, echoes and prompts are printed as soon as they are complete. A
    line that breaks its grammar has `error` set and no value; what cannot be classified is
    `unknown`. What a modem signed (%KEYGEN, %ATTESTTOKEN) is checked with the profile's
    provisioning.attestation_keys. No port is opened.
    """
    from at.decode import Decoder

    keys = cache(identity_keys)  # the profile is read when something that is signed comes
    decoder = Decoder(sent, lambda answer: keys().check(answer))
    source = sys.stdin.fileno()
    while data := os.read(source, 65536):
        for found in decoder.feed(data):
            emit(found)
    for found in decoder.finish():
        emit(found)
