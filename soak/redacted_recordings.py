"""Recordings of the virtual modem, redacted: nobody is named, and they replay and decode as before.

Each is a session of the driver with a kit of its own, in one of the dialects: recorded as it is and
redacted at once. The redacted one is then played strictly to the same program, and both are
decoded and compared.
"""

from __future__ import annotations

import asyncio
import base64
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from trials.measure import Row, counted

from at.commands.clock import SetClock
from at.commands.credentials import (
    CredentialType,
    ListCredentials,
    ReadCredential,
    WriteCredential,
    sha256_of,
)
from at.commands.functional_mode import SetFunctionalMode
from at.commands.identity import ReadImei, ReadSerialNumber
from at.commands.jwt import MakeDefaultJwt, MakeJwt
from at.commands.keys import GenerateKey, ReadAttestation, ReadChallengedAttestation
from at.commands.sim import AccessSim, ReadCardNumber, ReadSubscriber
from at.decode import Decoder
from at.device_uuid import read_device_uuid
from at.driver.modem import Modem
from at.protocol.dialect import Dialect
from at.protocol.errors import AtError, CommandRejected, TranscriptError
from at.tokens.jwt import verify
from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.redaction.resigning import published_key
from at.transcripts.replay_transport import ReplayTransport
from at.transcripts.step_matching import Playback
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import Transcript, format_transcript, parse_transcript
from at.virtual.modem import VirtualModem
from at.virtual.options import MODELS, MODULE, VirtualOptions
from at.virtual.transport import VirtualTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from at.transport.base import Receiver


NAME = "redacted-recordings"
SEED = 20261122
DIALECTS = ("at-host", "serial-modem", "shell")  # those of an nRF91
_ATTESTATION = re.compile(r'%ATTESTTOKEN: "([^"]*)')
_DAMAGE = (
    *("lost-bytes=0.002", "garbled-bytes=0.002", "doubled-bytes=0.002", "echo", "log-noise"),
    *("notice-mid-answer", "urc-flood", "no-newline=20000", "open-quote", "stuck-in-data-mode"),
)
_NAMING = (
    *("AT+CFUN=41", "AT+CGSN=1", "AT+CGSN", "AT+CGSN=2", "AT+CIMI", "AT%XICCID", "AT%DEVICEUUID"),
    *("AT+CRSM=176,12258,0,0,10", "AT+CRSM=176,28423,0,0,9", "AT#XUUID", "AT%JWT"),
    *("AT%KEYGEN=1,2,0", "AT%ATTESTTOKEN", "AT%CMNG=1"),
)
_PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
# Lines that name somebody, or are signed or hashed with what does, and members of decoded objects.
_MAY_CHANGE = re.compile(
    r"[0-9]{15}|[0-9a-f]{8}-|eyJ|0oRDo|%JWT|%KEYGEN|%ATTEST|%CMNG|%XICCID|\+CRSM|CERTIF",
    re.IGNORECASE,
)
_IDENTITY = {
    *("imei", "imeisv", "serial_number", "imsi", "iccid", "uuid", "device_uuid", "device_id"),
    *("kid", "key_id", "public_key_pem", "csr_pem", "subject", "common_name", "sub", "iss"),
    *("sha", "sha256", "content", "response", "line", "lines", "text", "command"),
}


class AsItIs(Redactor):
    """Redacts nothing: what the redacted recording is compared with."""

    def clean(self, data: bytes) -> bytes:
        return data


class TwiceRecorded:
    """A transport that records another one twice: as it is, and redacted."""

    def __init__(self, inner: VirtualTransport) -> None:
        self._inner = inner
        self._recorders = [Recorder(AsItIs()), Recorder(Redactor(identity=True))]
        self.steps: list[list[TranscriptStep]] = [[], []]
        self._receiver: Receiver | None = None
        self.name = inner.name

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        await self._inner.open(self)

    def write(self, data: bytes) -> None:
        self._record(Direction.SENT, data)
        self._inner.write(data)

    async def drain(self) -> None:
        await self._inner.drain()

    async def close(self) -> None:
        await self._inner.close()
        for recorder, steps in zip(self._recorders, self.steps, strict=True):
            steps.extend(recorder.finish())

    def data_received(self, data: bytes) -> None:
        self._record(Direction.RECEIVED, data)
        assert self._receiver is not None
        self._receiver.data_received(data)

    def connection_lost(self, reason: Exception | None) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.connection_lost(reason)

    def _record(self, direction: Direction, data: bytes) -> None:
        for recorder, steps in zip(self._recorders, self.steps, strict=True):
            steps.extend(recorder.add(direction, data, 0.0))


