"""Hints that can be pasted: with the profile and the port of the command that failed."""

from __future__ import annotations

import re
import shlex

from agent.cli.framework.session import Session

_TO_THE_PROFILE = re.compile(
    r"(?<=`)cellagent (?:config (?:set|unset)|login)(?![^`]*--profile)[^`]*"
)


def pasteable_hint(hint: str, session: Session) -> str:
    """Return a hint whose commands name the profile and the port that this one was given.

    One that sends people to the profile names it in any case.
    """
    from agent.daemon.status import pasteable

    if "loaded" in vars(session):
        hint = _TO_THE_PROFILE.sub(rf"\g<0> --profile {shlex.quote(session.loaded.name)}", hint)
    return pasteable(named(hint, session), session.profile_name or "", session.port or "")


def named(text: str, session: Session) -> str:
    """Return a text with the name of the profile that it speaks of."""
    if "loaded" in vars(session):  # what does not read the profile has nothing to say of it
        return re.sub(r"\bthe profile\b", lambda _: f"profile {session.loaded.name}", text)
    return text


def hold_hint() -> str:
    """Return the hint for a port that the running agent may hold, "" where none runs."""
    from agent.config.paths import state_dir
    from agent.config.trusted_places import UntrustedPlace
    from agent.daemon.control.socket import control_sockets

    try:
        runs = any(control_sockets(state_dir()))
    except UntrustedPlace:
        runs = False
    if not runs:
        return ""
    return (
        "if `cellagent run` has it: try again, or `cellagent hold -- COMMAND` lets COMMAND have it"
    )
