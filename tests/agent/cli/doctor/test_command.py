"""`cellagent doctor`, beside a stand-in and a virtual kit."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shlex
import zipfile
from pathlib import Path

import pytest

from agent.cli.doctor.checks import look_at_profile, look_at_services
from agent.cli.framework.session import Session
from agent.cli.tree import root
from agent.config.profile import OutboxSettings
from agent.config.secrets import SECRETS
from agent.config.write import set_default_profile, set_value, write_profile
from agent.outbox import Outbox
from agent.standin.connect_proxy import connect_proxy
from agent.wiring.forwarding import outbox_folder
from at.ports.usb import UsbPort
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.location.located_kit import LocatedKit
from tests.support.modem.served_kit import served


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
        assert (done.code, states(done)["jwt"]) == (0, "warn")  # a new kit is off: no trouble
        (off,) = [line for line in done.lines if line["check"] == "network"]
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
    given = {"CELLAGENT_API_KEY": "canary-no-key-0002"}
    done = await cellagent("doctor", "--json", "--port", "virtual:", environment=given)
    [found_again] = [line for line in done.lines if line["check"] == "api key"]
    assert found_again["next"] == (
        "api_key is of the environment: set CELLAGENT_API_KEY to a valid one"
    )


@pytest.mark.parametrize("fault", ["redirect", "deep-json"])
async def test_what_is_answered_in_the_service_s_place_is_no_reason_to_ask_the_doctor(
    standin: StandIn, private_home: Path, fault: str
) -> None:
    write_profile(
        "lab", {"hosts": {"device_cloud": standin.urls["device_cloud"]}}, {"api_key": "canary-0001"}
    )
    set_default_profile("lab")
    await standin.control({"faults": [f"{fault}@/v1/account"]})
    done = await cellagent("doctor", "--json", "--port", "virtual:")
    found = {line["check"]: line for line in done.lines}
    assert found["api key"]["state"] == "fail"
    assert "cellagent config show hosts" in found["api key"]["next"]


async def test_a_service_that_fails_is_told_as_that_and_not_as_one_that_is_silent(
    standin: StandIn, private_home: Path
) -> None:
    """Each secret was tried again for as long as it had, and then said to have no answer."""
    write_profile(
        "lab", {"hosts": {"device_cloud": standin.urls["device_cloud"]}}, {"api_key": "canary-0001"}
    )
    set_default_profile("lab")
    await standin.control({"faults": ["server-error=503*9@/v1/account"]})
    done = await cellagent("doctor", "--json", "--port", "virtual:")
    found = {line["check"]: line for line in done.lines}
    assert "503" in found["api key"]["says"]
    assert "try again" not in done.err


async def test_who_reads_along_is_named_and_whoever_is_trusted_passes(
    standin: StandIn, private_home: Path, tmp_path: Path
) -> None:
    """A proxy that ends TLS for the services, as a company's does, with a CA of its own."""
    ca_file = tmp_path / "ca.pem"
    async with connect_proxy(standin.cloud, 0, ca_file) as port:
        set_value("hosts.proxy", f"http://canary:canary-word@127.0.0.1:{port}", profile="public")
        words = ("doctor", "--json", "--profile", "public", "--port", "virtual:")
        intercepted = await cellagent(*words)
        set_value("hosts.ca_file", str(ca_file), profile="public")
        trusted = await cellagent(*words)
    issuer = "certificate by CN="
    (api,) = [line for line in intercepted.lines if line["check"] == "host api"]
    assert api["state"] == "fail"
    assert "authority that this machine does not trust" in api["says"]
    assert issuer in api["says"]
    assert "--profile public" in api["next"]
    (api,) = [line for line in trusted.lines if line["check"] == "host api"]
    assert (api["state"], issuer in api["says"]) == ("ok", True)
    assert f"by the proxy 127.0.0.1:{port}" in api["says"]
    assert "canary" not in intercepted.out + trusted.out
    assert states(trusted)["clock"] == "ok"  # as the service has it


