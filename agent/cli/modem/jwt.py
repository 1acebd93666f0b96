"""`cellagent modem jwt`: a token signed by the modem, shown decoded."""

import time

import click

from agent.cli.framework.command import agent_command, emit_or_say
from agent.cli.framework.session import Session
from at.commands.jwt import NO_TIME, MakeJwt
from at.driver.modem import Modem
from at.tokens.jwt import Jwt


@agent_command("cellagent modem jwt --port /dev/ttyACM0 --sub my-device --exp 600")
@click.option("--sub", "subject", default="", metavar="TEXT", help="The `sub` claim.")
@click.option("--aud", "audience", default="", metavar="TEXT", help="The `aud` claim.")
@click.option(
    "--exp",
    "life_s",
    type=click.IntRange(min=0, max=2**31 - 1),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Life of the token; 0 makes one that never expires.",
)
@click.option(
    "--tag",
    "sec_tag",
    type=click.IntRange(min=0, max=2**31 - 1),
    metavar="N",
    help="Sign with the private key under this tag, not with the device's identity key.",
)
@click.option(
    "--key-type",
    type=click.Choice(["2", "8"]),
    default="2",
    show_default=True,
    help="With --tag: 2 client private key, 8 endorsement key.",
)
@click.option("--show-token", is_flag=True, help="Print the token itself, too: it is a secret.")
async def command(
    session: Session,
    subject: str,
    audience: str,
    life_s: int,
    sec_tag: int | None,
    key_type: str,
    show_token: bool,
) -> None:
    """Make a JWT in the modem and print its claims; the token itself is not printed.

    Needs modem firmware 1.3.0 and a modem that knows the time: else a token would never expire.
    """
    from at.firmware_gate import require_firmware

    request = MakeJwt(subject, audience, life_s or None, sec_tag, int(key_type))
    request.encode()  # raises for a value that cannot be sent, before a port is opened
    async with session.modem() as modem:
        await require_firmware(modem)
        if request.exp_delta_s:
            await check_time(modem)
        token = await modem.send(request)
    fields = token.to_json() | ({"token": token.token} if show_token else {})
    last = token.token if show_token else "The token is a secret; --show-token prints it."
    emit_or_say(session, fields, *describe(token), last)
    if request.exp_delta_s:
        # Only here: it takes a fifth of a second to import.
        from agent.auth.modem_jwt import check_begun, check_claims

        now = time.time()
        check_claims(token, now=now)
        check_begun(token, now=now)


async def check_time(modem: Modem) -> None:
    """Raise NoModemTime unless the modem knows the time."""
    from at.commands.clock import ReadClock
    from at.protocol.errors import CommandRejected, NoModemTime

    try:
        is_set = (await modem.send(ReadClock())).is_set
    except CommandRejected:
        is_set = False
    if not is_set:
        raise NoModemTime(
            "the modem does not know the time, so its token would never expire or not be valid",
            hint=NO_TIME,
        )


def describe(token: Jwt) -> list[str]:
    """Return header and claims as lines for a person."""
    lines = [f"{name:<5} {value}" for name, value in (token.header | token.claims).items()]
    if token.expires_at is not None:
        lines.append(f"expires {token.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    else:
        lines.append("never expires")
    lines.append(f"signature: {token.reason}")
    return lines
