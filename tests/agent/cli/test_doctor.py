"""`cellagent doctor`, beside a stand-in and a virtual kit."""

from __future__ import annotations

import re
import shlex
import zipfile
from pathlib import Path

from command_line import Done, cellagent
from located_kit import LocatedKit
from served_kit import served
from standin import StandIn

from agent.config.secrets import SECRETS
from agent.config.write import set_default_profile, write_profile


def states(done: Done) -> dict[str, str]:
    return {line["check"]: line["state"] for line in done.lines if "check" in line}


async def test_a_kit_and_a_cloud_that_are_well_have_no_failure(located_kit: LocatedKit) -> None:
    done = await located_kit.run("doctor", "--json")
    assert done.code == 0, done.out
    found = states(done)
    assert "fail" not in found.values()
    for check in ("files", "profile", "secrets", "disk", "port", "registration", "jwt", "outbox"):
        assert found[check] == "ok", done.out


async def test_the_next_command_can_be_pasted(private_home: Path, tmp_path: Path) -> None:
    with served(tmp_path) as kit:
        done = await cellagent("doctor", "--json", "--port", str(kit.port))
        (off,) = [line for line in done.lines if line["next"] and "modem on" in line["next"]]
        assert off["state"] == "warn"
        pasted = re.match(r"cellagent (.*)", off["next"])
        assert pasted is not None
        assert (await cellagent(*shlex.split(pasted[1]))).code == 0
        again = await cellagent("doctor", "--json", "--port", str(kit.port))
    assert states(again)["network"] == "ok"


async def test_a_host_that_is_away_and_a_refused_secret_fail_with_the_way_out(
    standin: StandIn, private_home: Path
) -> None:
    urls = {"device_cloud": standin.urls["device_cloud"], "api": "http://127.0.0.1:9"}
    write_profile("lab", {"hosts": urls}, {"api_key": "canary-no-key-0001"})
    set_default_profile("lab")
    done = await cellagent("doctor", "--json", "--port", "virtual:")
    assert done.code == 1
    found = {line["check"]: line for line in done.lines}
    assert found["host device_cloud"]["state"] == "ok"
    assert found["host api"]["state"] == "fail"
    assert "127.0.0.1:9" in found["host api"]["says"]
    assert found["api key"]["next"] == "cellagent login --profile lab api_key"


async def test_the_report_holds_no_secret_and_names_nobody(
    standin: StandIn, private_home: Path, tmp_path: Path
) -> None:
    kept = {name: f"canary-file-{name}" for name in SECRETS}
    account = {"organization": "canaryorg", "email": "canary@example.com", "team_id": "canaryteam"}
    values = {
        "hosts": {"device_cloud": standin.urls["device_cloud"], "api": standin.urls["api"]},
        "account": account,
        "kit": {"device_id": "canary-device"},
    }
    write_profile("lab", values, kept)
    environment = {
        known.variable: f"canary-environment-{name}"
        for name, known in list(SECRETS.items())[::2]  # the others come from the file
    }
    report = tmp_path / "report.zip"
    words = ("doctor", "--profile", "lab", "--port", "virtual:", "--report", str(report))
    done = await cellagent(*words, environment=environment)
    with zipfile.ZipFile(report) as archive:
        text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert "canary-" not in done.out + done.err
    assert "canary" not in text
    assert "hosts.device_cloud" in text
    assert str(Path.home()) not in text
