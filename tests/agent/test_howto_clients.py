"""The examples of docs/howto/clients.md run as they stand, in their order."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.cloud import DeviceCloud
from agent.config.standin_profile import write_standin_profile
from agent.config.write import set_default_profile
from agent.observability import Observability
from tests.support.cloud.standin import StandIn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "clients.md"
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


async def test_every_example_runs(standin: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    standin.cloud.settings.discover_s = 0
    write_standin_profile("sim", standin.ready)
    set_default_profile("sim")
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    names: dict[str, Any] = {
        "__name__": "howto",
        "public_key_pem": public.public_bytes(encoding, form).decode(),
    }
    for block in BLOCKS:
        code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ran = eval(code, names)
        if inspect.iscoroutine(ran):
            await ran
    assert "changed since it was read" in capsys.readouterr().out
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("service", [DeviceCloud, Observability])
def test_every_operation_says_what_it_does(service: type) -> None:
    for name, method in inspect.getmembers(service, inspect.isfunction):
        if not name.startswith("_"):
            assert method.__doc__, f"{service.__name__}.{name}"
