"""`cellagent provision` as an operator runs it: kits on terminals, processes, both ledgers."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import shlex
import signal
import sqlite3
import stat
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from agent.config.write import set_value
from agent.provisioning.ca.certificates import describe
from agent.standin.faults import set_faults
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.tray import (
    flash_writes,
    key_in,
    ports,
    registered_keys,
    tray,
    tray_profile,
)

PASSPHRASE = "canary-passphrase-of-the-ca"
LEDGER_PASSWORD = "canary-ledger-password"


async def provision(*arguments: str, **environment: str) -> Done:
    return await cellagent("provision", *arguments, environment=environment)


def boards_of(done: Done) -> list[dict[str, object]]:
    assert "summary" in done.lines[-1], done.out + done.err
    return done.lines[:-1]


@pytest.mark.contract("C10", "D9.3", "D10.8")
async def test_a_tray_from_plan_to_export(standin: StandIn, tmp_path: Path, ledger: str) -> None:
    tray_profile(standin, tmp_path, **({"ledger": ledger} if ledger else {}))
    with tray(tmp_path, 3) as kits:
        named = ports(kits)
        planned = await provision("plan", *named, "--set-clock", "--json")
        assert planned.code == 0, planned.err
        assert [line["writes"] for line in planned.lines] == [3, 3, 3]
        assert planned.lines[0]["steps"][0]["step"] == "gate"
        assert [flash_writes(kit) for kit in kits] == [0, 0, 0]

        miscounted = await provision("run", *named, "--expect", "4", "--set-clock", "--json")
        assert miscounted.code == 4
        assert miscounted.lines[-1]["error"]["exit"] == 4
        assert [flash_writes(kit) for kit in kits] == [0, 0, 0]

        ran = await provision("run", *named, "--expect", "3", "--set-clock", "--json")
        assert ran.code == 0, ran.out + ran.err
        assert ran.lines[-1] == {"summary": {"boards": 3, "done": 3, "ok": True}}
        for line in boards_of(ran):
            assert list(line["board"]) == ["serial", "usb_place", "slot", "port"]
            assert {*line} == {
                *("board", "device_id", "uuid", "outcome", "step", "exit", "reason", "writes"),
                *("seconds", "try"),
            }  # fmt: skip
            assert (line["outcome"], line["exit"], line["writes"]) == ("done", 0, 3)
            assert line["step"] == "proof"
        by_port = {line["board"]["port"]: line["device_id"] for line in boards_of(ran)}
        for kit in kits:
            assert key_in(kit) == registered_keys(standin)[by_port[str(kit.port)]] != ""

        again = await provision("run", *named, "--json")
        assert [(line["outcome"], line["writes"]) for line in boards_of(again)] == [
            ("unchanged", 0)
        ] * 3
        assert [flash_writes(kit) for kit in kits] == [3, 3, 3]
        assert (await provision("plan", *named, "--json")).lines[0]["writes"] == 0

    status = await provision("status", "--json")
    assert {line["outcome"] for line in status.lines} == {"done"}, "once done, a board stays done"
    steps = await provision("status", status.lines[0]["uuid"], "--json")
    of_steps = [line for line in steps.lines if line["kind"] == "step"]
    assert ("key", "done") in [(line["step"], line["state"]) for line in of_steps]
    assert "register" in (await provision("status", status.lines[0]["uuid"])).out

    bulk = await provision("export", "--as", "bulk")
    rows = list(csv.reader(io.StringIO(bulk.out)))
    assert [len(row) for row in rows] == [5, 5, 5]
    for row in rows:
        certificate = x509.load_pem_x509_certificate(row[4].encode())
        assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    onboarding = "text/csv"
    answer = await standin.client.post(
        "/v1/devices",
        content=bulk.out,
        headers={**standin.bearer("api_key"), "Content-Type": onboarding},
    )
    assert answer.status_code == 202, answer.text
    nordic = (await provision("export", "--as", "nordic")).out.splitlines()
    assert [line.count(",") for line in nordic] == [2, 2, 2]
    sheet = (await provision("export")).out.splitlines()
    assert sheet[0].startswith("device_id,uuid,imei,")
    assert len((await provision("export", "--as", "json", "--outcome", "done")).lines) == 3


async def test_a_service_that_is_away_is_exit_6_and_the_rerun_registers_the_same_key(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        set_value("hosts.device_cloud", "http://127.0.0.1:9", profile="tray")
        failed = await provision("run", *ports(kits), "--set-clock", "--json")
        [line] = boards_of(failed)
        assert (line["outcome"], line["step"], failed.code) == ("failed", "clock", 6)
        assert flash_writes(kits[0]) == 0
        set_value("hosts.device_cloud", standin.urls["device_cloud"], profile="tray")
        set_faults(standin.cloud, ["server-error=503*9@POST /v1/devices"])
        failed = await provision("run", *ports(kits), "--set-clock", "--json")
        [line] = boards_of(failed)
        assert (line["outcome"], line["step"], failed.code) == ("failed", "register", 6)
        made, writes = key_in(kits[0]), flash_writes(kits[0])
        set_faults(standin.cloud, [])
        done = await provision("run", *ports(kits), "--set-clock", "--json")
        [line] = boards_of(done)
        assert (line["outcome"], line["writes"], done.code) == ("done", 0, 0)
        assert registered_keys(standin) == {line["device_id"]: made}
        assert flash_writes(kits[0]) == writes


@pytest.mark.parametrize("by", ["option", "profile"])
async def test_the_life_of_a_certificate_is_chosen_and_ends_with_the_ca(
    standin: StandIn, tmp_path: Path, by: str
) -> None:
    tray_profile(standin, tmp_path)
    ends = datetime.now(UTC) + timedelta(days=20)
    make_ca(tmp_path, end=ends)
    option = ["--certificate-days", "9999"] if by == "option" else []
    if by == "profile":
        set_value("provisioning.certificate_days", "9999", profile="tray")
    with tray(tmp_path, 1) as kits:
        planned = await provision("plan", *ports(kits), "--set-clock", *option)
        assert f"operator-ca, until {ends:%Y-%m-%d}, when the CA ends" in planned.out
        assert "operator-ca, for 19 days" in (
            await provision("plan", *ports(kits), "--set-clock", "--certificate-days", "19")
        ).out  # fmt: skip
        done = await provision("run", *ports(kits), "--set-clock", *option)
    assert done.code == 0, done.err
    assert f"warning: renew the CA: the CA ends on {ends:%Y-%m-%d}" in done.err
    assert "instead of 9999 days from now" in done.err
    [row] = csv.reader(io.StringIO((await provision("export", "--as", "bulk")).out))
    leaf = x509.load_pem_x509_certificate(row[4].encode())
    assert leaf.not_valid_after_utc == ends.replace(microsecond=0)
    steps = (await provision("status", row[0], "--json")).lines
    of_steps = [one for one in steps if one["kind"] == "step"]
    [detail] = [one["detail"] for one in of_steps if one["step"] == "certificate"]
    assert detail == describe(leaf)
    assert detail.endswith(f", ends {ends:%Y-%m-%d}")


async def test_a_board_that_breaks_a_limit_is_refused_before_a_write(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    set_value("provisioning.limits.supply_min_mv", "3300", profile="tray")
    with tray(tmp_path, 1, "--fault", "supply=2900") as kits:
        planned = await provision("plan", *ports(kits), "--set-clock", "--json")
        refused = await provision("run", *ports(kits), "--set-clock", "--json")
        [line] = boards_of(refused)
        assert (line["outcome"], line["step"], refused.code) == ("refused", "limits", 4)
        assert "2900 mV, and the limit is supply voltage at least 3300 mV" in line["reason"]
        assert planned.lines[0]["refusal"] == line["reason"]
        assert (planned.code, flash_writes(kits[0])) == (4, 0)
    set_value("provisioning.limits.sim_required", "true", profile="tray")
    with tray(tmp_path, 1) as kits:
        off = await provision("run", *ports(kits), "--set-clock")
        assert "SIM cannot be read in functional mode 0" in off.out
        on = await cellagent("modem", "at", "--port", ports(kits)[0], "AT+CFUN=1")
        assert on.code == 0, on.err
        done = await provision("run", *ports(kits), "--set-clock", "--json")
        assert done.code == 0, done.out + done.err
        planned = await provision("plan", *ports(kits), "--set-clock")
        assert "limits" not in planned.out


async def test_the_way_out_of_a_refusal_can_be_pasted_whole(tmp_path: Path) -> None:
    """A ledger that does not know the board's key: the second is another station's."""
    call = f"run virtual:{tmp_path / 'kit'} --registration none --no-proof".split()
    other = {"CELLAGENT_STATE_DIR": str(tmp_path / "other")}
    assert (await provision(*call)).code == 0
    refused = await provision(*call, "--replace", "1:1", **other)
    told = await provision(*call, "--replace", "1:1", "--json", **other)
    pasted = refused.out.partition("try: `cellagent provision ")[2].partition("`")[0]
    options = ["--replace", "1:1", "--replace", "16842753:2"]
    assert shlex.split(pasted) == [*call, *options]
    whole = shlex.join(["cellagent", "provision", *call, *options[:2], "--json", *options[2:]])
    assert told.lines[0]["try"] == f"`{whole}` allows it"
    assert (await provision(*shlex.split(pasted), **other)).code == 0


async def test_a_board_with_two_names_is_done_once(standin: StandIn, tmp_path: Path) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        alias = tmp_path / "alias"
        alias.symlink_to(kits[0].port)
        twice = await provision("run", str(kits[0].port), str(alias), "--set-clock", "--json")
        busy, done = sorted(boards_of(twice), key=lambda line: str(line["outcome"]))
        assert (busy["outcome"], done["outcome"], twice.code) == ("busy", "done", 3)
        assert busy["try"] == "the port was opened under another of its names: name it once"
        assert flash_writes(kits[0]) == 3


async def test_two_stations_never_work_on_one_board(
    standin: StandIn, tmp_path: Path, shared_ledger: str
) -> None:
    """Two processes, one PostgreSQL ledger, and a board that both see."""
    tray_profile(standin, tmp_path, ledger=shared_ledger)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with tray(tmp_path / "one", 2) as here, tray(tmp_path / "two", 2) as there:
        stations = [
            provision("run", *ports(kits), "--set-clock", "--json", "--no-proof")
            for kits in (here, there)
        ]
        found = await asyncio.gather(*stations)
        outcomes = [line for done in found for line in boards_of(done)]
        for device in {line["device_id"] for line in outcomes}:
            ended = [line["outcome"] for line in outcomes if line["device_id"] == device]
            # Busy while the other has it. Later: a twin without the key that the ledger knows.
            assert ended.count("done") >= 1
            assert set(ended) <= {"done", "busy"}
        # Whoever came last: one registered key a device, and a board that holds it.
        held = {key_in(kit) for kit in (*here, *there)}
        assert set(registered_keys(standin).values()) <= held
        assert len(registered_keys(standin)) == 2


async def test_the_number_of_boards_that_were_found_is_ready_to_be_pasted(tmp_path: Path) -> None:
    call = f"run virtual:{tmp_path / 'kit'} --registration none --no-proof --expect".split()
    refused = await provision(*call, "2")
    pasted = refused.err.partition("`cellagent provision ")[2].partition("`")[0]
    assert shlex.split(pasted) == [*call, "1"]
    assert (await provision(*shlex.split(pasted))).code == 0


async def test_ctrl_c_puts_the_mode_back(standin: StandIn, tmp_path: Path) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1, "--fault", "slow=0.3") as kits:
        port = str(kits[0].port)
        assert (await cellagent("modem", "at", "AT+CFUN=1", "--port", port)).code == 0
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", "provision", "run", port, "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        ledger = Path(os.environ["CELLAGENT_STATE_DIR"]) / "ledger.sqlite"
        assert await asyncio.to_thread(noted, ledger, "ca-chain")
        process.send_signal(signal.SIGINT)
        out, _err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 130
        summary, error = (json.loads(line) for line in out.splitlines()[-2:])
        assert summary == {"summary": {"boards": 1, "unfinished": 1, "ok": False}}
        assert error["error"]["exit"] == 130
        assert [line["outcome"] for line in (await provision("status", "--json")).lines] == [
            "unfinished"
        ]
        mode = await cellagent("modem", "at", "AT+CFUN?", "--port", port)
        assert "+CFUN: 1" in mode.out
        done = await provision("run", port, "--set-clock", "--json")
        assert done.code == 0, done.out


def noted(ledger: Path, step: str) -> bool:
    """Wait until a step stands in a ledger that another process writes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection,
        ):
            query = "SELECT count(*) FROM steps WHERE step = ?"
            if connection.execute(query, (step,)).fetchone()[0]:
                return True
        time.sleep(0.02)
    return False


