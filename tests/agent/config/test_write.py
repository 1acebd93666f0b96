from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from agent.config import load
from agent.config.write import (
    drop_secret,
    set_default_profile,
    set_secret,
    set_value,
    unset_value,
    write_profile,
)
from agent.errors import ConfigError, RefusedByRule, UsageError
from tests.support.keys.operator_ca import make_ca


def test_setting_a_value_keeps_comments_and_order(file: Path) -> None:
    file.write_text(
        '# my lab\nprofile = "lab" # the default\n\n[profiles.lab.kit]\n'
        '# left hub\nport = "serial:1" # do not change\nbaud = 115200\n'
    )
    assert set_value("kit.baud", "1000000", profile="lab") == 1000000
    set_value("fota.hosts", "a.example, b.example", profile="lab")
    set_value("location.send_ssid", "yes", profile="lab")
    text = file.read_text()
    for kept in ("# my lab", "# the default", "# left hub", "# do not change"):
        assert kept in text
    profile = load().profile
    assert profile.kit.baud == 1000000
    assert profile.fota.hosts == ("a.example", "b.example")
    assert profile.location.send_ssid is True


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("Yes", True), ("ON", True), ("false", False), ("no", False), ("off", False)],
)
def test_each_word_for_yes_and_no_is_taken(file: Path, text: str, value: bool) -> None:
    assert set_value("location.send_ssid", text, profile="lab") is value
    assert load("lab").profile.location.send_ssid is value


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("kit.buad", "1", "kit.buad"),
        ("kit.baud", "fast", "no number"),
        ("location.send_ssid", "perhaps", "neither true nor false"),
        ("fota.require", "sure", "fota.require"),
        ("hosts.api", "http://far.example", "hosts.api"),
        ("kit", "x", "no key 'kit'"),
        ("kit.port", "ttyACM0", "kit.port"),
        ("kit.port", "serial:", "kit.port"),
        ("kit.port", "tcp://127.0.0.1", "kit.port"),
        ("kit.companion_port", "foo", "kit.companion_port"),
        ("hosts.proxy", "proxy.example:3128", "hosts.proxy"),
        ("hosts.ca_file", "/no/such/ca.pem", "No such file"),
        ("hosts.ca_file", __file__, "no line that begins with"),
        ("hosts.ca_file", "~nobody-of-this-name/ca.pem", "hosts.ca_file"),
        ("hosts.ca_file", "/dev/zero", "no plain file"),
        ("account.email", "me", "account.email"),
        ("fota.quiet_hours", "06:00-6:00", "fota.quiet_hours"),
        ("fota.quiet_hours", "25:00-06:00", "fota.quiet_hours"),
        ("fota.quiet_hours", "22-06", "fota.quiet_hours"),
        ("fota.quiet_hours", "06:00", "fota.quiet_hours"),
        ("fota.quiet_hours", "a-b", "fota.quiet_hours"),
        ("provisioning.ledger", "mysql://bench@db/boards", "provisioning.ledger"),
        ("provisioning.ledger", "postgresql://bench:word@db/boards", "provisioning.ledger"),
        (
            "provisioning.ledger",
            "postgresql://bench@db/boards?password=word",
            "provisioning.ledger",
        ),
        ("provisioning.security_tag", "-1", "provisioning.security_tag"),
        ("provisioning.label_pattern", "[", "provisioning.label_pattern: '\\[' is no regular"),
        ("metrics.listen", "9464", "metrics.listen"),
        ("metrics.listen", "0.0.0.0:9464", "metrics.listen"),
        ("location.interval_s", "1e400", "location.interval_s"),
        ("location.interval_s", "20 parsecs", "no number"),
        ("outbox.min_free_bytes", "-1", "outbox.min_free_bytes"),
        ("outbox.min_free_bytes", "1e400 MiB", "no number"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(
    file: Path, key: str, text: str, named: str
) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        set_value(key, text, profile="lab")
    assert not file.exists()
    assert "word@" not in str(refused.value) + refused.value.hint
    if key != "hosts.ca_file":
        assert refused.value.hint


@pytest.mark.contract("D1.1", "D10.4")
@pytest.mark.parametrize(
    "key",
    ["hosts.ca_file", "credentials.service_key_files.location", "provisioning.device_ca_key_file"],
)
def test_a_path_is_written_so_that_it_leads_there_from_any_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "it.pem").write_text(f"-----{'BEGIN'} KEY-----\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    whole = str(tmp_path / "own" / "it.pem")
    for given, written in (("own/it.pem", whole), (whole, whole), ("~/it.pem", "~/it.pem")):
        assert set_value(key, given, profile="lab") == written
    for other, given, written in (
        (
            "provisioning.device_ca_key_file",
            *("pkcs11:token=a;object=b?module-path=/usr/lib/module.so",) * 2,
        ),
        ("provisioning.ledger", "boards.sqlite", str(tmp_path / "boards.sqlite")),
        ("provisioning.ledger", *("postgresql://bench@db/boards",) * 2),
        ("location.wifi", "file:own/it.json", f"file:{tmp_path / 'own' / 'it.json'}"),
        ("location.wifi", "file:~/it.json", "file:~/it.json"),
        ("location.wifi", "auto", "auto"),
        ("kit.port", "./kit", str(tmp_path / "kit")),
        ("kit.port", "replay:own/kit.txt", f"replay:{tmp_path / 'own' / 'kit.txt'}"),
        ("kit.port", "virtual:kit.json", f"virtual:{tmp_path / 'kit.json'}"),
        ("kit.console_port", "own/console", str(tmp_path / "own" / "console")),
        *(
            ("kit.port", port, port)
            for port in ("COM3", "serial:1050", "tcp://127.0.0.1:2000", "virtual:", "/dev/ttyACM0")
        ),
    ):
        assert set_value(other, given, profile="lab") == written
    with pytest.raises(ConfigError, match="No such file"):
        set_value("credentials.service_key_files.fota", "own/none.pem", profile="lab")


def test_a_certificate_in_der_is_told_how_it_becomes_pem(file: Path, tmp_path: Path) -> None:
    certificate = load_pem_x509_certificate(make_ca(tmp_path)[0].read_bytes())
    given = tmp_path / "our ca.cer"
    given.write_bytes(certificate.public_bytes(Encoding.DER))
    with pytest.raises(ConfigError) as refused:
        set_value("hosts.ca_file", str(given), profile="lab")
    made = f"'{given}.pem'"
    assert refused.value.hint.startswith(f"`openssl x509 -inform DER -in '{given}' -out {made}`")
    given.write_bytes(b"no certificate")
    with pytest.raises(ConfigError) as refused:
        set_value("hosts.ca_file", str(given), profile="lab")
    assert "openssl" not in refused.value.hint


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("hosts.ca_file", ""),
        ("location.send_ssid", "TRUE"),
        *(("kit.port", port) for port in ("", "COM3", "/dev/ttyACM0", "./kit", "serial:105",
                                           "tcp://[::1]:2000", "virtual:", "virtual:kit.json",
                                           "replay:session", r"\\.\COM10")),
        ("hosts.proxy", "http://me:word@proxy.example:3128"),
        ("account.email", "me@example.com"),
        ("fota.quiet_hours", "22:00-6:00"),
        ("fota.quiet_hours", "6:00-16:00"),
        ("provisioning.ledger", "boards.sqlite"),
        ("provisioning.ledger", "postgresql+psycopg://bench@db/boards?sslmode=verify-full"),
        *(("metrics.listen", host + ":9464") for host in ("[::1]", "127.0.0.1", "localhost", "")),
        ("location.interval_s", "20 min"),
    ],
)  # fmt: skip
def test_a_value_that_fits_is_written_and_loaded(file: Path, key: str, text: str) -> None:
    set_value(key, text, profile="lab")
    load("lab")


