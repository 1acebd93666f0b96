"""Tools that know their hosts, released and unmodified, and the proxy that is the internet."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.connect_proxy import connect_proxy
from tests.support.cloud.standin import StandIn, running_standin
from tests.support.keys.key_files import pem

TOOLS = Path(__file__).resolve().parents[3] / ".peers" / "bin"
INSTALLED = (TOOLS / "nrf_cloud_onboard").exists()


@contextlib.asynccontextmanager
async def internet(
    folder: Path, *, strict: bool = False
) -> AsyncIterator[tuple[StandIn, dict[str, str]]]:
    """Run a stand-in and the proxy; give it, and the environment of a tool that must use both.

    `strict`: no host of it takes what another is for.
    """
    ca = folder / "ca.pem"
    async with running_standin(folder / "standin", strict=strict) as standin:
        standin.cloud.settings.bulk_s = 0.05
        async with connect_proxy(standin.cloud, 0, ca) as port:
            yield (
                standin,
                {
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder),
                    "HTTPS_PROXY": f"http://127.0.0.1:{port}",
                    "REQUESTS_CA_BUNDLE": str(ca),
                },
            )


async def run(
    environment: dict[str, str], folder: Path, tool: str, *arguments: str, said: str = ""
) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        str(TOOLS / tool),
        *arguments,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(said.encode()), 90)
    return process.returncode, output.decode()


def public_pem() -> str:
    return pem(ec.generate_private_key(ec.SECP256R1()))
