"""`cellagent provision run` with credentials that are wrong: named before a kit is touched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from agent.cli.framework.session import Session
from agent.cli.provision.bench_options import board_opener, require_extras
from agent.config.profile import ProvisioningSettings
from agent.config.write import set_value, write_profile
from agent.extras import MissingExtra
from agent.files.paths import config_file, secrets_file
from agent.provisioning.boards.board import BoardLocation
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.keys.operator_ca import make_ca
from tests.support.modem.pty_far_end import PtyFarEnd
from tests.support.provisioning.tray import CA_CHAIN, flash_writes, ports, tray, tray_profile

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
PASSPHRASE = "canary-passphrase-of-the-ca"
NO_KIT = "/dev/ttyACM0"


async def run(*arguments: str, **environment: str) -> Done:
    return await cellagent(
        "provision", "run", *arguments, "--set-clock", "--json", environment=environment
    )


def key_in_chain(folder: Path) -> None:
    (folder / "chain.pem").write_text(CA_CHAIN + (folder / "ca.key").read_text())


def empty_chain(folder: Path) -> None:
    (folder / "chain.pem").write_text("no certificate\n")


def chain_cut_off(folder: Path) -> None:
    (folder / "chain.pem").write_text(CA_CHAIN + CA_CHAIN[:40])


def chain_is_a_fifo(folder: Path) -> None:
    (folder / "chain.pem").unlink()
    os.mkfifo(folder / "chain.pem")


def expired(folder: Path) -> None:
    make_ca(folder, begin=NOW - 9 * DAY, end=NOW - DAY)


def of_tomorrow(folder: Path) -> None:
    make_ca(folder, begin=NOW + DAY)


def no_ca(folder: Path) -> None:
    make_ca(folder, ca=False)


def half_named(_folder: Path) -> None:
    set_value("provisioning.device_ca_file", "", profile="tray")


def encrypted(folder: Path) -> None:
    make_ca(folder, password=PASSPHRASE.encode())


@pytest.mark.parametrize(
    ("spoil", "passphrase", "code", "says"),
    [
        (key_in_chain, "", 2, "chain.pem holds a private key, and would be copied to every kit"),
        (empty_chain, "", 2, "chain.pem holds no certificate"),
        (chain_cut_off, "", 2, "chain.pem holds something else than whole certificates"),
        (chain_is_a_fifo, "", 2, "chain.pem is no plain file"),
        (expired, "", 2, "expired on"),
        (of_tomorrow, "", 2, "this host's clock says"),
        (no_ca, "", 2, "does not say CA:TRUE"),
        (half_named, "", 2, "provisioning.device_ca_file is empty"),
        (encrypted, "wrong", 5, "the passphrase does not open the CA key"),
        (encrypted, "", 5, "nobody is there to ask"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_what_cannot_sign_or_be_written_is_named_first(
    standin: StandIn,
    tmp_path: Path,
    spoil: Callable[[Path], None],
    passphrase: str,
    code: int,
    says: str,
) -> None:
    tray_profile(standin, tmp_path)
    spoil(tmp_path)
    secrets = {"CELLAGENT_DEVICE_CA_PASSPHRASE": passphrase} if passphrase else {}
    refused = await run(NO_KIT, **secrets)
    assert refused.code == code, refused.out + refused.err
    [line] = refused.lines
    assert says in line["error"]["message"]
    assert line["error"]["try"]


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("environment", "of the environment: set CELLAGENT_DEVICE_CA_PASSPHRASE to a valid one"),
        ("credential", "systemd's cellagent.device_ca_passphrase: replace it, then restart"),
        ("file", "replace it with `cellagent config set device_ca_passphrase --profile tray`"),
    ],
)
async def test_a_wrong_passphrase_is_corrected_where_it_was_taken_from(
    standin: StandIn, tmp_path: Path, source: str, hint: str
) -> None:
    tray_profile(standin, tmp_path)
    encrypted(tmp_path)
    environment = {}
    if source == "file":
        words = ("config", "set", "device_ca_passphrase", "--profile", "tray")
        assert (await cellagent(*words, stdin="wrong")).code == 0
    elif source == "credential":
        (tmp_path / "cellagent.device_ca_passphrase").write_text("wrong")
        environment["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    else:
        environment["CELLAGENT_DEVICE_CA_PASSPHRASE"] = "wrong"
    refused = await run(NO_KIT, **environment)
    assert refused.code == 5
    assert hint in refused.lines[0]["error"]["try"]
    assert "type it again" not in refused.lines[0]["error"]["try"]


@pytest.mark.parametrize("command", ["run", "plan"])
async def test_a_ca_that_expired_is_named_by_a_plan_too_and_before_its_passphrase_is_asked_for(
    standin: StandIn, tmp_path: Path, command: str
) -> None:
    tray_profile(standin, tmp_path)
    make_ca(tmp_path, begin=NOW - 9 * DAY, end=NOW - DAY, password=PASSPHRASE.encode())
    refused = await cellagent("provision", command, NO_KIT, "--json")
    assert refused.code == 2, refused.out + refused.err
    assert "expired on" in refused.lines[0]["error"]["message"]


def test_a_key_on_a_token_without_its_extra_is_told_before_its_pin_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pkcs11", None)
    wanted = ProvisioningSettings(device_ca_key_file="pkcs11:token=bench;object=device-ca")
    with pytest.raises(MissingExtra, match=r"^a device CA's key on a token needs the extra bench"):
        require_extras(wanted)


def no_key(folder: Path) -> None:
    make_ca(folder)[1].unlink()


def open_key(folder: Path) -> None:
    make_ca(folder)[1].chmod(0o644)


def another_key(folder: Path) -> None:
    kept = make_ca(folder)[0].read_bytes()
    make_ca(folder)[0].write_bytes(kept)


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (no_key, "provisioning.device_ca_key_file: cannot read"),
        (open_key, "provisioning.device_ca_key_file: others can read"),
        (another_key, "is not that of the CA"),
    ],
)
async def test_a_plan_promises_no_certificate_of_a_ca_whose_key_is_lost(
    standin: StandIn, tmp_path: Path, spoil: Callable[[Path], None], says: str, command: str
) -> None:
    tray_profile(standin, tmp_path)
    spoil(tmp_path)
    refused = await cellagent("provision", command, NO_KIT, "--json")
    assert refused.code == 2, refused.out + refused.err
    assert says in refused.lines[0]["error"]["message"]


async def test_a_plan_asks_nobody_for_the_passphrase_of_a_ca(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    encrypted(tmp_path)
    planned = await cellagent("provision", "plan", NO_KIT, "--json")
    assert NO_KIT in planned.lines[0]["refusal"], planned.err


def no_host(_folder: Path) -> None:
    set_value("hosts.device_cloud", "", profile="tray")


def no_host_of_claims(_folder: Path) -> None:
    set_value("hosts.provisioning", "", profile="tray")


def no_api_key(_folder: Path) -> None:
    file = secrets_file(config_file())
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("api_key")))


def no_ca_file(folder: Path) -> None:
    (lost := folder / "nowhere.pem").write_text("-----BEGIN CERTIFICATE-----")
    set_value("hosts.ca_file", str(lost), profile="tray")
    lost.unlink()


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("spoil", "words", "code", "says"),
    [
        (no_host, "onboard", 2, "hosts.device_cloud is not set"),
        (no_host, "public-key", 2, "hosts.device_cloud is not set"),
        (no_host, "none", 2, "hosts.device_cloud is not set"),
        (no_host_of_claims, "claim", 2, "hosts.provisioning is not set"),
        (no_api_key, "onboard", 5, "onboard devices: it needs API key"),
        (no_api_key, "public-key", 5, "register public keys: it needs API key"),
        (no_ca_file, "onboard", 2, "nowhere.pem"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_what_the_service_needs_of_the_profile_is_named_first(
    standin: StandIn,
    tmp_path: Path,
    command: str,
    spoil: Callable[[Path], None],
    words: str,
    code: int,
    says: str,
) -> None:
    tray_profile(standin, tmp_path)
    spoil(tmp_path)
    unproven = ["--no-proof"] if words == "claim" else []
    refused = await cellagent(
        "provision", command, NO_KIT, "--registration", words, *unproven, "--json"
    )
    assert refused.code == code, refused.out + refused.err
    [line] = refused.lines
    assert says in line["error"]["message"]
    assert "--registration none --no-proof" in line["error"]["try"]


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize("certificate", ["operator-ca", "none"])
@pytest.mark.parametrize("command", ["run", "plan"])
async def test_a_claim_with_a_proof_is_refused_where_a_kit_takes_no_commands(
    standin: StandIn, tmp_path: Path, command: str, certificate: str
) -> None:
    tray_profile(standin, tmp_path, registration="claim")
    with tray(tmp_path, 1) as kits:
        refused = await cellagent(
            *("provision", command, *ports(kits), "--certificate", certificate),
            *("--set-clock", "--json"),
        )
        assert refused.code == 4, refused.out
        line = refused.lines[0]
        assert "gives the service no key" in line["refusal" if command == "plan" else "reason"]
        assert "--no-proof" in line["try"]
        assert flash_writes(kits[0]) == 0


async def test_a_claim_says_that_the_service_knows_no_key_yet(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path, registration="claim")
    with tray(tmp_path, 1) as kits:
        done = await run(*ports(kits), "--no-proof")
        again = await run(*ports(kits), "--no-proof")
    assert [done.lines[0]["outcome"], again.lines[0]["outcome"]] == ["done", "unchanged"]
    assert "the service gets no key" in done.err


async def test_with_no_proof_the_run_warns_of_what_the_service_is_not_asked_for(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        for verb in ("plan", "run"):
            done = await cellagent("provision", verb, *ports(kits), "--no-proof")
            assert (done.code, "device identity key" in done.err) == (0, True)
            assert "a board that the ledger calls registered is left as it is" in done.err


@pytest.mark.parametrize(
    "saved",
    [CA_CHAIN.replace("\n", "\r\n"), f'Bag Attributes\nsubject=CN = "Zürich"\n{CA_CHAIN}\nend\n'],
    ids=["line ends", "words around"],
)
async def test_a_chain_that_was_saved_otherwise_is_the_same(
    standin: StandIn, tmp_path: Path, saved: str
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        done = await run(*ports(kits))
        (tmp_path / "chain.pem").write_bytes(saved.encode())
        again = await run(*ports(kits))
    assert [done.lines[0]["outcome"], again.lines[0]["outcome"]] == ["done", "unchanged"]


async def test_a_lot_that_is_no_text_is_named_before_a_board_is_touched(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        refused = await run(*ports(kits), "--lot", "caf\udce9")
    assert refused.code == 2, refused.out
    assert "is no text in UTF-8" in refused.lines[0]["error"]["message"]


async def test_a_bench_without_a_service_needs_nothing_of_one(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    no_host(tmp_path)
    no_api_key(tmp_path)
    with tray(tmp_path, 1) as kits:
        done = await run(*ports(kits), "--registration", "none", "--no-proof")
    assert done.code == 0, done.out + done.err


@contextlib.asynccontextmanager
async def service_at(when: datetime) -> AsyncIterator[str]:
    """Run a service that knows nothing but the time, and yield its URL."""
    head = f"HTTP/1.1 200 OK\r\nDate: {format_datetime(when, usegmt=True)}\r\n"
    answer = f"{head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("days", [2, -2])
async def test_a_clock_that_is_days_off_dates_no_certificate(
    standin: StandIn, tmp_path: Path, days: int
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        async with service_at(NOW + days * DAY) as url:
            set_value("hosts.device_cloud", url, profile="tray")
            refused = await run(*ports(kits))
        assert refused.code == 4, refused.out
        assert "clock differs from the service's by" in refused.lines[-1]["error"]["message"]
        assert flash_writes(kits[0]) == 0


async def test_a_doubtful_clock_is_told_where_no_service_can_be_asked(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    set_value("hosts.device_cloud", "http://127.0.0.1:9", profile="tray")
    with tray(tmp_path, 1) as kits:
        done = await run(*ports(kits), "--registration", "none", "--no-proof")
    assert done.code == 0, done.out
    from agent.provisioning.running.host_clock import kernel_says_synchronised

    doubted = "certificates are dated by it" in done.err
    assert doubted == (kernel_says_synchronised() is False)


async def test_two_places_with_one_name_are_told(private_home: Path) -> None:
    slots = {f"/dev/none{number}": name for number, name in enumerate(["A1", "A2", "A2"])}
    write_profile("lab", {"provisioning": {"registration": "none", "slots": slots}}, {})
    done = await run(*slots, "--no-proof", "--profile", "lab")
    assert "/dev/none1 and /dev/none2 are both slot A2" in done.err
    assert "slot A1" not in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("key", "speed"), [("kit", "B9600"), ("kits.left", "B9600"),
                                            ("kits.right", "B115200")])  # fmt: skip
async def test_a_board_is_opened_with_the_speed_that_the_profile_has_for_it(
    key: str, speed: str, private_home: Path
) -> None:
    import termios

    with PtyFarEnd() as far:
        for name, port in (("left", far.path), ("right", "/dev/ttyRIGHT")):
            set_value(f"kits.{name}.port", port, profile="lab")
        set_value(f"{key}.baud", "9600", profile="lab")
        open_board = board_opener(Session(profile_name="lab"), list)
        async with open_board(BoardLocation("", "", "", far.path)):
            assert termios.tcgetattr(far.master)[5] == getattr(termios, speed)
