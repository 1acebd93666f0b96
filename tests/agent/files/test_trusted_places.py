"""Files and folders that other users could change are refused, with the way out."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.config.load import load
from agent.config.write import set_default_profile, set_value, write_profile
from agent.errors import ConfigError
from agent.files import trusted_places
from agent.files.private_files import make_private_folder, read_plain, touch_private, write_private
from agent.files.trusted_places import (
    UntrustedPlace,
    _Place,
    require_trusted_folder,
    require_trusted_way,
)
from tests.support.commands.command_line import cellagent

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
STATE_COMMANDS = [("outbox", "list"), ("status",), ("provision", "status"), ("reload",)]


@pytest.fixture
def group_of_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files' group be this user's own, as where the umask is 002."""
    user = pwd.getpwuid(os.geteuid())
    alone = grp.struct_group((user.pw_name, "x", user.pw_gid, []))
    monkeypatch.setattr(grp, "getgrgid", lambda _number: alone)
    monkeypatch.setattr(pwd, "getpwall", lambda: [user])


@pytest.fixture
def group_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    many = grp.struct_group(("staff", "x", 50, ["another"]))
    monkeypatch.setattr(grp, "getgrgid", lambda _number: many)


@pytest.fixture
def warnings_of(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    trusted_places._warn.cache_clear()
    return lambda: caplog.text


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CELLAGENT_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def open_to_all(state: Path) -> None:
    (state / "run").mkdir(mode=0o700)
    state.chmod(0o777)


def pasted(hint: str) -> None:
    """Run the command of a hint as a person would paste it."""
    command = hint.split("`")[1].removeprefix("sudo ")
    subprocess.run(["sh", "-c", command], check=True)


def test_a_place_of_this_user_alone_is_taken_and_so_is_one_that_is_not_there(
    tmp_path: Path,
) -> None:
    require_trusted_folder(tmp_path)
    require_trusted_folder(tmp_path / "not" / "there")
    make_private_folder(tmp_path / "state")
    touch_private(tmp_path / "state" / "ledger.sqlite")


@pytest.mark.parametrize("mode", [0o777, 0o703, 0o702])
def test_a_state_folder_that_others_may_write_is_refused_and_the_hint_mends_it(
    state: Path, mode: int
) -> None:
    state.chmod(mode)
    for folder in (state, state / "run"):
        with pytest.raises(UntrustedPlace, match="other users of this host may change") as refused:
            make_private_folder(folder)
    assert refused.value.exit_code == 4
    assert str(state) in str(refused.value)
    assert "CELLAGENT_STATE_DIR" in refused.value.hint
    pasted(refused.value.hint)
    make_private_folder(state / "run")


def test_a_shared_folder_itself_holds_no_state_and_nobody_is_told_to_close_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.chmod(0o1777)
    with pytest.raises(UntrustedPlace, match="may change") as sticky:
        make_private_folder(state)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    status = os.stat_result((0o40777, 0, 0, 1, trusted_places._SYSTEM, 0, 0, 0, 0, 0))
    with pytest.raises(UntrustedPlace, match="may change") as system:
        trusted_places._require_trusted([_Place(state, leads=False, status=status)])
    for refused in (sticky, system):
        assert "chmod" not in refused.value.hint
        assert "CELLAGENT_STATE_DIR" in refused.value.hint


@pytest.mark.parametrize(
    ("user", "leads", "owner", "says"),
    [
        (
            54321,
            False,
            4711,
            "run this as number 4711, or, if nothing of that user needs it, `sudo",
        ),
        (54321, True, 4711, "run this as number 4711, or use a folder that only you may change"),
        (0, False, 1, f"run this as {pwd.getpwuid(1).pw_name}, or"),
    ],
    ids=["ours to take", "a folder that leads there", "as root"],
)
def test_a_folder_of_another_user_is_refused(
    user: int, leads: bool, owner: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    status = os.stat_result((0o40700, 0, 0, 1, owner, 0, 0, 0, 0, 0))
    with pytest.raises(UntrustedPlace, match="belongs to another user") as refused:
        trusted_places._require_trusted([_Place(tmp_path, leads=leads, status=status)])
    assert refused.value.hint.startswith(says)
    assert (f'chown -R "$(id -un)" {tmp_path}`' in refused.value.hint) is says.endswith("`sudo")


def test_what_leads_there_may_be_sticky_as_tmp_is_but_not_open_to_all(tmp_path: Path) -> None:
    between = tmp_path / "between"
    (between / "state").mkdir(parents=True, mode=0o700)
    between.chmod(0o1777)
    require_trusted_folder(between / "state")
    require_trusted_way(between / "config.toml")
    between.chmod(0o777)
    for check in (require_trusted_folder, require_trusted_way):
        with pytest.raises(UntrustedPlace, match=f"may change {between},"):
            check(between / "state" / "x")


def test_a_link_does_not_hide_where_it_leads_nor_where_it_is(tmp_path: Path) -> None:
    open_to_all, mine = tmp_path / "open", tmp_path / "mine"
    (open_to_all / "state").mkdir(parents=True)
    (mine / "state").mkdir(parents=True, mode=0o700)
    open_to_all.chmod(0o777)
    (mine / "link").symlink_to(open_to_all / "state")
    (open_to_all / "link").symlink_to(mine / "state")
    for link in (mine / "link", open_to_all / "link"):
        with pytest.raises(UntrustedPlace, match=f"may change {open_to_all},"):
            require_trusted_folder(link)


def test_a_file_of_state_that_others_may_write_is_refused(state: Path) -> None:
    ledger = state / "ledger.sqlite"
    touch_private(ledger)
    ledger.chmod(0o606)
    with pytest.raises(UntrustedPlace, match=r"may change .*ledger\.sqlite"):
        touch_private(ledger)


@pytest.mark.usefixtures("group_of_this_user_alone")
def test_a_group_of_this_user_alone_is_warned_of_once(
    file: Path, warnings_of: Callable[[], str]
) -> None:
    file.write_text('profile = "custom"\n')
    file.chmod(0o664)
    file.parent.chmod(0o775)
    load()
    load()
    assert warnings_of().count("`chmod go-w ") == 1
    assert str(file) in warnings_of()


@pytest.mark.usefixtures("group_of_many")
@pytest.mark.parametrize("has_a_name", [True, False])
def test_a_group_with_others_in_it_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, has_a_name: bool
) -> None:
    if not has_a_name:  # as in a container
        monkeypatch.setattr(grp, "getgrgid", {}.__getitem__)
    file.write_text('profile = "custom"\n')
    file.chmod(0o644)
    assert load().name == "custom", "who may only read it does no harm"
    file.chmod(0o664)
    with pytest.raises(ConfigError, match="other users of this host may change"):
        load()


@pytest.mark.usefixtures("group_of_this_user_alone")
@pytest.mark.parametrize("who", ["joined it", "has it as their own", "is in one of its name"])
def test_somebody_else_in_the_group_of_this_user_may_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    tmp_path.chmod(0o770)
    user = pwd.getpwuid(os.geteuid())
    if who == "joined it":
        group = grp.struct_group((user.pw_name, "x", user.pw_gid, [user.pw_name, "another"]))
        monkeypatch.setattr(grp, "getgrgid", lambda _number: group)
    elif who == "is in one of its name":
        group = grp.struct_group((user.pw_name, "x", user.pw_gid + 1, []))
        monkeypatch.setattr(grp, "getgrgid", lambda _number: group)
    else:
        another = pwd.struct_passwd(("another", "x", 4242, user.pw_gid, "", "/", "/bin/sh"))
        monkeypatch.setattr(pwd, "getpwall", lambda: [user, another])
    with pytest.raises(UntrustedPlace):
        require_trusted_folder(tmp_path)


@pytest.mark.usefixtures("group_of_this_user_alone")
def test_an_access_list_for_others_is_no_private_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o770)
    require_trusted_folder(tmp_path)
    monkeypatch.setattr(os, "listxattr", lambda _path: ["system.posix_acl_access"], raising=False)
    with pytest.raises(UntrustedPlace):
        require_trusted_folder(tmp_path)