class Session:
    """A program with a modem: what it does is drawn from `seed`, and what it sends from answers."""

    def __init__(self, modem: Modem, seed: int, *, redacted: bool) -> None:
        self.modem = modem
        self.dice = random.Random(seed)
        self.redacted = redacted
        self.wrongs: list[str] = []

    async def run(self) -> None:
        """Ask about the kit, then do some of what a program may do, in any order."""
        await self.ask(SetFunctionalMode(41))  # SIM up, and the store may still be written to
        actions: list[Callable[[], Awaitable[None]]] = [
            *(self.identity, self.sim, self.key, self.public_key, self.attest, self.write),
            *(self.credentials, self.jwt, self.default_jwt, self.serial_modem, self.others),
        ]
        for action in self.dice.sample(actions, self.dice.randint(4, len(actions))):
            await action()

    async def ask(self, command: Any) -> Any:
        """Send a command; return its value, None where the modem refuses it."""
        try:
            return await self.modem.send(command)
        except CommandRejected:
            return None

    async def identity(self) -> None:
        await self.ask(ReadSerialNumber())
        for kind in (1, 2, 3):
            await self.ask(ReadImei(kind))
        await read_device_uuid(self.modem)

    async def sim(self) -> None:
        card, subscriber = await self.ask(ReadCardNumber()), await self.ask(ReadSubscriber())
        for file, size in ((0x2FE2, 10), (0x6F07, 9), (0x6FAD, 4), (0x6F40, 4)):
            read = await self.ask(AccessSim(176, file, 0, 0, size))
            digits = re.sub("(.)(.)", r"\2\1", (read and read.response) or "")
            if file == 0x2FE2 and card is not None and digits.rstrip("F") != card.iccid:
                self.wrongs.append("the file of the card's number is of another card")
            if file == 0x6F07 and subscriber is not None and digits[3:] != subscriber.imsi:
                self.wrongs.append("the file of the subscriber is of another one")

    async def key(self) -> None:
        subject = await self._subject()
        attributes = self.dice.choice(
            [None, f"O=Acme,CN={subject}", f"CN={subject},SERIALNUMBER=7"]
        )
        key = await self.ask(GenerateKey(self.dice.randrange(9), attributes=attributes))
        self._check_key(key)

    async def public_key(self) -> None:
        key = await self.ask(GenerateKey(self.dice.randrange(9), response_content=1))
        self._check_key(key)

    async def attest(self) -> None:
        challenge = self.dice.randbytes(16).hex()
        for command in (ReadAttestation(), ReadChallengedAttestation(challenge)):
            token = await self.ask(command)
            if token is not None and self.redacted:
                if token.checked_with([published_key().public_key()]).verified is not True:
                    self.wrongs.append("the attestation is not signed by the published key")
                if isinstance(command, ReadChallengedAttestation) and token.nonce != challenge:
                    self.wrongs.append("the challenge was lost")

    async def write(self) -> None:
        """Write a certificate that is another one in each run, and a key, and check the digests."""
        tag = self.dice.randrange(20, 29)
        uuid = await read_device_uuid(self.modem)
        body = base64.b64encode(f"{uuid} {id(self)}".encode() * 8).decode()
        for kind, content in (
            (CredentialType.CLIENT_CERTIFICATE, _PEM.format(body)),
            (CredentialType.PSK, f"{self.dice.getrandbits(128):x}"),
            (CredentialType.ROOT_CA, _PEM.format("Q0E=")),
        ):
            await self.modem.send(WriteCredential(tag, kind, content))
            listed = (await self.modem.send(ListCredentials(tag, kind))).credentials
            # The firmware behind a shell stores CR LF.
            end = "\r\n" if self.modem.dialect is Dialect.SHELL else "\n"
            if [one.sha for one in listed] != [sha256_of(content.replace("\n", end))]:
                self.wrongs.append(f"the digest of type {kind} is not that of what was written")

    async def credentials(self) -> None:
        listed = await self.ask(ListCredentials())
        for one in listed.credentials:
            await self.ask(ReadCredential(one.sec_tag, one.type))

    async def jwt(self) -> None:
        if self.dice.random() < 0.5:
            await self.modem.send(SetClock("26/03/14,12:00:00+00"))
        token = None
        for subject in ("", await self._subject(), "pump 17"):
            token = await self.ask(MakeJwt(subject, "aud", None))
            self._check_token(token)

    async def default_jwt(self) -> None:
        self._check_token(await self.ask(MakeDefaultJwt()))

    async def serial_modem(self) -> None:
        if self.modem.dialect is Dialect.SERIAL_MODEM:
            for line in ("AT#XUUID", "AT#XNRFCLOUD?", "AT#XSMVER"):
                await self.modem.execute(line)

    async def others(self) -> None:
        for line in ("AT+CEREG?", "AT+CFUN?", "AT%XMODEMUUID", "AT+CGMR", "AT%XVBAT", "AT+CESQ",
                     "AT%HWVERSION", "AT+COPS?", "AT%XSYSTEMMODE?", "AT+CGDCONT?"):  # fmt: skip
            try:
                await self.modem.execute(line)
            except CommandRejected:
                continue

    async def _subject(self) -> str:
        imei = (await self.modem.send(ReadImei())).imei
        return str(self.dice.choice([f"nrf-{imei}", await read_device_uuid(self.modem), imei]))

    def _check_key(self, key: Any) -> None:
        if key is not None and self.redacted:
            checked = key.checked_with([published_key().public_key()])
            if not (checked.verified and checked.digest_matches and key.self_signed is not False):
                self.wrongs.append("the key is not signed as it says")

    def _check_token(self, token: Any) -> None:
        if token is not None and self.redacted and not verify(token, published_key().public_key()):
            self.wrongs.append("the token is not signed by the published key")


