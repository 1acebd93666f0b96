"""The commands of docs/howto/provisioning.md run as they stand, in their order, on two kits."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import cellagent
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from operator_ca import make_ca
from served_kit import ServedKit
from standin import StandIn
from tray import CA_CHAIN, PROFILE, TAG, credentials, ports, tray, tray_profile

from agent.provisioning.ca.certificates import public_pem

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "provisioning.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"(?ms)^```console\n(.*?)^```", TEXT)
    for line in block.splitlines()
    if line
]
SETTINGS = re.findall(r"(?ms)^```toml\n(.*?)^```", TEXT)


async def test_every_command_runs(standin: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    tray_profile(standin, tmp_path / "unused", registration="public-key")
    make_ca(tmp_path, password=b"test only")
    (tmp_path / "chain.pem").write_text(CA_CHAIN)
    mes = tmp_path / "to-mes.py"
    mes.write_text(
        f"#!{sys.executable}\nimport sys; open('records', 'a').write(sys.stdin.read())\n"
    )
    mes.chmod(0o755)
    said = {}
    with tray(tmp_path, 2) as kits:
        for kit in kits:
            await write_identity_key(kit)
        for command in COMMANDS:
            program, *words = shlex.split(command.replace("$KITS", " ".join(ports(kits))))
            assert program == "cellagent"
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent", *words),
                cwd=tmp_path,
                env={
                    **os.environ,
                    "CELLAGENT_DEVICE_CA_PASSPHRASE": "test only",
                    "PYTHONPATH": str(PAGE.parents[2]),
                },
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, f"{command}\n{(out + err).decode()}"
            said[command] = out.decode()
        assert [sorted(credentials(kit)) for kit in kits] == [[0, 1, 2], [0, 1, 2]]
    again = next(text for command, text in said.items() if command.endswith("--expect 2 --json"))
    assert again.count('"unchanged"') == 3  # two boards and the summary
    assert len(COMMANDS) >= 10
    assert str(TAG) in TEXT
    assert (tmp_path / "records").read_text().count("\n") >= 2


async def write_identity_key(kit: ServedKit) -> None:
    """Write the public key that signs a kit's attestations to where the page has such keys."""
    await cellagent("modem", "at", "--port", str(kit.port), "AT%ATTESTTOKEN")
    key = serialization.load_pem_private_key(str(kit.saved()["identity_key"]).encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    folder = Path.home() / "identity-keys"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f"{kit.saved()['imei']}.pem").write_text(public_pem(key.public_key()))


def test_the_settings_that_it_shows_are_read() -> None:
    from agent.config.parse import profile_from

    assert len(SETTINGS) == 4
    for text in SETTINGS:
        table = tomllib.loads(text)["profiles"]["bench"]
        assert profile_from(table, PROFILE) is not None
