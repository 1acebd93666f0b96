"""What a bench loads: a process that lives a second pays for each package."""

from __future__ import annotations

import subprocess
import sys


def test_a_bench_with_no_service_loads_no_http_client() -> None:
    code = (
        "import sys, agent.provisioning.running.batch;"
        "sys.exit(', '.join(sys.modules.keys() & {'httpx', 'rich', 'agent.cloud'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == ""