def trial(seed: int) -> list[str]:
    """Return what is wrong with one recording."""
    return asyncio.run(_trial(seed))


async def _trial(seed: int) -> list[str]:
    dice = random.Random(seed)
    options = {
        "dialect": DIALECTS[seed % len(DIALECTS)],
        "model": dice.choice([name for name in MODELS if name != MODULE]),
        "imei": f"{dice.choice(['35265610', '86012604'])}{dice.randrange(10**6):06}",
        "uuid": str(UUID(int=dice.getrandbits(128), version=4)),
    }
    transport = TwiceRecorded(VirtualTransport(instant=True, **options))
    modem = Modem(transport)
    await modem.open()
    try:
        await Session(modem, seed, redacted=False).run()
        kit = transport._inner.modem.kit
        secrets = names_of(kit.saved.imei, kit.saved.uuid)
    finally:
        await modem.close()
    plain, redacted = (
        Transcript(tuple(steps), {"dialect": options["dialect"]}) for steps in transport.steps
    )
    text = format_transcript(redacted)
    wrongs = [
        f"{what} is left" for what, name in secrets.items() if re.search(name, text, re.IGNORECASE)
    ]
    redacted = parse_transcript(text)
    wrongs += differences(plain, redacted)

    playback = Playback(redacted)
    try:
        for step in plain.steps:
            if step.direction is Direction.SENT:
                playback.sent(step.data)
    except TranscriptError as error:
        wrongs.append(f"what was sent does not fit its own recording: {error}")

    replay = ReplayTransport(redacted)
    modem = Modem(replay)
    session = Session(modem, seed, redacted=True)
    try:
        await modem.open()
        await session.run()
    except AtError as error:
        wrongs.append(f"the replay ended: {replay.error or error!r}")
    finally:
        await modem.close()
    wrongs += session.wrongs
    wrongs += [f"never sent: line {step.line}" for step in replay.remaining[:1]]
    return [f"seed {seed}, {options['dialect']}: {wrong}" for wrong in wrongs]


def names_of(imei: str, uuid: str) -> dict[str, str]:
    """Return patterns of the kit's names, in whatever form a line may have them."""
    raw = UUID(uuid).bytes
    # In base64, the bytes stand in one of three ways: all but the ends are the same.
    encoded = [
        re.escape(base64.urlsafe_b64encode(b"\0" * shift + data).rstrip(b"=").decode()[4:-2])
        for data in (raw, uuid.encode(), imei.encode())
        for shift in range(3)
    ]
    return {
        "the IMEI": imei[:14],
        "the IMSI": imei[4:14],
        "the ICCID": imei[2:14],
        "the UUID": uuid.replace("-", "-?"),
        "the card's number in half bytes": re.sub("(.)(.)", r"\2\1", imei[2:14]),
        **{f"encoded {number}": text for number, text in enumerate(encoded)},
    }


