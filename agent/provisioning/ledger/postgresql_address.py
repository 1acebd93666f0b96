"""The address of a ledger on PostgreSQL: checked before it is used, and shown without secrets."""

import psycopg

from agent.errors import UsageError

_LOOPBACK = {"", "localhost", "127.0.0.1", "::1"}


def checked_address(address: str) -> str:
    """Return the address as the driver takes it, if it is safe. Raises UsageError."""
    scheme, _, rest = address.partition("://")
    kind = scheme.partition("+")[0]
    if kind not in {"postgresql", "postgres"}:
        raise UsageError(
            f"a shared ledger is PostgreSQL, not {kind}",
            hint="write postgresql://user@host/database, or a path for SQLite",
        )
    try:
        parts = psycopg.conninfo.conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.Error as error:
        # Its message repeats parts of the address.
        raise UsageError(f"{shown(address)} is no ledger address") from error
    if "password" in parts:
        raise UsageError(
            "the ledger's address holds a password, which every user of this host could read",
            hint="take it out; it comes from the environment: CELLAGENT_LEDGER_PASSWORD",
        )
    # A host in the query is a socket's folder, or a name: both are judged like one in the address.
    hosts = ",".join(str(parts.get(name, "")) for name in ("host", "hostaddr")).split(",")
    remote = [host for host in hosts if host not in _LOOPBACK and not host.startswith("/")]
    if remote and parts.get("sslmode") != "verify-full":
        raise UsageError(
            f"the ledger on {remote[0]} would be reached without a verified connection",
            hint="add ?sslmode=verify-full (and sslrootcert=FILE) to its address",
        )
    return f"postgresql://{rest}"


def shown(address: str) -> str:
    """Return an address without its user part and its query, which may hold a secret."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(f"postgresql://{address.partition('://')[2]}")
    except psycopg.Error:
        return "postgresql://…"
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
