"""The provisioning client: its dialogue with the host, its talk with the service, how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import cbor2
import pytest

from at.virtual.families.serial_modem import provisioning
from at.virtual.kit import Fetched
from at.virtual.modem import VirtualModem
from tests.support.modem.virtual_modems import UNIX_TIME, ask, notices_until, switched_on, unpadded

SERVICE = "http://127.0.0.1:9"
SM2 = "serial-modem-2.0.0"
CSR = ["one", 0, "%KEYGEN", '16842753,2,0,"","101010000"', []]
CHAIN = ["two", 0, "%CMNG", '0,16842753,0,"TEST ONLY"', []]
FINISHED = ["three", 2]


def online(**options: Any) -> VirtualModem:
    return switched_on("AT+CFUN=1", firmware=SM2, **options)


class Service:
    """What the service answers to each of the kit's requests, in turn."""

    def __init__(self, kit: VirtualModem, *answers: Fetched | None) -> None:
        self.kit, self.answers = kit, iter(answers)
        self.requests: list[Any] = []

    def serve(self) -> list[str]:
        """Answer until the kit asks no more; return what it printed meanwhile."""
        printed: list[str] = []
        while self.kit.kit.fetches:
            fetch = self.kit.kit.fetches.pop(0)
            self.requests.append(fetch)
            answer = next(self.answers)
            self.kit.kit.schedule(0.0, lambda answer=answer, fetch=fetch: fetch.done(answer))
            self.kit.advance(self.kit.kit.now)
            printed += [line for line in self.kit.data_to_send().decode().split("\r\n") if line]
        return printed

    @property
    def report(self) -> Any:
        """The answers that the kit sent last."""
        return cbor2.loads(next(one.body for one in reversed(self.requests) if one.body))


def commands(*listed: list[Any]) -> Fetched:
    return Fetched(200, cbor2.dumps(list(listed)))


NONE_LEFT = Fetched(204, b"")
TAKEN = Fetched(200, b"")


def test_a_kit_without_a_service_has_nothing_to_do() -> None:
    assert ask(online(), "AT#XNRFPROV") == ["OK", "#XNRFPROV: 0"]
    assert ask(online(), "AT#XNRFPROV=?") == ["#XNRFPROV", "OK"]
    assert ask(online(), "AT#XNRFPROV=1") == ["ERROR"]
    assert ask(switched_on("AT+CFUN=1", dialect="serial-modem"), "AT#XNRFPROV") == ["ERROR"]


def test_the_host_turns_the_radio_off_and_on_as_often_as_it_is_asked_to() -> None:
    kit = online(faults=("provisioning-rounds=2",))
    assert ask(kit, "AT#XNRFPROV") == ["OK", "#XNRFPROV: 1"]
    for last in ("#XNRFPROV: 1", "#XNRFPROV: 0"):
        assert ask(kit, "AT+CFUN=4") == ["OK", "#XNRFPROV: 2"]
        assert ask(kit, "AT+CFUN=1") == ["OK", last]


def test_a_start_while_a_session_is_open_is_one_more_session_after_it() -> None:
    kit = switched_on(firmware=SM2)
    assert ask(kit, "AT#XNRFPROV") == ["OK", "#XNRFPROV: 2"]
    assert [ask(kit, "AT#XNRFPROV") for _ in range(2)] == [["OK"], ["OK"]]
    assert ask(kit, "AT+CFUN=1") == ["OK", "#XNRFPROV: 0", "#XNRFPROV: 0"]


def test_a_kit_that_is_off_asks_for_the_network_first() -> None:
    kit = switched_on(firmware=SM2)
    assert ask(kit, "AT#XNRFPROV") == ["OK", "#XNRFPROV: 2"]
    assert ask(kit, "AT+CFUN=1") == ["OK", "#XNRFPROV: 0"]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_host_that_does_not_answer_ends_the_session(rounds: int) -> None:
    kit = online(faults=(f"provisioning-rounds={rounds}",)) if rounds else switched_on(firmware=SM2)
    ask(kit, "AT#XNRFPROV")
    (ended,) = notices_until(kit, kit.kit.now + 121)
    assert ended == (provisioning.WAITS_S, "#XNRFPROV: -1")
    assert ask(kit, "AT#XNRFPROV")[0] == "OK"