def differences(plain: Transcript, redacted: Transcript) -> list[str]:
    """Return where two recordings differ in more than identity, decoded."""
    if [step.direction for step in plain.steps] != [step.direction for step in redacted.steps]:
        return ["the redacted recording has other steps"]
    wrongs = []
    before, after = decoded(plain), decoded(redacted)
    if len(before) != len(after):
        wrongs.append(f"{len(before)} objects became {len(after)}")
    for old, new in zip(before, after, strict=False):
        if without_identity(old) != without_identity(new):
            wrongs.append(f"{old} became {new}"[:600])
        elif lines_of(old) != lines_of(new) and not _MAY_CHANGE.search("\n".join(lines_of(old))):
            wrongs.append(f"changed without a name in it: {old}"[:600])
    if _shapes(before) != _shapes(after):
        wrongs.append("a signed text has another form or length")
    return wrongs[:5]


def _shapes(objects: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return how the attestations of a recording begin, and how long they are."""
    tokens = _ATTESTATION.findall("\n".join(line for one in objects for line in lines_of(one)))
    return [(token[:8], len(token)) for token in tokens]


def lines_of(decoded_object: dict[str, Any]) -> list[str]:
    """Return the lines of an object."""
    return decoded_object.get("lines", []) or [decoded_object.get("line", "")]


def decoded(transcript: Transcript) -> list[dict[str, Any]]:
    """Return the objects of a recording, each answer by the command before it."""
    objects: list[dict[str, Any]] = []
    received, command = b"", None
    for step in (*transcript.steps, None):
        if step is not None and step.direction is Direction.RECEIVED:
            received += step.data
            continue
        decoder = Decoder(command)
        objects += [*decoder.feed(received), *decoder.finish()]
        if step is not None:
            received = b""
            command = step.data.decode("latin-1").strip().removeprefix("at '").removesuffix("'")
    return objects


def without_identity(value: Any) -> Any:
    """Return a decoded value in which each name is its length, where length is kept."""
    if isinstance(value, dict):
        return {
            key: (item is None) if key in _IDENTITY else without_identity(item)
            for key, item in value.items()
        }
    return [without_identity(item) for item in value] if isinstance(value, list) else value


def names_left_on_a_damaged_line(seed: int, dialect: str, fault: str) -> list[str]:
    """Return the names that a recording has whose line loses, turns, doubles or adds bytes."""
    options = VirtualOptions(dialect=dialect, imei="35265610036787", faults=(fault,), instant=True)
    modem = VirtualModem(replace(options, seed=seed), now=0.0, unix_time=1_700_000_000.0)
    recorder = Recorder(Redactor(identity=True))
    steps: list[TranscriptStep] = []
    for number, line in enumerate(_NAMING):
        typed = Dialect(dialect).typed(line).encode() + b"\r"
        steps += recorder.add(Direction.SENT, typed, 0.0)
        modem.receive(typed, now=float(number))
        printed = modem.data_to_send()
        for start in range(0, len(printed), 37):
            steps += recorder.add(Direction.RECEIVED, printed[start : start + 37], 0.0)
    text = format_transcript(Transcript((*steps, *recorder.finish())))
    names = names_of(modem.kit.saved.imei, modem.kit.saved.uuid)
    return [
        f"{what} is left: seed {seed}, {dialect}, {fault}"
        for what, name in names.items()
        if re.search(name, text, re.IGNORECASE)
    ]


def run(smoke: bool) -> Iterator[Row]:
    count = 6 if smoke else 200
    wrongs: list[str] = []
    for number in counted("recordings", range(count)):
        wrongs += trial(SEED + number)
    yield Row(f"wrongs of {count} redacted recordings in {len(DIALECTS)} dialects", len(wrongs),
              "wrongs", 0, "; ".join(wrongs[:3]) or f"seed {SEED}",
              fault="damage of the recording of a session", injected=count)  # fmt: skip
    rounds = 1 if smoke else 40
    left = [
        name
        for seed in counted("damaged lines", range(rounds))
        for dialect in DIALECTS
        for fault in _DAMAGE
        for name in names_left_on_a_damaged_line(seed, dialect, fault)
    ]
    yield Row(f"names left in {rounds * len(DIALECTS) * len(_DAMAGE)} recordings of damaged lines",
              len(left), "names", 0, "; ".join(left[:3]))  # fmt: skip