@pytest.mark.parametrize("date", ["Sat, 01 Jan 2022 00:00:00 GMT", "Sat Jan  1 00:00:00 2022"])
async def test_a_clock_that_is_not_the_service_s_fails(private_home: Path, date: str) -> None:
    """The date may be of an old form that names no zone: RFC 9110, 5.6.7."""

    async def past(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 0\r\n".encode()
            + b"Connection: close\r\n\r\n"
        )
        writer.close()

    async with await asyncio.start_server(past, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        write_profile("lab", {"hosts": {"api": f"http://{host}:{port}"}}, {})
        words = ("doctor", "--json", "--profile", "lab", "--port", "virtual:")
        done = await cellagent(*words)
    (clock,) = [line for line in done.lines if line["check"] == "clock"]
    assert (clock["state"], "differs from the service's" in clock["says"]) == ("fail", True)


async def test_each_line_that_is_not_well_says_what_is_next(
    private_home: Path, tmp_path: Path
) -> None:
    write_profile("lab", {"hosts": {"api": "http://127.0.0.1:9"}}, {"project_key": "canary-1"})
    with served(tmp_path, "--fault", "no-sim") as kit:
        words = ("doctor", "--json", "--profile", "lab", "--port", str(kit.port))
        done = await cellagent(*words)
    wrong = [line for line in done.lines if line["state"] != "ok"]
    assert len(wrong) > 3
    found = {line["check"]: line for line in wrong}
    assert found["registration"]["state"] == "warn"
    off = r"`cellagent modem off [^`]+`, insert a SIM, then `cellagent modem on [^`]+`"
    assert re.fullmatch(off, found["sim"]["next"])
    for line in wrong:
        assert line["next"], line
        if line["next"].startswith("cellagent modem"):
            assert f"--port {kit.port}" in line["next"]
            assert "--profile lab" in line["next"]


async def test_what_ends_all_of_it_is_told_once_and_a_wrong_secret_ends_nothing(
    private_home: Path,
) -> None:
    done = await cellagent("doctor", "--json", "--profile", "none")
    (profile,) = [line for line in done.lines if line["state"] == "fail"]
    assert "there is no profile 'none'" in profile["says"]
    words = ("doctor", "--json", "--port", "virtual:")
    done = await cellagent(*words, environment={"CELLAGENT_API_KEY": "of two words"})
    (secrets,) = [line for line in done.lines if line["state"] == "fail"]
    assert "holds a space" in secrets["says"]
    assert states(done)["disk"] == "ok"


async def test_a_name_server_that_is_silent_is_told_as_that(
    private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", silent)
    monkeypatch.setattr("agent.cli.doctor.checks._HOST_S", 0.1)
    write_profile("lab", {"hosts": {"device_cloud": "https://cloud.invalid"}}, {})
    lines = {line.check: line async for line in look_at_services(Session(profile_name="lab"))}
    assert "no name server gave the address of cloud.invalid" in lines["host device_cloud"].says


async def test_a_folder_that_others_may_change_is_no_more_well_than_the_commands_find_it(
    private_home: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    as_shared = {"CELLAGENT_STATE_DIR": str(shared)}
    (files, *_) = (await cellagent("doctor", "--json", environment=as_shared)).lines
    status = await cellagent("provision", "status", environment=as_shared)
    assert (files["check"], files["state"]) == ("files", "fail")
    assert files["says"] in status.err
    assert files["next"].startswith("export CELLAGENT_STATE_DIR=")


async def test_a_folder_that_cannot_be_looked_at_is_named_before_what_is_wrong(
    private_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / ("x" * 300)
    done = await cellagent(
        "doctor", "--json", "--port", "virtual:", environment={"CELLAGENT_STATE_DIR": str(folder)}
    )
    said = [line["says"] for line in done.lines if line["state"] == "fail"]
    assert f"{folder}: File name too long" in said


async def test_room_on_a_full_disk_is_not_looked_for_in_the_outbox(private_home: Path) -> None:
    await cellagent("config", "set", "outbox.min_free_bytes", str(1 << 60))
    done = await cellagent("doctor", "--json", "--port", "virtual:")
    (disk,) = [line for line in done.lines if line["check"] == "disk"]
    assert (disk["state"], disk["next"]) == ("fail", "free some space on that disk")


async def test_an_outbox_that_cannot_be_opened_is_no_failure_of_the_agent(
    private_home: Path,
) -> None:
    with Outbox(outbox_folder(Session().configuration), OutboxSettings(min_free_bytes=0)):
        done = await cellagent("doctor", "--json", "--port", "virtual:")
    found = states(done)
    assert (found["agent"], found["outbox"]) == ("ok", "fail")


@pytest.mark.parametrize(
    ("number", "try_next"), [(errno.EROFS, "`findmnt -T "), (errno.ENOSPC, "free some space")]
)
async def test_a_disk_that_takes_no_file_in_spite_of_its_room_is_told(
    number: int, try_next: str, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("agent.cli.doctor.checks.TemporaryFile", refused)
    (disk,) = [line async for line in look_at_profile(Session()) if line.check == "disk"]
    assert (disk.state, disk.next[: len(try_next)]) == ("fail", try_next)


@pytest.mark.parametrize(
    "usb",
    [
        UsbPort("/dev/ttyS0"),
        UsbPort("/dev/ttyUSB0", 0x10C4, 0xEA60),
        UsbPort("/dev/cu.My headset"),  # as macOS names it
    ],
)
def test_a_serial_port_that_is_no_kit_s_is_no_failure(
    usb: UsbPort,
    private_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = Session(json=True)
    session.usb_ports = lambda: [usb]
    root.main(["doctor"], standalone_mode=False, obj=session)
    found = {line["check"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["port"]["state"] == "warn"
    assert f"cellagent doctor --port {shlex.quote(usb.device)}`" in found["port"]["next"]


async def test_the_report_holds_no_secret_and_names_nobody(
    standin: StandIn, private_home: Path, tmp_path: Path
) -> None:
    kept = {name: f"canary-file-{name}" for name in SECRETS}
    account = {"organization": "ok", "email": "canary@example.com", "team_id": "canaryteam"}
    values = {
        "hosts": {"device_cloud": standin.urls["device_cloud"], "api": standin.urls["api"]},
        "account": account,
        "kit": {"device_id": "canary-device", "slot": "canary-slot"},
        "kits": {
            "canarykit": {
                "port": "/dev/serial/by-id/usb-SEGGER_001050900001-if00",
                "console_port": "/dev/serial/by-id/usb-Nordic_Thingy:91_X_F6CA1A9EDB7-if00",
            }
        },
        "provisioning": {
            "on_board": ["mes", "--token=canary-token"],
            "station": "canary-line",
            "tags": ["canary-customer"],
        },
        "fota": {"command": ["flash", "canary-argument"]},
    }
    values["hosts"]["proxy"] = "http://canary:canary-word@127.0.0.1:9"
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
    assert report.stat().st_mode & 0o777 == 0o600
    assert "canary" not in text
    assert "001050900001" not in text
    assert "F6CA1A9EDB7" not in text
    assert '"state": "ok"' in text  # which is the name of the organization, too
    assert "hosts.device_cloud" in text
    assert str(Path.home()) not in text


async def test_the_report_of_paths_that_are_no_text_is_written(
    private_home: Path, tmp_path: Path
) -> None:
    state, report = tmp_path / os.fsdecode(b"caf\xe9"), tmp_path / "report.zip"
    words = ("doctor", "--port", "virtual:", "--report", str(report))
    done = await cellagent(*words, environment={"CELLAGENT_STATE_DIR": str(state)})
    assert done.code == 0, done.err
    with zipfile.ZipFile(report) as archive:
        found = map(json.loads, archive.read("doctor.jsonl").splitlines())
        [files] = [line["says"] for line in found if line["check"] == "files"]
    assert files.endswith(str(state))


def test_the_report_is_written_by_a_user_who_has_no_home(
    private_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setenv("CELLAGENT_STATE_DIR", str(tmp_path))
    report = tmp_path / "report.zip"
    root.main(["doctor", "--report", str(report)], standalone_mode=False, obj=Session())
    assert zipfile.is_zipfile(report)


async def test_of_several_kits_it_says_how_it_looks_at_one(private_home: Path) -> None:
    with served(private_home) as kit:
        kits = {"left": {"port": str(kit.port)}, "right": {"port": "/dev/no-such-port"}}
        write_profile("lab", {"kits": kits}, {})
        done = await cellagent("doctor", "--profile", "lab", "--json")
    [told] = [line for line in done.lines if line["check"] == "kit"]
    assert "`cellagent doctor --profile lab --json --port left`" in told["next"]
