"""The cloud client of an nRF93M1: its answers, its steps, its updates, and what is sent to it."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.nrf93m1.cloud import LocateByModule, SendByModule, Shadow
from at.commands.nrf93m1.coap import read_step
from at.commands.nrf93m1.update import FetchImageChunk, UpdateByModule, crc16
from at.decode import Decoder
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%COAP: CONNECTING", {"step": "CONNECTING"}),
        ("%COAP: CONNECTING ...", {"step": "CONNECTING"}),
        ("%COAP: DTLS_STATE,4", {"step": "DTLS_STATE", "state": 4}),
        ("%COAP: RESPONSE,4.01", {"step": "RESPONSE", "code": "4.01"}),
        ("%COAP: DATA,8,Accepted", {"length": 8, "text": "Accepted"}),
        ('%COAP: DATA,9,{"a":"b"}', {"text": '{"a":"b"}'}),
        ("%COAP: DATA,HEX,bf01ff", {"hex": "bf01ff"}),
        ("%COAP: IPv6: 2001:db8::7, PORT: 5684", {"address": "2001:db8::7", "port": 5684}),
        ("%COAP: RESOLVING coap.nrfcloud.com (IPv4)...", {"family": "IPv4"}),
        ("%COAP: ERROR,SOMETHING_NEW", {"error": "SOMETHING_NEW"}),
        ("%COAP: PAUSED,3,x", {"step": "PAUSED", "parameters": "3,x"}),
        ("%FOTA: ZONE,1,462848", {"step": "ZONE", "zone": 1, "bytes": 462848}),
        ("%FOTA: DOWNLOADING", {"step": "DOWNLOADING", "bytes": None}),
        ('%FOTA: "UPDATING",37', {"percent": 37}),
        ("%FOTA: FAILED,-5", {"step": "FAILED", "parameters": ["-5"]}),
        ('%HTTPURC: "FOTA","HTTPSTART"', {"step": "HTTPSTART"}),
        ('%HTTPURC: "FOTA","DOWNLOAD ERROR",1,404', {"cause": 1, "detail": 404}),
        ("%NRFCLOUDLOCATION: ACK RECEIVED", {"status": "ACK RECEIVED", "lat": None}),
        ("%NRFCLOUDLOCATION: -61,23.775517,100,1", {"lat": -61.0, "method": 1}),
        ("%NRFCLOUDOBS: coredump available", {"status": "coredump available"}),
    ],
)
def test_a_notice_becomes_its_fields(line: str, part: dict[str, object]) -> None:
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        "%COAP: CONNECTIN",
        "%COAP: DTLS_STATE",
        "%COAP: DTLS_STATE,x",
        "%COAP: RESPONSE,2.5",
        "%COAP: RESPONSE,9.01",
        "%COAP: DATA,8,Accepte",
        '%COAP: DATA,8,{"a": b"}',
        "%COAP: DATA,HEX,bf01f",
        "%COAP: DATA,HEX,bf01",
        "%COAP: IPv4: 1.2.3, PORT: 5684",
        "%COAP: 1",
        "%FOTA: ZONE,1",
        "%FOTA: UPDATING,3",  # the loader writes its words in quotes
        '%FOTA: "UPDATING",101',
        "%FOTA: VERIFIE",
        '%HTTPURC: "FOTA","VERIFICATION FAILURE",5',
        "%NRFCLOUDLOCATION: 61.4,23.7,100",
        "%NRFCLOUDLOCATION: 61.4,23.7,100,3",
        "%NRFCLOUDLOCATION: 91.4,23.7,100,4",
        "%NRFCLOUDLOCATION: ACK RECEIVE",
    ],
)
def test_a_malformed_notice_is_refused_whole(line: str) -> None:
    assert isinstance(notice_of(line), Malformed)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="{\\\xa0\x85"))
)
def test_the_body_of_a_step_is_the_rest_of_its_line(text: str) -> None:
    line = f"%COAP: DATA,{len(text.encode())},{text}"
    assert read_step(line).text == text
    if text:
        with pytest.raises(ParseError):
            read_step(line[:-1])


def test_a_body_whose_secret_was_hidden_may_be_shorter() -> None:
    hidden = '{"data": {"url": "https://h/f?{redacted:query}"}}'
    assert read_step(f"%COAP: DATA,153,{hidden}").text == hidden


@given(st.binary(min_size=1, max_size=1024), st.booleans(), st.booleans())
def test_a_piece_of_an_image_is_taken_with_its_crc_alone(
    data: bytes, has_more: bool, in_hex: bool
) -> None:
    crc = f"{crc16(data):04X}" if in_hex else str(crc16(data))
    line = f"%FOTA: {b64encode(data).decode()},{crc},{int(has_more)}"
    assert FetchImageChunk(0).parse([line]).data == data
    spoiled = f"%FOTA: {b64encode(data + b'x').decode()},{crc},{int(has_more)}"
    with pytest.raises(ParseError, match="CRC"):
        FetchImageChunk(0).parse([spoiled])


def test_the_crc_is_the_one_of_its_catalogue() -> None:
    assert crc16(b"123456789") == 0x29B1  # CRC-16/CCITT-FALSE's check value


def decoded(text: str) -> list[tuple[object, object, object]]:
    decoder = Decoder()
    objects = [*decoder.feed(text.replace("\n", "\r\n").encode()), *decoder.finish()]
    assert [each["error"] for each in objects if each.get("error")] == []
    return [
        (each["type"], each.get("name", each.get("command")), each.get("value")) for each in objects
    ]


def test_a_result_may_come_before_ok_or_after_it() -> None:
    place = "%NRFCLOUDLOCATION: 63.424089,10.396382,40,4\n"
    position = value_of("AT%NRFCLOUDLOCATION=4,1", place.strip())
    assert_fields(position, {"lat": 63.424089, "method": 4, "status": None})
    ask = "AT%NRFCLOUDLOCATION=4,1"
    step = ("notice", "%COAP", notice_value("%COAP: RESPONSE,2.05"))
    before = decoded(f"{ask}\n\n%COAP: RESPONSE,2.05\n{place}\nOK\n")
    assert before[1:] == [step, ("answer", ask, position)]
    after = decoded(f"{ask}\nOK\n%COAP: RESPONSE,2.05\n{place}")
    assert after[1:] == [("answer", ask, None), step, ("notice", "%NRFCLOUDLOCATION", position)]


def test_the_piece_of_an_image_is_the_answer_and_the_steps_are_none_of_it() -> None:
    ask = "AT%NRFCLOUDFOTA=1,0"
    found = decoded(f"{ask}\n%FOTA: DOWNLOADING\n%FOTA: MTIzNDU2Nzg5,10673,0\nOK\n")
    assert [each[:2] for each in found[1:]] == [("notice", "%FOTA"), ("answer", ask)]
    assert found[2][2] == {"data": b"123456789".hex(), "crc16": "10673", "has_more": 0}


def test_an_answer_without_its_command_is_read_by_its_lines() -> None:
    serving = '%BCINFOSC: 3300,52,-97,-9,"204","16","005BC435","003B"'
    (answer,) = decoded(f"\n{serving}\n\nOK\n")
    assert answer[2] == value_of("AT%BCINFO", serving)


def test_a_start_of_the_module_is_told() -> None:
    assert decoded("RDY\n") == [("notice", "RDY", None)]


def test_commands_are_written_as_the_module_takes_them() -> None:
    message = '{"appId":"TEMP","messageType":"DATA","data":"21"}'
    assert SendByModule(message).encode() == f"AT%NRFCLOUDMESSAGE={message}"
    assert Shadow("config.switch", "true").encode() == "AT%NRFCLOUDSHADOW=config.switch,true"
    assert Shadow("config").encode() == "AT%NRFCLOUDSHADOW=config"
    assert LocateByModule(7).encode() == "AT%NRFCLOUDLOCATION=7,1"
    assert UpdateByModule(3, "k" * 32).encode() == f'AT%NRFCLOUDFOTA=3,"{"k" * 32}"'


@pytest.mark.parametrize(
    "command",
    [
        SendByModule("hello"),
        SendByModule("{" + "x" * 511),
        Shadow("a b"),
        LocateByModule(8),
        UpdateByModule(1),
    ],
)
def test_what_the_module_would_refuse_is_not_sent(command: SendByModule) -> None:
    with pytest.raises(UnsafeArgument):
        command.encode()