@pytest.mark.parametrize(
    ("text", "named"),
    [("[profiles]\nlab = 3", "profiles.lab"), ("[profiles.lab]\nkit = 3", "profiles.lab.kit")],
)
def test_a_key_of_what_is_no_table_is_refused_and_nothing_is_written(
    file: Path, text: str, named: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"{named} is not a table"):
        set_value("kit.port", "COM3", profile="lab")
    assert file.read_text() == text


def test_a_secret_of_a_profile_that_is_no_table_is_refused(file: Path) -> None:
    secrets = file.with_name("secrets.toml")
    secrets.touch(0o600)
    secrets.write_text("lab = 3")
    for change in (set_secret, lambda name, _value, *, profile: drop_secret(name, profile=profile)):
        with pytest.raises(ConfigError, match="lab is not a table"):
            change("api_key", "canary-value", profile="lab")
    assert secrets.read_text() == "lab = 3"


def test_a_secret_is_no_argument(file: Path) -> None:
    for key in ("api_key", "account.api_key"):
        with pytest.raises(UsageError, match="is a secret"):
            set_value(key, "canary-value", profile="lab")


def test_a_written_profile_is_private_and_complete(file: Path) -> None:
    old = os.umask(0)
    try:
        write_profile(
            "sim",
            {"hosts": {"api": "http://127.0.0.1:8001"}, "account": {"organization": "acme"}},
            {"api_key": "canary-api-key", "user_password": "with space"},
            file=file.parent / "new" / "config.toml",
        )
    finally:
        os.umask(old)
    written = file.parent / "new" / "config.toml"
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.with_name("secrets.toml").stat().st_mode & 0o777 == 0o600
    assert written.parent.stat().st_mode & 0o777 == 0o700
    configuration = load("sim", environ={"CELLAGENT_CONFIG": str(written)})
    assert configuration.profile.hosts.api == "http://127.0.0.1:8001"
    assert configuration.profile.fota.hosts == ("127.0.0.1",)
    assert configuration.secrets.get("api_key").reveal() == "canary-api-key"
    assert "canary" not in written.read_text()
    # A second profile leaves the first alone, and rewriting one keeps what else is set in it.
    write_profile("two", {"hosts": {"api": "http://127.0.0.1:8002"}}, {}, file=written)
    write_profile("sim", {"hosts": {"files": "http://127.0.0.1:8003"}}, {}, file=written)
    again = load("sim", environ={"CELLAGENT_CONFIG": str(written)})
    assert again.profile.hosts.api == "http://127.0.0.1:8001"
    assert again.profile.hosts.files == "http://127.0.0.1:8003"
    assert again.secrets.get("api_key").reveal() == "canary-api-key"
    assert load("two", environ={"CELLAGENT_CONFIG": str(written)}).profile.hosts.api


