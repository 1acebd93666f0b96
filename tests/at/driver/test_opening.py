"""Opening: the transport of a port's name, and the handshake that finds who answers."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from at.driver.modem import Modem, open_modem
from at.driver.opening import is_garbage, is_system_port, silence, transport_of
from at.protocol.dialect import Dialect, Terminator
from at.protocol.errors import AtError, NoAnswer, PortNotFound
from at.transcripts.replay_transport import ReplayTransport
from at.transport.event_loop import SerialTransport
from at.transport.tcp import TcpTransport
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import READS, LineModem, echoing
from tests.support.modem.memory_transport import MemoryTransport


def test_a_silent_port_is_named_and_nothing_hangs() -> None:
    async def session() -> None:
        far = LineModem()
        far.transport.far_end = lambda _data: None
        modem = Modem(far.transport)
        with pytest.raises(AtError, match="nothing answers AT"):
            await modem.open()

    virtual_time.run(session())


@pytest.mark.parametrize(
    ("port", "kind"),
    [
        ("tcp://127.0.0.1:4000", TcpTransport),
        ("virtual:", VirtualTransport),
        ("/dev/ttyACM0", SerialTransport),
        ("serial:1050934568", SerialTransport),
    ],
)
def test_the_name_of_a_port_says_its_transport(port: str, kind: type) -> None:
    assert type(transport_of(port)) is kind
    assert is_system_port(port) is (kind is SerialTransport)


async def test_a_virtual_kit_without_a_file_is_registered_and_one_with_it_is_fresh(
    tmp_path,
) -> None:
    async def told(port: str) -> list[str]:
        async with open_modem(port) as modem:
            assert modem._link.listener is None, "what arrives in a month is kept by nobody"
            answers = [await modem.execute(line) for line in ("AT+CFUN?", "AT+CEREG?", "AT+CCLK?")]
            return [answer.lines[0] if answer.ok else "ERROR" for answer in answers]

    mode, registration, clock = await told("virtual:")
    assert (mode, registration) == ("+CFUN: 1", "+CEREG: 0,1")
    assert clock.startswith("+CCLK:")
    fresh = await told(f"virtual:{tmp_path / 'kit.json'}")
    assert fresh == ["+CFUN: 0", "+CEREG: 0,0", "ERROR"]


def test_a_recording_is_a_port_by_its_file(tmp_path) -> None:
    (tmp_path / "x.transcript").write_text("> AT\n< OK\n")
    port = f"replay:{tmp_path / 'x.transcript'}"
    assert type(transport_of(port)) is ReplayTransport
    assert not is_system_port(port)


def test_no_name_names_no_port() -> None:
    with pytest.raises(PortNotFound):
        transport_of("")


@pytest.mark.parametrize("dialect", ["auto", "serial-modem"])
@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (b"\r", Terminator.CR),
        (b"\n", Terminator.LF),
        (b"\r\n", Terminator.CRLF),
        (b"\x00", Terminator.NUL),
    ],
)
def test_the_terminator_is_found_by_completing_the_question(
    ends: bytes, found: Terminator, dialect: str
) -> None:
    typed = bytearray()

    def far_end(data: bytes) -> None:
        typed.extend(data)
        while ends in typed:
            line = bytes(typed[: typed.index(ends)])
            del typed[: len(line) + len(ends)]
            # With LF alone as its end, a CR is text, and the command none that is known.
            bad = b"\r" in line and ends == b"\n"
            answer = READS.get(line.decode().strip(), "+CMEE: 1").encode()
            transport.deliver(b"ERROR\r\n" if bad else answer + b"\r\nOK\r\n")

    async def session() -> tuple[Terminator, Dialect]:
        modem = Modem(transport, dialect=dialect)
        await modem.open()
        await modem.close()
        return modem.terminator, modem.dialect

    transport = MemoryTransport(far_end)
    asked_for = Dialect.AT_HOST if dialect == "auto" else Dialect.SERIAL_MODEM
    assert virtual_time.run(session()) == (found, asked_for)


def test_a_setting_that_noise_made_no_number_keeps_nobody_out() -> None:
    async def session() -> list[str]:
        far = LineModem()
        far.reads = {"AT+CMEE?": "+CMEE: \xb2"}
        modem = Modem(far.transport)
        await modem.open()
        await modem.close()
        return far.received

    assert not any("+CMEE=" in line for line in virtual_time.run(session()))


def test_what_an_earlier_client_left_half_typed_does_not_hide_the_modem() -> None:
    async def session() -> list[str]:
        far = LineModem(echoing)
        far._buffer = b'AT%CMNG=0,1,0,"-----BEGIN'
        modem = Modem(far.transport)
        await modem.open()
        await modem.close()
        return far.received

    heard = virtual_time.run(session())
    assert heard[-3:] == ["AT+CFUN?", "AT+CMEE=1", "AT+CMEE=0"]
    assert not any(line.endswith('"') and "CMNG" in line for line in heard)


@given(
    owed=st.sampled_from(["OK", "ERROR", '%KEYGEN: "AAAA"\r\nOK', "+CMEE: 0\r\nOK"]),
    after_s=st.floats(0, 6),
    answer_s=st.floats(0, 0.2),
    queues=st.booleans(),
)
@example(owed="OK", after_s=0, answer_s=0, queues=True)
@example(owed="OK", after_s=1.5, answer_s=0.2, queues=True)
def test_an_answer_that_an_earlier_client_was_owed_is_none_of_ours(
    owed: str, after_s: float, answer_s: float, queues: bool
) -> None:
    async def session() -> None:
        far = LineModem(echoing, lambda _command: answer_s, queues=queues)
        loop = asyncio.get_running_loop()
        # It is at work for a client that was killed.
        far._free_at = loop.time() + after_s + 0.001 * queues
        loop.call_later(after_s, far.say, *owed.split("\r\n"))
        modem = Modem(far.transport)
        await modem.open()
        for line in ("AT+CGMM", "AT%XICCID"):
            answer = await modem.execute(line)
            assert answer.lines == (echoing(line),)
        await modem.close()

    virtual_time.run(session())


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1))
def test_text_is_no_garbage(text: str) -> None:
    assert not is_garbage(text.encode() + b"\r\n")


def test_where_more_than_a_quarter_is_no_text_it_is_garbage() -> None:
    assert not is_garbage(b"OK\r\xff")
    assert is_garbage(b"OK\xff")


@pytest.mark.parametrize(
    ("received", "hint"),
    [
        (b"", "which port"),
        (bytes(range(128, 200)), "the speed"),
        (b"hello\r\n", "console"),
        (b"count\r\n0\r\nhello\r\n", "console"),
        (b"[00:00:01.000] <dbg> at: +CMEE: 0\r\n", "console"),
        (b"\r\n\xff+CMEE: 0\r\n\r\n\xffOK\r\n", "another cable"),
        (b"+CMEE: 0\r\n0\r", "`printf 'ATV1\\r' > /dev/ttyACM0`"),
    ],
)
def test_silence_says_what_came_instead_and_what_to_try(received: bytes, hint: str) -> None:
    error = silence("/dev/ttyACM0", received)
    assert isinstance(error, NoAnswer)
    assert error.received == received
    assert hint in error.hint


@pytest.mark.parametrize(
    ("port", "way"),
    [
        ("/tmp/my kit", "`printf 'ATV1\\r' > '/tmp/my kit'` has it answer in words, then"),
        ("tcp://127.0.0.1:2000", "send it ATV1 with a terminal program, then"),
    ],
)
def test_the_way_back_from_numbers_can_be_pasted_where_the_port_is_a_file(
    port: str, way: str
) -> None:
    assert silence(port, b"+CMEE: 0\r\n0\r").hint.startswith(way)


def test_a_modem_before_whose_every_line_there_is_noise_is_no_console() -> None:
    class NoisyModem(LineModem):
        def say(self, *lines: str) -> None:
            super().say(*(f"~{line}" for line in lines))

    async def session() -> None:
        await Modem(NoisyModem().transport).open()

    with pytest.raises(NoAnswer, match=r"come damaged, as '~\+CMEE: 0'"):
        virtual_time.run(session())


def module(line: str) -> str | None:
    return {"AT+CGMM": "nRF93M1-LABA-A0A (20250428)"}.get(line, "")


async def dialect_of(far: LineModem, **options: str) -> tuple[Dialect, list[str]]:
    modem = Modem(far.transport, **options)
    await modem.open()
    await modem.close()
    return modem.dialect, far.received


def test_the_model_tells_an_nrf93m1_from_a_serial_modem() -> None:
    found, asked = virtual_time.run(dialect_of(LineModem(module)))
    assert (found, asked[:2]) == (Dialect.NRF93M1, ["AT+CMEE?", "AT+CGMM"])
    other = virtual_time.run(dialect_of(LineModem(lambda line: module(line) and "nRF9151-LACA")))
    assert other[0] is Dialect.SERIAL_MODEM


def test_a_modem_that_an_earlier_client_left_in_data_mode_is_known_by_its_first_answer() -> None:
    far = LineModem()
    far.data_mode = True
    assert virtual_time.run(dialect_of(far))[0] is Dialect.SERIAL_MODEM


def test_a_dialect_that_is_named_is_not_asked_for() -> None:
    found, asked = virtual_time.run(dialect_of(LineModem(module), dialect="nrf93m1"))
    assert found is Dialect.NRF93M1
    assert "AT+CGMM" not in asked


class ModuleShell:
    """The shell of the nRF93M1 kit's host program: `modem at`, and no `at`."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.transport = MemoryTransport(self.receive)
        self.typed: list[str] = []

    def receive(self, data: bytes) -> None:
        line = data.decode().strip()
        if not line or line == "~~~~":
            return
        self.typed.append(line)
        word = line.split()[0]
        if line.startswith("modem at "):
            text = self.answer
        else:
            text = f"{word}: command not found\r\n".encode()
        shown = data.replace(b"\r", b"\r\n") + text + b"\x1b[1;32muart:~$ \x1b[m"
        self.transport.deliver(shown)