async def test_labels_are_written_once_a_board(standin: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    tray_profile(standin, tmp_path)
    folder = tmp_path / "labels"
    with tray(tmp_path, 2) as kits:
        for _run in range(2):
            done = await provision(
                "run", *ports(kits), "--set-clock", "--labels", str(folder), "--json"
            )
            assert done.code == 0, done.err
    lines = (folder / "labels.csv").read_text().splitlines()
    assert lines[0] == "device_id,imei,slot,usb_place,label"
    assert len(lines) == 3
    assert len(list(folder.glob("*.png"))) == 2


async def test_a_label_that_cannot_be_written_says_what_writes_it_later(
    standin: StandIn, tmp_path: Path
) -> None:
    pytest.importorskip("segno", reason="needs the extra: pip install 'cellagent[bench]'")
    tray_profile(standin, tmp_path)
    folder = tmp_path / "labels"
    with tray(tmp_path, 1) as kits:
        run = ("run", *ports(kits), "--set-clock", "--labels", str(folder), "--json")
        assert (await provision(*run)).code == 0
        [picture] = folder.glob("*.png")
        (folder / "labels.csv").unlink()
        picture.unlink()
        picture.mkdir()
        done = await provision(*run)
        assert (done.code, done.lines[-1]["summary"]["ok"]) == (1, True)
        assert f"the label of {picture.stem} was not written: Is a directory" in done.err
        assert "  try: the same command again writes the labels that are missing" in done.err
        picture.rmdir()
        assert (await provision(*run)).code == 0
    assert picture.is_file()


@pytest.mark.parametrize("verbosity", ["", "-v", "-vvv"])
async def test_no_secret_is_shown_at_any_verbosity(
    standin: StandIn, tmp_path: Path, verbosity: str
) -> None:
    tray_profile(standin, tmp_path)
    make_ca(tmp_path, password=PASSPHRASE.encode())
    secrets = {
        "CELLAGENT_DEVICE_CA_PASSPHRASE": PASSPHRASE,
        "CELLAGENT_LEDGER_PASSWORD": LEDGER_PASSWORD,
    }
    said = ""
    loud = [verbosity] if verbosity else []
    with tray(tmp_path, 1) as kits:
        for command in (
            ("plan", *ports(kits), "--set-clock"),
            ("run", *ports(kits), "--set-clock", "--host-key"),
            ("run", *ports(kits), "--set-clock", "--host-key", "--json"),
            ("status", "--json"),
            ("export",),
            ("export", "--as", "bulk"),
        ):
            done = await provision(*command, *loud, **secrets)
            assert done.code == 0, done.err
            said += done.out + done.err
    assert "can be copied" in said
    state = Path(os.environ["CELLAGENT_STATE_DIR"])
    ledger = (state / "ledger.sqlite").read_bytes().decode("latin-1")
    [key_file] = (state / "keys").iterdir()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "ledger.sqlite").stat().st_mode) == 0o600
    key_lines = [line for line in key_file.read_text().splitlines() if "-----" not in line]
    canaries = [PASSPHRASE, LEDGER_PASSWORD, standin.credentials["api_key"], *key_lines]
    assert [canary for canary in canaries if canary in said + ledger] == []
    assert "PRIVATE KEY" not in said + ledger


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name the boards, or say --all"),
        (("--all", "/dev/ttyACM0"), "--all takes every kit, and /dev/ttyACM0 is named as well"),
        (("/dev/ttyACM0", "--replace", "2"), "TAG:TYPE"),
        (("/dev/ttyACM0", "--replace", "16842753:4"), "2 (private key) alone"),
        (("/dev/ttyACM0", "--certificate", "self-signed"), "operator-ca or none"),
        (("/dev/ttyACM0", "--certificate", "operator-ca"), "no CA is named"),
    ],
)
async def test_a_wrong_call_is_exit_2_and_touches_nothing(
    arguments: tuple[str, ...], says: str
) -> None:
    done = await provision("run", *arguments)
    assert done.code == 2
    assert says in done.err