@pytest.mark.parametrize(
    ("profile", "named"),
    [
        ('base = "public"', "base = public"),
        ('hosts.api = "https://api.example.com"', "hosts.api = https://api.example.com"),
        ('hosts.api = "https://[::1"', r"hosts.api = https://\[::1"),
    ],
)
def test_a_profile_of_other_services_is_no_stand_in_s(file: Path, profile: str, named: str) -> None:
    file.write_text(f"[profiles.lab]\n{profile}\n")
    with pytest.raises(RefusedByRule, match=named):
        write_profile("lab", {"hosts": {"api": "http://127.0.0.1:8001"}}, {})
    assert file.read_text() == f"[profiles.lab]\n{profile}\n"


def test_a_profile_with_an_authority_of_its_own_may_be_a_stand_in_s(file: Path) -> None:
    file.write_text('[profiles.lab]\nhosts.ca_file = "ca.pem"\nkit.port = "COM3"\n')
    write_profile("lab", {"hosts": {"api": "http://127.0.0.1:8001"}}, {})
    assert load("lab").profile.hosts.ca_file == "ca.pem"


def test_a_key_of_a_new_profile_has_no_more_headers_than_it_needs(file: Path) -> None:
    set_value("kit.baud", "9600", profile="lab")
    assert file.read_text() == "[profiles.lab.kit]\nbaud = 9600\n"


def test_the_default_profile_can_be_set(file: Path) -> None:
    write_profile("sim", {}, {}, file=file)
    set_default_profile("sim")
    assert load().name == "sim"


def test_a_comma_too_many_in_a_list_is_no_item(file: Path) -> None:
    assert set_value("fota.hosts", "a.example,, b.example,", profile="lab") == [
        "a.example",
        "b.example",
    ]


