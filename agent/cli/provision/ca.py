"""`cellagent provision ca create`: makes a CA for a bench."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from agent.cli.framework.command import ProfileCommand, agent_command, emit_or_say
from agent.cli.framework.session import Session
from agent.cli.provision.operator_ca import new_passphrase

_LONGEST_NAME = 64  # RFC 5280, ub-common-name


@agent_command("cellagent provision ca create ~/bench-ca", ProfileCommand)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", default="bench CA", help="Its common name.  [default: bench CA]")
@click.option(
    "--days", type=click.IntRange(1, 36500), default=7300, help="Its life.  [default: 7300]"
)
def create(session: Session, folder: Path, name: str, days: int) -> None:
    """Write ca.pem and ca.key, encrypted, into FOLDER; say how the profile names them.

    The passphrase is asked for, or read from CELLAGENT_DEVICE_CA_PASSPHRASE.
    """
    from agent.errors import UsageError
    from agent.provisioning.ca.bench_ca import create_ca

    if not 0 < len(name) <= _LONGEST_NAME:
        raise UsageError(f"--name: write 1 to {_LONGEST_NAME} characters")
    passphrase = new_passphrase(session.configuration)
    life = timedelta(days=days)
    where = folder.expanduser().absolute()
    certificate, key = create_ca(where, name, passphrase, datetime.now(UTC), life)
    emit_or_say(
        session,
        {"certificate": str(certificate), "key": str(key)},
        f"{certificate}: the CA's certificate",
        f"{key}: its key, encrypted; readable by you alone",
        f"next: cellagent config set provisioning.device_ca_file {certificate}",
        f"      cellagent config set provisioning.device_ca_key_file {key}",
    )
