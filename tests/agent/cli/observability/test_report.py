"""`cellagent report`: what is checked and queued of events, chunks and core dumps."""

from __future__ import annotations

import json
import os
import struct
import sys

import pytest

from tests.support.commands.command_line import json_objects as cellagent
from tests.support.dumps.elf_files import linux_core
from tests.support.dumps.zephyr_dumps import arch, header, memory, partition

IDENTITY = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk"]
IDENTITY += ["--software-type", "main", "--software-version", "1.0.0"]


async def test_a_bad_event_is_refused_and_none_of_an_import_is_kept(offline):
    event = {
        "type": "heartbeat",
        "device_serial": "kit 1",
        "hardware_version": "a",
        "software_type": "b",
        "software_version": "1",
        "event_info": {"metrics": {}},
    }
    good = {**event, "device_serial": "kit-1"}
    text = f"{json.dumps(good)}\n{json.dumps(event)}\n".encode()
    code, (told,), _ = await cellagent("report", "event", "--from", "-", stdin=text)
    assert code == 2
    assert "event 2 of 2: device_serial" in told["error"]["message"]
    code, (told,), _ = await cellagent("report", "event", "--from", "-", stdin=text[:-2])
    assert (code, "(line 2: Expecting ',' delimiter)" in told["error"]["message"]) == (2, True)
    code, (told,), _ = await cellagent("report", "event", "--from", "-", stdin=b"[\n1,\n2")
    assert (code, "(Expecting ',' delimiter: line 3" in told["error"]["message"]) == (2, True)
    code, (told,), _ = await cellagent("report", "event", "--from", "/dev/zero")
    assert (code, told["error"]["message"]) == (2, "/dev/zero: over 64 MiB, or without end")
    _, (summary,), _ = await cellagent("outbox", "list")
    assert summary["summary"]["waiting"] == 0


async def test_a_metric_whose_digits_no_number_holds_is_a_text(online):
    given = ["iccid=89314404000123456789", "old_iccid=8931440400012345678", "code=0042"]
    given += ["uptime_s=17663", "ratio=0.5", "imei=352656100441776", "build=2_0_1"]
    options = [word for each in given for word in ("--metric", each)]
    assert (await cellagent("report", "event", *IDENTITY, *options))[0] == 0
    _, (event,), _ = await cellagent("observe", "event", "list")
    assert event["event_info"]["metrics"] == {
        "iccid": "89314404000123456789",
        "old_iccid": "8931440400012345678",
        "code": "0042",
        "uptime_s": 17663,
        "ratio": 0.5,
        "imei": 352656100441776,
        "build": "2_0_1",
    }


async def test_a_trace_takes_its_numbers_as_crashes_are_printed(online):
    trace = ["--reason", "0x9300", "--pc", "0x0003D700", "--lr", "250241"]
    assert (await cellagent("report", "event", *IDENTITY, *trace))[0] == 0
    _, (event,), _ = await cellagent("observe", "event", "list")
    assert event["event_info"] == {"reason": 0x9300, "pc": 0x3D700, "lr": 250241}
    code, (told,), _ = await cellagent("report", "event", *IDENTITY, "--reason", "9300h")
    assert code == 2
    assert "'9300h' is no number such as 37632 or 0x9300" in told["error"]["message"]


async def test_chunks_are_kept_in_order_from_the_file_form_too(offline):
    stored = b"".join(b"CHNK" + len(each).to_bytes(4, "big") + each for each in (b"abc", b"defg"))
    code, (told,), _ = await cellagent(
        "report", "chunks", "-", "--device-serial", "kit-1", "--queue", stdin=stored
    )
    assert (code, told["queued"]) == (0, 2)
    _, (first, second, _), _ = await cellagent("outbox", "list")
    assert (first["bytes"], second["bytes"]) == (3, 4)
    code, (told,), _ = await cellagent("outbox", "drop", str(first["id"]))
    assert (code, told) == (0, {"dropped": 1, "sending": 0})


async def test_where_no_chunk_is_it_says_what_one_looks_like(offline):
    words = ["report", "chunks", "-", "--device-serial", "kit-1"]
    code, (told,), _ = await cellagent(*words, stdin=b"\x08\x02\xa0\n")
    assert (code, "lines with MC: on `mflt export`" in told["error"]["try"]) == (1, True)
    line = b'{"chunk": "0802a0"}'
    assert (await cellagent(*words, "--queue", stdin=line))[1][0]["queued"] == 1


async def test_what_is_no_core_dump_is_refused(offline, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"not a dump")
    code, (told,), _ = await cellagent("report", "coredump", str(path), *IDENTITY)
    assert code == 2
    assert "no core dump" in told["error"]["message"]


@pytest.mark.parametrize(("said", "told"), [(28, ""), (29, "the header says 29 bytes, 28 are")])
async def test_a_core_dump_that_is_not_whole_is_sent_with_a_word(offline, tmp_path, said, told):
    path = tmp_path / "core.bin"
    path.write_bytes(struct.pack("<7I", 0x45524F43, 2, said, 0x504D5544, 0, 0, 0))
    code, (counts,), noted = await cellagent("report", "coredump", str(path), "--queue")
    assert (code, counts["queued"]) == (0, 1)
    assert ("the service may not read it" in noted) == bool(told)
    assert told in noted


