"""A ledger of 100,000 boards exported: memory, and time beside rows read by the driver alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.provisioning.ledger import open_ledger
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "ledger"
MOST_MB = 50.0
TIMES_THE_DRIVER = 4.0
PEM = "-----BEGIN CERTIFICATE-----\n" + "MIIB" * 160 + "\n-----END CERTIFICATE-----\n"
AT = "2026-03-31T06:00:00.000000+00:00"
# Parameters: the number of the first board, and of the one behind the last.
NUMBERS = "WITH RECURSIVE n(n) AS (SELECT {0} UNION ALL SELECT n + 1 FROM n WHERE n < {1})"
ROWS = {
    "boards": {
        "uuid": "{uuid}", "imei": "'350457790000000'", "device_id": "{uuid}", "serial": "'1'",
        "usb_place": "'1-1.4'", "slot": "'A1'", "firmware": "'mfw_nrf91x1_2.0.4'",
        "station": "'bench'", "outcome": "'done'", "reason": "''", "writes": "3",
        "updated_at": f"'{AT}'", "last_outcome": "'done'", "made_at": f"'{AT}'",
        "attestation": f"'{PEM}'",
    },
    "keys": {
        "uuid": "{uuid}", "security_tag": "16842753", "public_key": f"'{PEM}'", "key_digest": "''",
        "certificate": f"'{PEM}'", "certificate_serial": "'1F'", "registered_key": "''",
        "registered_as": "''", "request_id": "''", "made_at": f"'{AT}'", "retired_because": "''",
    },
    "runs": {
        "id": "{uuid}", "uuid": "{uuid}", "imei": "''", "device_id": "{uuid}", "serial": "''",
        "usb_place": "''", "slot": "'A1'", "port": "''", "station": "'bench'", "operator": "''",
        "lot": "'L1'", "product": "''", "cellagent": "'1'", "firmware": "''",
        "began_at": f"'{AT}'", "ended_at": f"'{AT}'", "outcome": "'done'", "step": "'proof'",
        "exit": "0", "reason_code": "''", "reason": "''", "consent": "''", "writes": "3",
        "timings": """'{{"key": 3.5, "proof": 0.5}}'""",
    },
}  # fmt: skip
# Tells, at its end, what memory a program had. VmHWM: ru_maxrss is carried over from whoever
# started it.
PEAK = """
import atexit, sys
def peak():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    sys.stderr.write("peak " + line.split()[1] + "\\n")
atexit.register(peak)
"""
OURS = """
import runpy
sys.argv[0] = "agent"
runpy.run_module("agent", run_name="__main__", alter_sys=True)
"""
# Every board and its key, all columns, as JSON lines: what any program would need at least.
CONTROL = """
import json, sys
address = sys.argv[1]
QUERY = ("SELECT boards.*, keys.* FROM boards JOIN keys ON keys.uuid = boards.uuid "
         "ORDER BY boards.uuid")
if address.startswith("postgresql"):
    import psycopg
    with psycopg.connect(address) as connection, connection.cursor("all") as cursor:
        for row in cursor.execute(QUERY):
            sys.stdout.write(json.dumps(row, default=str) + "\\n")
else:
    import sqlite3
    for row in sqlite3.connect(address).execute(QUERY):
        sys.stdout.write(json.dumps(row) + "\\n")
"""


def run(smoke: bool) -> Iterator[Row]:
    number = 2_000 if smoke else 100_000
    with tempfile.TemporaryDirectory() as name:
        yield from measured(Path(name), "SQLite", str(Path(name) / "ledger.sqlite"), number)
        try:
            with postgres_if_there() as server:
                address = server.new_database("boards")
                yield from measured(Path(name), "PostgreSQL", address, number)
        except PostgresMissing as missing:
            yield Row("PostgreSQL", 0.0, "MB", skipped=str(missing))


def measured(folder: Path, what: str, address: str, number: int) -> Iterator[Row]:
    open_ledger(address, "bench").close()
    fill(address, number)
    settings = folder / "config.toml"
    settings.write_text(f'profile = "bench"\n[profiles.bench.provisioning]\nledger = "{address}"\n')
    settings.chmod(0o600)
    environment = {
        **os.environ,
        "CELLAGENT_CONFIG": str(settings),
        "CELLAGENT_STATE_DIR": str(folder / "state"),
    }
    driver_s, driver_mb = process(CONTROL, [address], environment, number)

    def ours(*command: str, lines: int) -> tuple[float, float]:
        return process(OURS, ["provision", *command], environment, lines)

    _, idle_mb = ours("status", "--limit", "1", "--json", lines=1)
    for words, lines in (
        ("export --as json", number),
        ("export --as csv", number + 1),
        ("status --json", number),
        ("export --since 0", 3 * number + 1),
        ("report --json", 1),
    ):
        took_s, peak_mb = ours(*words.split(), lines=lines)
        title = f"{what}, {words} of {number} boards"
        controls = f"of one board {idle_mb:.0f} MB, the driver alone {driver_mb:.0f} MB"
        yield Row(title, peak_mb, "MB", MOST_MB, controls)
        if words == "export --as json":
            yield Row(title, took_s, "s", driver_s * TIMES_THE_DRIVER,
                      f"the driver alone {driver_s:.2f} s")  # fmt: skip


def process(
    code: str, arguments: list[str], environment: dict[str, str], lines: int
) -> tuple[float, float]:
    """Run code that writes so many lines; return its seconds, and its largest memory in MB."""
    command = [sys.executable, "-c", PEAK + code, *arguments]
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said) as child,
    ):
        assert child.stdout is not None
        found = sum(1 for _ in child.stdout)
        code_of_exit, took_s = child.wait(), time.perf_counter() - started
        said.seek(0)
        last = said.read().splitlines()[-1]
    assert (code_of_exit, found) == (0, lines), last
    return took_s, int(last.removeprefix("peak ")) / 1024


def fill(address: str, number: int) -> None:
    """Write boards, each with a key and a run."""
    shared = address.startswith("postgresql")
    hex_ = "to_hex(n)" if shared else "printf('%x', n)"
    uuid = f"('50503041-3633-4261-803d-' || substr('000000000000' || {hex_}, -12))"
    if shared:
        uuid = f"('50503041-3633-4261-803d-' || lpad({hex_}, 12, '0'))"
    statements = [
        f"INSERT INTO {table} ({', '.join(row)}) {NUMBERS.format(1, number)} "
        f"SELECT {', '.join(value.format(uuid=uuid) for value in row.values())} FROM n"
        for table, row in ROWS.items()
    ]
    if shared:
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
    else:
        import sqlite3

        with sqlite3.connect(address) as file:
            for statement in statements:
                file.execute(statement)
