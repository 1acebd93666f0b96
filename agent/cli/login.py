"""`cellagent login`: secrets are asked for, tried at their service, and kept."""

import shlex
import sys

import click

from agent.cli.framework.command import agent_command, emit, note, note_reload, say
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import ended_by_ctrl_c, waiting
from agent.config.nearest import nearest_key
from agent.errors import AgentError, CredentialError, Unavailable, UsageError, with_hint

_NAMES = ("api_key", "organization_token", "project_key", "user_api_key", "user_password")
_LONGEST = 64 * 1024


class _Name(click.Choice[str]):
    """The name of a secret. What is none may be the secret itself, and is not repeated."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raises UsageError; as click does where it is nearly a name."""
        if value in self.choices or ("=" not in value and nearest_key(value, _NAMES)):
            return super().convert(value, param, ctx)
        raise UsageError(
            "a secret is no argument of a command",
            hint=f"`cellagent login {nearest_key(value.partition('=')[0], _NAMES) or _NAMES[0]}` "
            "asks for it",
        )


@agent_command("cellagent login --profile public api_key")
@click.argument("names", nargs=-1, type=_Name(_NAMES), metavar="[SECRET]...")
@click.option("--keyring", is_flag=True, help="Keep them in the keyring, not in the 0600 file.")
async def command(session: Session, names: tuple[str, ...], *, keyring: bool) -> int:
    """Ask for secrets of the profile, try each at its service, and keep those that it accepts.

    SECRET is api_key, organization_token, project_key, user_api_key or user_password; without one
    all but the password are asked for, and an empty answer leaves one out. Where standard input is
    no terminal it has a line `NAME=VALUE` for each, or the value alone of the only SECRET. Exits
    with 5 where one was refused, with 6 where one could not be tried: that one is kept.
    """
    from agent.config.secrets import SECRETS, usable_secret
    from agent.wiring.secret_trials import TRIALS, try_secret

    configuration = session.configuration
    hosts = configuration.profile.hosts
    if not any(getattr(hosts, TRIALS[name].host) for name in _NAMES):
        raise UsageError(
            f"profile {configuration.name} names no service to log in to",
            hint="`cellagent login --profile public`, or `cellagent config list`",
        )
    values = _asked(names or _NAMES[:-1]) if sys.stdin.isatty() else _read(names)
    if not values:
        raise UsageError("no secret was given", hint=f"one of: {', '.join(names or _NAMES)}")
    code, changed = 0, False
    for name, text in values.items():
        usable_secret(text, SECRETS[name], name)
        profile = f"--profile {shlex.quote(configuration.name)}"
        opens = [f"cellagent {each} {profile}" for each in TRIALS[name].opens]
        accepted: bool | None = True
        says = "accepted"
        try:
            async with waiting(f"asking the service about {name}", session):
                await try_secret(configuration, name, text)
        except Unavailable as error:
            accepted, says = None, with_hint(f"not tried: {error}", error.hint)
            code = code or error.exit_code
        except AgentError as error:
            # What a credential's error advises is how to replace one that is kept.
            refused = isinstance(error, CredentialError)
            accepted, says = False, str(error) if refused else with_hint(str(error), error.hint)
            code = error.exit_code
        kept = _keep(configuration.name, name, text, keyring) if accepted is not False else None
        changed |= kept is not None
        if session.json:
            emit({"secret": name, "accepted": accepted, "kept": kept, "says": says,
                  "opens": opens if kept else []})  # fmt: skip
            continue
        say(f"{name}: {says}" + (f"; kept in {kept}" if kept else "; not kept"))
        for line in opens if kept else ():
            say(f"  {'now works' if accepted else 'to try it'}: {line}")
        if kept and (preceding := configuration.secrets.preceding(name, in_keyring=keyring)):
            note(f"{preceding.where} takes precedence over it while it is set")
            if preceding.kind == "file":
                note(f"  try: `cellagent config unset {name} {profile}`")
    if changed:
        note_reload(configuration.name)
    return code


def _keep(profile: str, name: str, value: str, keyring: bool) -> str:
    from agent.config.write import set_secret, set_value

    if not keyring:
        return str(set_secret(name, value, profile=profile))
    from agent.config.secrets import keep_in_keyring

    keep_in_keyring(f"{profile}:{name}", value)
    set_value("credentials.keyring", "true", profile=profile)
    return "the keyring"


def _asked(names: tuple[str, ...]) -> dict[str, str]:
    """Ask a person for each; what is typed is not shown."""
    from agent.cli.framework.silent_terminal import typed_secret
    from agent.config.secrets import SECRETS

    answers = {name: typed_secret(f"{name}, {SECRETS[name].about}: ") for name in names}
    return {name: text.strip() for name, text in answers.items() if text.strip()}


def _read(names: tuple[str, ...]) -> dict[str, str]:
    """Return the secrets of standard input. Raises UsageError, which shows none of it."""
    with ended_by_ctrl_c():
        text = sys.stdin.read(_LONGEST)
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        if equals and name.strip() in (names or _NAMES):
            found[name.strip()] = value.strip()
        elif len(names) == 1 and line.strip():
            found[names[0]] = line.strip()
        elif line.strip():
            raise UsageError(
                f"line {number} of standard input is no NAME=VALUE of a secret",
                hint=f"NAME is one of: {', '.join(names or _NAMES)}",
            )
    return {name: value for name, value in found.items() if value}
