"""`cellagent provision migrate`: brings the ledger of an older version up to date."""

from agent.cli.framework.command import ProfileCommand, agent_command, emit, note, say
from agent.cli.framework.session import Session
from agent.cli.provision.profile_ledger import ledger_address


@agent_command("cellagent provision migrate", ProfileCommand)
def command(session: Session) -> None:
    """Bring the ledger up to date. It is refused, and nothing changed, while a station is at work.

    `provision run` does the same to a ledger in a file, never to one that stations share.
    """
    from agent.provisioning.ledger import migrate_ledger

    address, password = ledger_address(session.configuration)
    done = migrate_ledger(address, password=password)
    if session.json:
        emit(
            {
                "before": done.before,
                "now": done.now,
                "copy": str(done.copy) if done.copy is not None else None,
                "connected": list(done.others),
            }
        )
        return
    if done.before == done.now:
        say(f"the ledger is up to date (schema {done.now})")
    elif done.before is None:
        say(f"the ledger was empty: its tables were made (schema {done.now})")
    else:
        say(f"the ledger went from schema {done.before} to schema {done.now}")
    if done.copy is not None:
        say(f"as it was: {done.copy}")
    if done.others and done.before != done.now:
        note(f"connected meanwhile: {', '.join(done.others)}; a station that was is started again")