def test_a_configuration_that_others_may_write_is_refused_and_the_hint_mends_it(file: Path) -> None:
    file.write_text('profile = "custom"\n')
    file.chmod(0o646)
    with pytest.raises(ConfigError, match=r"the configuration: .*config\.toml") as refused:
        load()
    pasted(refused.value.hint)
    assert load().name == "custom"


def test_one_command_closes_every_place_that_is_open(file: Path) -> None:
    """As a checkout of a continuous integration that runs with a umask of 0."""
    file = file.parent / "a checkout" / "agent" / file.name
    file.parent.mkdir(parents=True)
    file.write_text('profile = "custom"\n')
    for place in (file, file.parent, file.parent.parent):
        place.chmod(0o777)
    with pytest.raises(ConfigError, match="may change") as refused:
        load(environ={"CELLAGENT_CONFIG": str(file)})
    pasted(refused.value.hint)
    assert load(environ={"CELLAGENT_CONFIG": str(file)}).name == "custom"


def test_a_configuration_in_a_folder_that_others_may_write_is_refused(file: Path) -> None:
    file.write_text('profile = "custom"\n')
    file.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="other users of this host may change"):
        load()
    with pytest.raises(UntrustedPlace):
        write_private(file.with_name("secrets.toml"), b"")
    file.parent.chmod(0o1777)
    assert load().name == "custom"


