"""`cellagent modem check`: the modem's identity, firmware verdict and state."""

from agent.cli.framework.command import agent_command, emit, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import say_marked, waiting
from agent.cli.modem.why import as_objects, show
from agent.errors import AgentError, RefusedByRule
from at.checkup import Check, application_checks, check_modem, firmware_check

# A kit that is off was not asked to work, and one that tells nothing may be no cellular one.
_NEUTRAL = {"modem-off", "nothing-found"}


@agent_command("cellagent modem check --port /dev/ttyACM0")
async def command(session: Session) -> int:
    """Show what the modem is, whether its firmware may make device calls, and its state.

    Changes nothing on the modem. What keeps it from its work is told as `modem why` tells it. Exits
    with 4 where the firmware is refused, with 1 where the kit is on and has no network or address.
    """
    from at.causes.live import causes_of_modem
    from at.firmware_gate import read_verdict

    async with session.modem() as modem:
        verdict = await read_verdict(modem)
        async with waiting("asking the modem what it does", session):
            causes = await causes_of_modem(modem)  # a search that just began gets its time
        checks = [
            Check("dialect", modem.dialect.value, modem.dialect.value),
            Check("terminator", modem.terminator.value, modem.terminator.value),
            firmware_check(verdict),
            *await application_checks(modem),
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
                    "causes": as_objects(causes, session),
                }
            )
        else:
            _show(modem.name, checks, session)
            if causes[0].is_trouble:
                show(causes, session)
    if not verdict.allowed:
        return RefusedByRule.exit_code
    found = {one.cause for one in causes}
    if "no-ip" in found:
        return AgentError.exit_code
    registration = next(check for check in checks if check.name == "registration")
    return 0 if registration.ok or found <= _NEUTRAL else AgentError.exit_code


def _show(port: str, checks: list[Check], session: Session) -> None:
    say(f"{port} answers AT")
    for check in checks:
        mark = {True: "ok", False: "NO", None: ""}[check.ok]
        say_marked(f"  {mark:2}  {check.name.replace('_', ' '):16} {check.shown}")
        if check.hint and check.ok is not True:
            say(f"        try: {pasteable_hint(check.hint, check.shown, session)}")
