"""`cellagent provision ca create`: makes a CA for a bench."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shlex import quote

import click

from agent.cli.framework.command import ProfileCommand, agent_command, emit_or_say
from agent.cli.framework.session import Session
from agent.cli.provision.operator_ca import asking_pin, new_passphrase
from agent.config.pkcs11_uri import is_pkcs11, parse_pkcs11
from agent.errors import UsageError
from agent.extras import require
from agent.files.paths import named_path

_LONGEST_NAME = 64  # RFC 5280, ub-common-name
_OPENSC = "/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so"


@agent_command("cellagent provision ca create ~/bench-ca", ProfileCommand)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", default="bench CA", help="Its common name.  [default: bench CA]")
@click.option(
    "--days",
    type=click.IntRange(1, 36500),
    default=7300,
    show_default=True,
    help="Its life in days.",
)
@click.option("--on-token", "uri", metavar="URI", help="Make the key there: a PKCS #11 URI.")
def create(session: Session, folder: Path, name: str, days: int, uri: str | None) -> None:
    """Write ca.pem and ca.key, encrypted, into FOLDER; say how the profile names them.

    The passphrase is asked for, or read from CELLAGENT_DEVICE_CA_PASSPHRASE. On a token, the key
    never leaves it: there is no ca.key, and the PIN is asked for, or read as for a run.
    """
    from agent.provisioning.ca.bench_ca import create_ca

    if not 0 < len(name) <= _LONGEST_NAME:
        raise UsageError(f"--name: write 1 to {_LONGEST_NAME} characters")
    now, life = datetime.now(UTC), timedelta(days=days)
    where = named_path(folder).absolute()
    if uri is None:
        passphrase = partial(new_passphrase, session.configuration)
        certificate, file = create_ca(where, name, passphrase, now, life)
        key, kept = str(file), f"{file}: its key, encrypted; readable by you alone"
    else:
        certificate = _on_token(session, where, name, uri, now, life)
        key, kept = uri, "its key is on the token, and never leaves it"
    emit_or_say(
        session,
        {"certificate": str(certificate), "key": key},
        f"{certificate}: the CA's certificate",
        kept,
        f"next: cellagent config set provisioning.device_ca_file {quote(str(certificate))}",
        f"      cellagent config set provisioning.device_ca_key_file {quote(key)}",
    )


def _on_token(
    session: Session, folder: Path, name: str, uri: str, now: datetime, life: timedelta
) -> Path:
    if not is_pkcs11(uri):
        raise UsageError(
            "--on-token takes a PKCS #11 URI, which begins with pkcs11:",
            hint="`cellagent provision ca create ~/bench-ca --on-token "
            f"'pkcs11:token=bench;object=device-ca?module-path={_OPENSC}'`",
        )
    named = parse_pkcs11(uri, "--on-token")
    require("a device CA's key on a token", "pkcs11")
    from agent.provisioning.ca.bench_ca import create_ca_on_token

    return create_ca_on_token(
        folder, name, named, asking_pin(session.configuration, named), now, life
    )