async def test_a_linux_core_that_is_not_whole_is_sent_with_a_word(offline, tmp_path):
    path = tmp_path / "core"
    for end, told in ((None, ""), (-9, "9 bytes are missing"), (100, "it ends inside its head")):
        path.write_bytes(linux_core()[:end])
        words = ["report", "coredump", str(path), *IDENTITY, "--queue"]
        code, (counts,), noted = await cellagent(*words)
        assert (code, counts["queued"], bool(noted)) == (0, 1, bool(told))
        assert told in noted


async def test_erased_flash_behind_a_core_dump_is_not_sent(offline, tmp_path):
    # As a debugger reads the partition; the dump has as many bytes as its header says.
    path = tmp_path / "partition.bin"
    whole = struct.pack("<7I", 0x45524F43, 2, 28, 0x504D5544, 0, 0, 0)
    path.write_bytes(whole + b"\xff" * 4096)
    code, _, noted = await cellagent("report", "coredump", str(path), "--queue")
    _, (item, _), _ = await cellagent("outbox", "list")
    assert (code, noted, item["bytes"]) == (0, "", len(whole))


async def test_of_a_partition_the_zephyr_dump_alone_is_sent(offline, tmp_path):
    path = tmp_path / "partition.bin"
    whole = header() + arch()
    path.write_bytes(partition(whole))
    code, _, noted = await cellagent("report", "coredump", str(path), *IDENTITY, "--queue")
    _, (item, *_), _ = await cellagent("outbox", "list")
    assert (code, noted, item["bytes"]) == (0, "", len(whole))


async def test_a_name_that_breaks_its_rule_is_refused_also_where_it_is_not_needed(
    offline, tmp_path
):
    path = tmp_path / "core.bin"
    path.write_bytes(struct.pack("<7I", 0x45524F43, 2, 28, 0x504D5544, 0, 0, 0))
    code, (told,), _ = await cellagent("report", "coredump", str(path), "--device-serial", "a b")
    assert (code, "device_serial 'a b'" in told["error"]["message"]) == (2, True)


async def test_a_zephyr_dump_needs_the_identity_that_it_does_not_hold(offline, tmp_path):
    path = tmp_path / "zephyr.bin"
    path.write_bytes(header() + arch())
    code, (told,), _ = await cellagent("report", "coredump", str(path), "--device-serial", "kit-1")
    assert code == 2
    assert "--hardware-version" in told["error"]["message"]
    code, (told,), _ = await cellagent("report", "coredump", str(path), *IDENTITY, "--queue")
    assert (code, told["queued"]) == (0, 2), "the dump, and a trace"


@pytest.mark.contract("O5.2", "O5.6")
async def test_a_zephyr_dump_is_told_as_a_trace_also_where_it_is_not_whole(online, tmp_path):
    path = tmp_path / "zephyr.bin"
    whole = header(reason=19) + arch() + memory(0x20000000, bytes(100))
    for dump, word, traces in (
        (whole, "", 1),
        (whole[:90], "it is not whole: it ends inside the header of block M", 2),
        (whole[:5], "it is not whole: it ends inside the header", 2),
    ):
        path.write_bytes(dump)
        code, _, said = await cellagent("report", "coredump", str(path), *IDENTITY)
        assert code == 0
        assert word in said
        assert bool(word) is (str(path) in said)
        _, lines, _ = await cellagent("observe", "trace", "list")
        found = [(each["reason"], each["trace_info"]["pc"]) for each in lines if "reason" in each]
        assert found == [("Memory Fault", 0x106)] * traces


@pytest.mark.contract("O5.2", "O5.6")
async def test_a_dump_under_wrong_names_is_sent_again_when_asked_to(offline, tmp_path):
    path = tmp_path / "crash.bin"
    path.write_bytes(header() + arch())
    report = ("report", "coredump", str(path), "--queue", *IDENTITY)
    right = ("--software-version", "9.9.9")
    _, (first,), _ = await cellagent(*report)
    _, (second,), told = await cellagent(*report, *right)
    _, (third,), _ = await cellagent(*report, *right, "--again")
    assert [each["queued"] for each in (first, second, third)] == [2, 0, 2]
    assert "--again" in told
    _, listed, _ = await cellagent("outbox", "list")
    assert listed[-1]["summary"]["waiting"] == 4


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such name")
async def test_a_dump_whose_name_is_no_utf_8_is_sent_under_its_name_escaped(online, tmp_path):
    path = tmp_path / os.fsdecode(b"crash-\xff\xe9.bin")
    path.write_bytes(header() + arch())
    code, (told,), said = await cellagent("report", "coredump", str(path), *IDENTITY)
    assert (code, told["delivered"]) == (0, 2)
    assert "crash-\\xff\\xe9.bin" in said
    code, (told,), _ = await cellagent("report", "file", "--kind", "bugreport", str(path))
    assert (code, told["uploaded"]) == (0, "crash-\\xff\\xe9.bin")


@pytest.mark.skipif(os.name != "posix", reason="needs a pipe that has a name")
@pytest.mark.parametrize(
    "words",
    [
        ("report", "coredump", "FILE", *IDENTITY),
        ("report", "file", "FILE", "--kind", "bugreport"),
        ("fota", "offer", "FILE", "--tag", "bench"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
async def test_what_is_read_twice_is_no_pipe_and_no_device(offline, tmp_path, words):
    os.mkfifo(tmp_path / "pipe")
    for file in (os.devnull, str(tmp_path / "pipe")):
        given = [file if word == "FILE" else word for word in words]
        code, (told,), _ = await cellagent(*given)
        assert (code, "a pipe or a device" in told["error"]["message"]) == (2, True)
