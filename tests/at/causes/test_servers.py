"""What a log tells of a server: reached, lost, or none that is meant by a line."""

from __future__ import annotations

import pytest

from at.causes.diagnosis import causes_of_log
from tests.support.modem.causes_of_lines import causes_of


def test_a_cloud_that_was_reached_once_knows_the_kit() -> None:
    ended = "[00:00:08.287,078] <err> nrf_cloud_transport: MQTT input error: -128"
    assert causes_of(ended)[0] == "cloud-unknown-device"
    assert causes_of("<inf> app: NRF_CLOUD_EVT_READY: 0", ended)[0] == "server-closed"


def test_a_socket_that_fails_since_the_modem_crashed_tells_of_no_server() -> None:
    crashed = "[00:00:49.828,491] <err> nrf_modem: Modem has crashed, reason 0x10, PC: 0x2f00"
    failed = "[00:00:49.829,010] <err> net_http: send: -110"
    assert causes_of(failed) == ["server-unreachable"]
    assert causes_of(crashed, failed) == ["modem-crashed"]
    for back in ("*** Booting nRF Connect SDK v3.1.0 ***", "+CEREG: 1"):
        assert "server-unreachable" not in causes_of(crashed, failed, back)
        assert causes_of(crashed, back, failed)[:2] == ["modem-crashed", "server-unreachable"]


@pytest.mark.parametrize("port", ["/dev/ttyS0 at 9600 baud", "/dev/ttyACM0", "the kit on COM7"])
def test_a_port_that_was_not_connected_to_is_no_server(port: str) -> None:
    assert causes_of("AT", "OK", f"Failed to connect to {port} (attempt 4)") == ["line-end"]
    assert causes_of("AT", "OK", "Failed to connect to host.example") == ["server-unreachable"]


@pytest.mark.parametrize(
    "reached",
    [
        "aws_iot_sample: AWS_IOT_EVT_CONNECTED",
        "azure_iot_hub_sample: AZURE_IOT_HUB_EVT_CONNECTED",
        "net_lwm2m_rd_client: Registration Done (EP='kit')",
        "nrf_cloud_coap_transport: Authorized",
        "mflt: Response Complete: Parse Status 0 HTTP Status 202!",
    ],
)
def test_a_server_that_was_reached_at_last_is_reachable(reached: str) -> None:
    failed = "[00:00:09.000,000] <err> transport: connect failed: -116"
    assert causes_of(failed) == ["server-unreachable"]
    assert causes_of(failed, f"[00:00:39.000,000] <inf> {reached}") == ["nothing-found"]


@pytest.mark.parametrize("client", ["Golioth client", "Golioth CoAP client"])
def test_a_server_that_was_reached_at_last_refuses_no_credential(client: str) -> None:
    failed = "E (15606) golioth_coap_client: Maybe your PSK-ID or PSK is incorrect?"
    assert "tls-failed" in causes_of(failed)
    assert "tls-failed" not in causes_of(failed, f"I (16860) golioth_main: {client} connected")


@pytest.mark.parametrize(
    ("stat", "blamed"), [("+CEREG: 0,0", False), ("+CEREG: 0,2", False), ("+CEREG: 0,1", True)]
)
def test_a_connection_that_fails_without_a_network_is_no_fault_of_the_server(
    stat: str, blamed: bool
) -> None:
    log = "AT+CEREG?", stat, "OK", 'AT+CIPSTART=0,"TCP","host.example",80', "+CME ERROR: 3"
    assert ("server-unreachable" in causes_of(*log)) is blamed


def test_a_connection_that_the_kit_ended_was_not_refused() -> None:
    online = "+CEREG: 5"
    for line, certainty in (
        ("+CGEV: ME PDN DEACT 0", "possible"),
        ("+CGEV: PDN DEACT 0", "likely"),
    ):
        found = causes_of_log(f"{online}\n{line}\n".encode())[0]
        assert (found.cause, found.certainty) == ("pdn-inactive", certainty)


def test_a_handshake_that_got_no_answer_reached_no_server() -> None:
    silent = "<wrn> nrf_cloud_coap_transport: DTLS connect failed, errno: 116"
    told = "<wrn> nrf_cloud_dns: Failed to connect to server host.example, port 5684.Error: -111"
    assert causes_of(silent, told) == ["server-unreachable"]
    assert causes_of(told)[0] == "server-refused"
    assert causes_of("<err> app: DTLS connect failed, errno: 45")[0] == "tls-failed"


@pytest.mark.parametrize(
    "told", ["TLS recv error: -4e", "TLS recv error: -4c", "TLS handshake error: -0x50"]
)
def test_a_connection_that_broke_below_tls_lacks_no_credential(told: str) -> None:
    lines = (f"<err> net_sock_tls: {told}", "<inf> uplink: MQTT client disconnected -5")
    assert causes_of(*lines) == ["server-closed"]


@pytest.mark.parametrize("told", ["Failed to read the battery: -5", "Could not request eDRX: -14"])
def test_a_part_of_the_kit_itself_is_no_server_though_its_module_is_named_after_one(
    told: str,
) -> None:
    assert causes_of(f"[00:00:03.120,118] <err> cloud_app: {told}") == ["nothing-found"]


@pytest.mark.parametrize(
    "told",
    [
        "Failed to send sensor data: -116",
        "Connection to broker lost, start reconnect timer",
        "Could not connect to mqtt broker. Start the LED blinking",
        "Failed to fetch sensor configuration from cloud: timeout",
        "state machine: connection lost",
        "recv() returned 0: connection closed",
        "broker disconnected -> reconnecting",
        "publish of encoded JSON data failed: not connected",
    ],
)
def test_what_a_server_did_not_take_or_ended_is_the_servers_whatever_else_is_told(
    told: str,
) -> None:
    assert causes_of(f"[00:04:03.120,118] <err> cloud_app: {told}") == ["server-unreachable"]


@pytest.mark.parametrize(
    "told",
    [
        "cloud_app: zbus_chan_pub, error: -11",
        "network_app: Failed to register the task watchdog: -22",
        "location_app: Could not load settings: -2",
        "mqtt_app: smf_run_state, error: 1",
        "network_app: PMIC device not ready",
    ],
)
def test_what_fails_of_the_system_itself_is_nothing_that_its_module_is_named_after(
    told: str,
) -> None:
    assert causes_of(f"[00:00:03.120,118] <err> {told}") == ["nothing-found"]


def test_who_waits_for_a_server_has_not_reached_it() -> None:
    failed = "<err> uplink: mqtt_connect, error: -116"
    assert causes_of(failed, "<inf> uplink: waiting for MQTT connected") == ["server-unreachable"]
    assert causes_of(failed, "<inf> uplink: MQTT connected") == ["nothing-found"]


def test_a_request_that_was_too_long_for_the_server_was_not_so_for_the_application() -> None:
    assert causes_of("<err> rest: HTTP/1.1 413 Payload Too Large") == ["http-error"]


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ("downloader: Unexpected HTTP response code 404", "http-error"),
        ("downloader: HTTP/1.1 503 Service Unavailable", "http-error"),
        ("downloader: CoAP response code 4.04", "coap-error"),
    ],
)
def test_an_update_that_the_server_refused_is_first_what_the_server_said(
    told: str, cause: str
) -> None:
    failed = "[00:00:44.707,000] <err> fota_download: Download client error"
    found = causes_of(f"[00:00:44.706,000] <err> {told}", failed)
    assert found == [cause, "download-failed"]