async def test_no_kit_at_all_is_exit_3(tmp_path: Path) -> None:
    done = await provision("run", str(tmp_path / "nowhere"), "--registration", "none",
                           "--no-proof", "--json")  # fmt: skip
    [line] = boards_of(done)
    assert (line["outcome"], line["step"], line["exit"], done.code) == ("failed", "find", 3, 3)


async def test_each_record_is_given_to_the_command_and_a_rerun_gives_what_a_failure_left(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    file = tmp_path / "given"
    refuses = [sys.executable, "-c", "import sys; sys.exit('the MES is away')"]
    takes = [sys.executable, "-c", f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read())"]
    with tray(tmp_path, 2) as kits:
        run = "run", *ports(kits), "--set-clock", "--json"
        wrong = await provision(*run, "--on-board", "no-such-program --line 3")
        assert (wrong.code, [flash_writes(kit) for kit in kits]) == (2, [0, 0])
        failed = await provision(*run, "--on-board", shlex.join(refuses))
        assert [line["outcome"] for line in boards_of(failed)] == ["done", "done"]
        assert failed.code == 1
        assert failed.err.count("the MES is away") == 1
        assert "the next run gives them again" in failed.err
        set_value("provisioning.on_board", ",".join(refuses), profile="tray")
        given = await provision(*run, "--on-board", shlex.join(takes))
        assert given.code == 0, given.err
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["run"]["outcome"] for one in records] == ["done"] * 2 + ["unchanged"] * 2
    assert {one["version"] for one in records} == {2}
    assert {one["board"]["device_id"] for one in records} == {
        line["device_id"] for line in boards_of(given)
    }