def test_without_time_there_is_no_token() -> None:
    assert ask(online(faults=("no-time",)), "AT#XNRFPROV") == ["OK", "#XNRFPROV: -4"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Fetched(401, b"{}"), -2),
        (Fetched(403, b"{}"), -2),
        (Fetched(500, b""), -1),
        (None, -1),
        (NONE_LEFT, 0),
        (Fetched(200, b"no CBOR"), -1),
        (Fetched(200, cbor2.dumps([1])), -1),
        (commands(*[FINISHED] * 6), -5),
    ],
)
def test_what_the_service_answers_is_told(answer: Fetched | None, status: int) -> None:
    kit = online(provisioning=SERVICE)
    assert ask(kit, "AT#XNRFPROV") == ["OK"]
    assert Service(kit, answer).serve() == [f"#XNRFPROV: {status}"]


def test_the_kit_speaks_for_itself() -> None:
    kit = online(provisioning=SERVICE)
    ask(kit, "AT#XNRFPROV")
    (fetch,) = kit.kit.fetches
    assert fetch.url.startswith(f"{SERVICE}/v1/provisioning/commands?after=&rxMaxSize=")
    token = fetch.headers[0].removeprefix("Authorization: Bearer ")
    claims = json.loads(unpadded(token.split(".")[1]))
    assert claims["iss"] == f"nRF9151.{kit.kit.saved.uuid}"
    assert claims["iat"] == int(UNIX_TIME) < claims["exp"]


def dialogue(kit: VirtualModem, service: Service) -> Iterator[str]:
    """Play the host until the session ends; yield what the kit asked and how it ended."""
    lines = ask(kit, "AT#XNRFPROV")[1:] + service.serve()
    while lines:
        line = lines.pop(0)
        yield line
        mode = {"#XNRFPROV: 1": 4, "#XNRFPROV: 2": 1}.get(line)
        if mode is not None:
            lines += ask(kit, f"AT+CFUN={mode}")[1:] + service.serve()


def test_commands_are_carried_out_and_answered() -> None:
    kit = online(provisioning=SERVICE)
    service = Service(kit, commands(CHAIN, CSR), TAKEN, commands(FINISHED), TAKEN)
    assert list(dialogue(kit, service)) == [
        *("#XNRFPROV: 1", "#XNRFPROV: 2", "#XNRFPROV: 2", "#XNRFPROV: 0")
    ]
    sent = [cbor2.loads(one.body) for one in service.requests if one.body]
    assert sent[0][0] == ["two", 100, "OK\r\n"]
    name, kind, printed = sent[0][1]
    assert (name, kind, printed[:10], printed[-4:]) == ("one", 100, '%KEYGEN: "', "OK\r\n")
    assert sent[1] == [["three", 102]]
    assert "after=one&" in service.requests[2].url
    assert {"16842753,0", "16842753,2"} == set(kit.kit.saved.credentials)


def test_the_first_command_that_fails_is_the_last() -> None:
    kit = online(provisioning=SERVICE)
    service = Service(kit, commands(CSR, ["again", *CSR[1:]], CHAIN, FINISHED), TAKEN, NONE_LEFT)
    assert list(dialogue(kit, service))[-1] == "#XNRFPROV: 0"
    assert [answer[:3] for answer in service.report[1:]] == [["again", 99, 519]]
    assert "16842753,0" not in kit.kit.saved.credentials


def test_an_error_that_is_to_be_ignored_is_none() -> None:
    kit = online(provisioning=SERVICE)
    gone = ["gone", 0, "%CMNG", "3,16842753,2", [513]]
    service = Service(kit, commands(gone, ["odd", 0, "%XYZ", "1"]), TAKEN, NONE_LEFT)
    assert list(dialogue(kit, service))[-1] == "#XNRFPROV: 0"
    assert [answer[1] for answer in service.report] == [100, 99]


def test_a_restart_ends_the_session_and_keeps_what_was_written() -> None:
    kit = online(provisioning=SERVICE)
    service = Service(kit, commands(CSR))
    assert [*ask(kit, "AT#XNRFPROV"), *service.serve()] == ["OK", "#XNRFPROV: 1"]
    assert ask(kit, "AT+CFUN=4") == ["OK", "#XNRFPROV: 2"]
    assert ask(kit, "AT#XRESET") == ["OK", "Ready"]
    assert "16842753,2" in kit.kit.saved.credentials
    assert ask(kit, "AT+CFUN=1") == ["OK"]
    assert ask(kit, "AT#XNRFPROV")[0] == "OK"