def test_a_shell_whose_command_is_modem_at_is_found() -> None:
    far = ModuleShell(b"+CMEE: 1\r\nOK\r\n")

    async def session() -> tuple[Dialect, bool]:
        modem = Modem(far.transport)
        await modem.open()
        far.answer = b"OK\r\n"
        answer = await modem.execute('AT%REGJWT="team"')
        await modem.close()
        return modem.dialect, answer.ok

    assert virtual_time.run(session()) == (Dialect.MODEM_SHELL, True)
    assert far.typed[-1] == "modem at 'AT%REGJWT=\"team\"'"


@pytest.mark.parametrize(
    ("words", "code"),
    [("AT command failed (-11)", -11), ("AT pipe busy", None), ("modem is not ready", None)],
)
def test_the_words_of_that_shell_for_a_failure_end_an_answer(words: str, code: int | None) -> None:
    far = ModuleShell(b"+CMEE: 1\r\nOK\r\n")

    async def session() -> tuple[str | None, int | None, str]:
        modem = Modem(far.transport, dialect="modem-shell")
        await modem.open()
        far.answer = words.encode() + b"\r\n"
        answer = await modem.execute("AT+CGMM")
        await modem.close()
        return answer.final, answer.code, answer.text

    assert virtual_time.run(session()) == ("ERROR", code, words)