def test_what_others_may_have_written_is_not_taken_over_into_a_file_of_ours(file: Path) -> None:
    file.write_text('[profiles.evil.hosts]\napi = "https://evil.example"\n')
    file.chmod(0o606)
    for write in (
        lambda: set_default_profile("custom"),
        lambda: write_profile("mine", {}, {}),
        lambda: set_value("kit.port", "virtual:", profile="mine"),
    ):
        with pytest.raises(ConfigError, match="may change"):
            write()
    assert file.stat().st_mode & 0o777 == 0o606


def test_a_configuration_may_come_from_a_pipe_or_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, writes = os.pipe()
    os.write(writes, b'profile = "public"\n')
    os.close(writes)
    monkeypatch.setenv("CELLAGENT_CONFIG", f"/dev/fd/{reads}")
    assert load().name == "public"
    os.close(reads)
    monkeypatch.setenv("CELLAGENT_CONFIG", os.devnull)
    assert load().name == "custom"


def test_a_named_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    chain = tmp_path / "chain.pem"
    chain.write_text("x")
    assert read_plain(chain, "the CA chain") == b"x"
    chain.chmod(0o666)
    link = tmp_path / "link.pem"
    link.symlink_to(chain)
    for name in (chain, link):
        with pytest.raises(ConfigError, match="the CA chain: other users"):
            read_plain(name, "the CA chain")


@pytest.mark.parametrize("words", STATE_COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("open_to_all")
async def test_commands_refuse_the_state_of_others_and_say_the_way_out(
    state: Path, words: tuple[str, ...]
) -> None:
    done = await cellagent(*words, "--json")
    assert done.code == 4, done.out + done.err
    error = json.loads(done.out)["error"]
    assert (error["kind"], str(state) in error["message"]) == ("untrusted-place", True)
    pasted(error["try"])
    assert (await cellagent(*words, "--json")).code != 4


@pytest.mark.usefixtures("open_to_all")
async def test_a_folder_of_agents_that_others_may_write_is_not_asked_for_a_kit(state: Path) -> None:
    done = await cellagent("modem", "at", "--port", "tcp://127.0.0.1:9", "AT")
    assert (done.code, "untrusted" in done.err, str(state) in done.err) == (4, False, True)


def test_what_a_user_names_to_write_to_may_be_shared(tmp_path: Path) -> None:
    from agent.files.private_files import make_folder

    tmp_path.chmod(0o777)
    make_folder(tmp_path / "labels")


@pytest.mark.parametrize("command", STATE_COMMANDS, ids=" ".join)
async def test_a_state_folder_that_is_a_loop_of_links_is_named(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """Path.resolve raises RuntimeError for it before Python 3.13."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    done = await cellagent(*command, environment={"CELLAGENT_STATE_DIR": str(loop)})
    assert "Traceback" not in done.err
    if command == ("outbox", "list"):
        assert f"cannot make the folder {loop}" in done.err
        assert "`export CELLAGENT_STATE_DIR=FOLDER`" in done.err
