"""Secrets of the bench that must not be found anywhere but in their files."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.keys.operator_ca import make_ca

SECRETS = {
    "CELLAGENT_DEVICE_CA_PASSPHRASE": "canary-passphrase",
    "CELLAGENT_LEDGER_PASSWORD": "canary-ledger-password",
}


def canaries_found(folder: Path, verbosities: list[str]) -> int:
    """Run the whole bench with canary secrets; return how many of them can be found anywhere."""
    folder.mkdir()
    make_ca(folder, password=SECRETS["CELLAGENT_DEVICE_CA_PASSPHRASE"].encode())
    environment = {
        **os.environ,
        **SECRETS,
        "CELLAGENT_CONFIG": str(folder / "config" / "config.toml"),
        "CELLAGENT_STATE_DIR": str(folder / "state"),
        "CELLAGENT_PROFILE": "canary",
    }
    agent = (sys.executable, "-m", "agent")
    serve = (*agent, "cloud", "serve", "--write-profile", "canary")
    server = subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, stderr=-3, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        for key, file in (("device_ca_file", "ca.pem"), ("device_ca_key_file", "ca.key")):
            setting = (f"provisioning.{key}", str(folder / file))
            subprocess.run(
                [*agent, "config", "set", *setting], env=environment, check=True, stdout=-3
            )
        said = b""
        for number, verbosity in enumerate(verbosities):
            port = f"virtual:{folder / f'kit{number}.json'}"
            transcript = folder / f"{number}.transcript"
            run = ("provision", "run", "--set-clock", "--host-key", *verbosity.split())
            record = ("modem", "record", str(transcript), "--port", port, "--")
            commands = [
                (*agent, *record, *agent, *run, "--json"),
                (*agent, "provision", "status", "--json", *verbosity.split()),
                (*agent, "provision", "export", *verbosity.split()),
                (*agent, "provision", "export", "--as", "bulk", *verbosity.split()),
            ]
            for command in commands:
                said += watched(command, environment)
            said += transcript.read_bytes()
        said += (folder / "state" / "ledger.sqlite").read_bytes()
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()
    keys = "".join(path.read_text() for path in (folder / "state" / "keys").iterdir())
    secrets = [*SECRETS.values(), ready["credentials"]["api_key"]]
    secrets += [line for line in keys.splitlines() if "-----" not in line]
    assert len(secrets) > 5, "no key was made"
    return sum(secret.encode() in said for secret in secrets)


def watched(command: tuple[str, ...], environment: dict[str, str]) -> bytes:
    """Run a command; return all that it printed, and the process list as it was meanwhile."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=-3
        )
        listed = b""
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    listed += path.read_bytes()
            time.sleep(0.05)
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise RuntimeError(f"{command[3:]} failed: {said.decode()[-2000:]}")
    return said + listed