async def test_a_record_outlives_a_kill_of_the_run_and_of_its_command(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    file, started = tmp_path / "given", tmp_path / "started"
    os.mkfifo(started)
    hangs = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    takes = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read())"
    with tray(tmp_path, 1) as kits:
        run = "provision", "run", *ports(kits), "--set-clock", "--on-board"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", *run, shlex.join([sys.executable, "-c", hangs])),
            stderr=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        orphan = int(await asyncio.to_thread(started.read_text))
        process.kill()
        await process.wait()
        os.kill(orphan, signal.SIGKILL)
        again = await cellagent(*run, shlex.join([sys.executable, "-c", takes]), "--json")
        assert again.code == 0, again.err
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["run"]["outcome"] for one in records] == ["done", "unchanged"]


async def test_boards_that_know_no_time_are_told_of_the_option_that_gives_it(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 2) as kits:
        untimed = boards_of(await provision("run", *ports(kits), "--json"))
        shown = await provision("run", *ports(kits))
        for line in untimed:
            assert "it does not know the time" in line["reason"]
            one = f"`cellagent modem on --port {line['board']['port']}`"
            assert one in line["try"]
            assert one in shown.out
        pasted = untimed[0]["try"].partition("`cellagent provision ")[2].partition("`")[0]
        place = untimed[0]["board"]["port"]
        assert shlex.split(pasted) == ["run", place, "--json", "--set-clock"]
        done = await provision(*shlex.split(pasted))
        assert [line["board"]["port"] for line in boards_of(done)] == [place]
        for port in ports(kits):
            assert f"`cellagent provision run {port} --set-clock`" in shown.out
    assert done.code == 0, done.out + done.err