def test_a_file_that_windows_wrote_with_its_mark_is_changed(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbfprofile = "lab"\r\n')
    set_value("kit.baud", "9600", profile="lab")
    assert load().profile.kit.baud == 9600


def test_a_secret_that_cannot_be_used_does_not_take_the_place_of_one_that_can(file: Path) -> None:
    set_secret("api_key", "canary-value", profile="lab")
    with pytest.raises(ConfigError, match="api_key"):
        set_secret("api_key", "two\nlines", profile="lab")
    assert '"canary-value"' in file.with_name("secrets.toml").read_text()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_secret_is_not_added_to_a_file_that_others_can_read(file: Path) -> None:
    secrets = file.with_name("secrets.toml")
    secrets.touch()
    secrets.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        set_secret("api_key", "canary-value", profile="lab")
    assert secrets.read_text() == ""


def test_a_section_that_is_not_set_is_taken_back_and_no_section_refused(file: Path) -> None:
    assert unset_value("kit", profile="lab") is False
    with pytest.raises(ConfigError, match="kitt"):
        unset_value("kitt", profile="lab")


def test_a_place_on_the_hub_has_a_name_though_it_has_dots(file: Path) -> None:
    set_value("provisioning.slots.1-1.4.1", "A1", profile="lab")
    set_value("provisioning.slots.1-1.4.2", "A2", profile="lab")
    configuration = load("lab")
    assert configuration.profile.provisioning.slots == {"1-1.4.1": "A1", "1-1.4.2": "A2"}
    assert configuration.origins["provisioning.slots.1-1.4.1"].kind == "file"
    assert unset_value("provisioning.slots.1-1.4.1", profile="lab") is True
    assert load("lab").profile.provisioning.slots == {"1-1.4.2": "A2"}


@pytest.mark.parametrize(
    ("table", "named"),
    [("provisioning.slots", "provisioning.slots.NAME"), ("kits", "kits.NAME.KEY")],
)
def test_a_table_is_not_set_as_a_whole(file: Path, table: str, named: str) -> None:
    with pytest.raises(UsageError, match="is a table") as refused:
        set_value(table, "A1", profile="lab")
    assert f"config set {named} VALUE" in refused.value.hint
    assert not file.exists()


def test_a_text_where_a_table_should_be_is_told_the_way_out(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[profiles.lab.provisioning]\nslots = "A1"\n')
    with pytest.raises(ConfigError, match="must be a table") as refused:
        load("lab")
    assert "`cellagent config unset provisioning.slots`" in refused.value.hint
    assert unset_value("provisioning.slots", profile="lab") is True
    set_value("provisioning.slots.1-1.4", "A1", profile="lab")
    assert load("lab").profile.provisioning.slots == {"1-1.4": "A1"}


def test_a_linked_file_is_changed_where_it_is_kept(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "cellagent.toml"
    kept.parent.mkdir()
    kept.write_text("# kept elsewhere\n")
    file.symlink_to(kept)
    set_value("kit.baud", "9600", profile="lab")
    assert file.is_symlink()
    assert "# kept elsewhere" in kept.read_text()
    assert load("lab").profile.kit.baud == 9600


@pytest.mark.parametrize(
    ("key", "taken", "again"),
    [
        ("port", "ttyACM0", "by-id"),
        ("port", "serial:1050", "serial:001050"),
        ("console_port", "by-id", "ttyACM0"),
        ("device_id", "mine", "mine"),
    ],
)
def test_what_another_kit_has_is_not_given_to_a_second_one(
    file: Path, tmp_path: Path, key: str, taken: str, again: str
) -> None:
    (tmp_path / "ttyACM0").touch()
    (tmp_path / "by-id").symlink_to("ttyACM0")
    if taken in {"ttyACM0", "by-id"}:
        taken, again = f"{tmp_path}/{taken}", f"{tmp_path}/{again}"
    set_value(f"kits.A.{key}", taken, profile="lab")
    set_value(f"kits.A.{key}", taken, profile="lab")
    before = file.read_text()
    with pytest.raises(UsageError, match=f"^kit A has the {key} {taken}") as refused:
        set_value(f"kits.B.{key}", again, profile="lab")
    assert refused.value.hint == f"`cellagent config unset kits.A.{key}` frees it"
    assert file.read_text() == before
    set_value("kits.B.slot", "1", profile="lab")
    unset_value(f"kits.A.{key}", profile="lab")
    set_value(f"kits.B.{key}", again, profile="lab")


def test_what_others_set_at_the_same_time_is_lost_by_nobody(file: Path) -> None:
    ports = {f"kits.k{number}.port": f"/dev/none{number}" for number in range(12)}
    with ThreadPoolExecutor(len(ports)) as together:
        [*_] = together.map(lambda key: set_value(key, ports[key], profile="lab"), ports)
    kits = load("lab").profile.kits
    assert {f"kits.{name}.port": kit.port for name, kit in kits.items()} == ports
