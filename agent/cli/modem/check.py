"""`cellagent modem check`: the modem's identity, firmware verdict and state."""

from __future__ import annotations

import click

from agent.cli.framework.command import AgentCommand, emit, say
from agent.cli.framework.session import Session
from agent.errors import RefusedByRule
from at.checkup import Check, check_modem, firmware_check


@click.command(
    cls=AgentCommand,
    name="check",
    epilog="Example: cellagent modem check --port /dev/ttyACM0",
)
async def command(session: Session) -> int:
    """Show what the modem is, whether its firmware may make device calls, and its state.

    Changes nothing on the modem. Exits with 4 where the firmware is refused.
    """
    from at.firmware_gate import read_verdict

    async with session.modem() as modem:
        verdict = await read_verdict(modem)
        checks = [
            Check("dialect", modem.dialect.value, modem.dialect.value),
            Check("terminator", modem.terminator.value, modem.terminator.value),
            firmware_check(verdict),
            *await check_modem(modem),
        ]
        if session.json:
            emit(
                {
                    "port": modem.name,
                    "allowed": verdict.allowed,
                    "reason": verdict.reason or None,
                    "note": verdict.note or None,
                    **{check.name: check.value for check in checks},
                }
            )
        else:
            _show(modem.name, checks)
    return 0 if verdict.allowed else RefusedByRule.exit_code


def _show(port: str, checks: list[Check]) -> None:
    say(f"{port} answers AT")
    for check in checks:
        mark = {True: "ok", False: "NO", None: ""}[check.ok]
        say(f"  {mark:2}  {check.name.replace('_', ' '):16} {check.shown}")
        if check.hint and check.ok is not True:
            say(f"        try: {check.hint}")
