from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota import jobs
from agent.fota.job_step import JobStep
from agent.fota.jobs import Execution, FirmwareType, JobAction, JobStatus, MalformedJob
from at.protocol.state_machine import IllegalTransition

DOCUMENT = {
    "firmwareType": "APP",
    "host": "firmware.example.com",
    "path": "team/APP*1e29dfa3*v2.0.1/app_update.bin",
    "fileSize": 385068,
    "version": "v2.0.1",
    "bundleId": "APP*1e29dfa3*v2.0.1",
}
BODY = {
    "tenantId": "a0673464-e4e1-4b87-bffd-6941a012067b",
    "deviceId": "nrf-358299840010349",
    "jobId": "9d7ecb19-7a4b-4d7e-9a3f-9a2a3d0b1c55",
    "executionId": "5b1ef7cc-0c5e-4e0e-8f5f-2f1d5a7f0b02",
    "status": "QUEUED",
    "statusDetail": "",
    "createdAt": "2025-01-02T03:04:05.678Z",
    "lastUpdatedAt": "2025-01-02T03:04:05.678Z",
    "jobDocument": DOCUMENT,
}


def execution(**document: Any) -> Execution:
    return jobs.read_execution({**BODY, "jobDocument": {**DOCUMENT, **document}})


def read_job(execution: Execution) -> jobs.Job:
    return jobs.read_job(execution.job_id, execution.document)


def offered(job_id: str = "a", status: JobStatus = JobStatus.QUEUED) -> Execution:
    return Execution(job_id=job_id, device_id="d", status=status, document={})


@pytest.mark.contract("D9.2", "C6")
def test_a_job_is_read_whole() -> None:
    job = read_job(jobs.read_execution(BODY))
    assert job.kind is FirmwareType.APP
    assert job.paths == ("team/APP*1e29dfa3*v2.0.1/app_update.bin",)
    assert (job.size_bytes, job.version) == (385068, "v2.0.1")
    assert jobs.read_execution(BODY).device_id == BODY["deviceId"]
    assert jobs.read_execution({**BODY, "deviceId": None}).device_id == ""


def test_only_what_the_vendor_client_needs_is_needed() -> None:
    bare = {
        "jobId": "j1",
        "jobDocument": {"host": "h", "path": "p", "firmwareType": "MODEM", "fileSize": 7.0},
    }
    job = read_job(jobs.read_execution(bare))
    assert (job.size_bytes, job.version, job.bundle_id) == (7, "", "")


@pytest.mark.contract("D9.2")
@pytest.mark.parametrize("size", [385068, 385068.0, "385068"])
def test_a_size_is_a_number_or_a_text_of_its_digits(size: object) -> None:
    assert read_job(execution(fileSize=size)).size_bytes == 385068
    most = jobs.MAX_IMAGE_BYTES
    assert read_job(execution(fileSize=most)).size_bytes == most


@pytest.mark.parametrize(
    ("file", "before"),
    [
        ("mfw_nrf91x1_update_from_2.0.2_to_2.0.4.bin", "2.0.2"),
        ("mfw_nrf91x1_update_from_2.0.4-FOTA-TEST_to_2.0.4.bin", "2.0.4-FOTA-TEST"),
        ("mfw_nrf91x1_2.0.4.bin", ""),
    ],
)
def test_the_file_of_a_modem_delta_tells_where_it_leads_from(file: str, before: str) -> None:
    path = f"t/MODEM*1*mfw_nrf91x1_2.0.4/{file}"
    assert read_job(execution(firmwareType="MODEM", path=path)).delta_from == before
    assert not read_job(execution(path=path)).delta_from


def test_a_boot_job_may_bring_a_build_for_each_slot() -> None:
    job = read_job(execution(firmwareType="BOOT", path="t/s0.bin t/s1.bin"))
    assert job.paths == ("t/s0.bin", "t/s1.bin")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"firmwareType": "TOASTER"}, "is for 'TOASTER', not known here"),
        ({"firmwareType": None}, "names no firmwareType"),
        ({"firmwareType": ["APP"]}, "not known"),
        ({"host": None}, "no host"),
        ({"host": 5}, "no host"),
        ({"path": "  "}, "no path"),
        ({"path": "a b"}, "names 2 files"),
        ({"path": "a  b", "firmwareType": "BOOT"}, "names 3 files"),
        ({"path": "a b c", "firmwareType": "BOOT"}, "names 3 files"),
        ({"fileSize": None}, "missing"),
        ({"fileSize": "385068 bytes"}, "not a number"),
        ({"fileSize": "٣"}, "not a number"),
        ({"fileSize": "-1"}, "not a number"),
        ({"fileSize": "0"}, "no size"),
        ({"fileSize": True}, "not a number"),
        ({"fileSize": 0}, "no size"),
        ({"fileSize": -1}, "no size"),
        ({"fileSize": jobs.MAX_IMAGE_BYTES + 1}, "no size"),
        ({"fileSize": 1e300}, "of [0-9]{40} bytes is no size"),
        ({"fileSize": 1.5}, "not a number"),
        ({"version": {"a": 1}}, "version"),
        ({"version": "1\n2"}, "version"),
        ({"sha256": "abc"}, "no SHA-256"),
        ({"sha256": 7}, "not a text"),
        ({"sha256": None, "digest": "abc"}, "no SHA-256"),
        ({"signature": "***"}, "base64"),
        ({"signature": 7}, "base64"),
    ],
)
def test_a_malformed_document_is_refused_with_a_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(MalformedJob, match=reason):
        read_job(execution(**change))


@pytest.mark.parametrize("body", [None, [], ["error"], "x", {}, {"jobId": ""}, {"jobId": "a\nb"}])
def test_an_answer_without_an_id_is_no_job(body: Any) -> None:
    with pytest.raises(MalformedJob):
        jobs.read_execution(body)


def test_a_state_that_is_not_known_is_told_with_what_to_do() -> None:
    with pytest.raises(MalformedJob, match="PAUSED") as caught:
        jobs.read_execution({**BODY, "status": "PAUSED"})
    assert "cancel it at the service" in caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*DOCUMENT, "sha256", "signature"]), JSON))
def test_any_document_is_a_job_or_a_reason(document: dict[str, Any]) -> None:
    try:
        job = read_job(execution(**document))
    except MalformedJob:
        return
    assert job.size_bytes > 0
    assert job.paths


@pytest.mark.contract("D1.4")
def test_a_modem_image_is_rejected_on_a_modem_that_is_too_old() -> None:
    job = read_job(execution(firmwareType="MODEM"))
    kit = "mcuboot", frozenset(FirmwareType), "mfw_nrf9160_1.2.7-" + "x" * 60
    reason = jobs.reject_reason(job, *kit)
    assert "no update over the air" in reason
    assert "before 1.3.0 to 1.3.x" in reason
    assert jobs.detail_text(reason) == reason  # whole, however long the firmware's name is
    app = read_job(execution())
    assert jobs.reject_reason(app, *kit) == ""


def test_a_type_that_the_installer_cannot_put_on_the_kit_is_rejected() -> None:
    job = read_job(execution(firmwareType="SOFTDEVICE"))
    kit = "mcuboot", frozenset({FirmwareType.APP})
    assert "mcuboot cannot install SOFTDEVICE" in jobs.reject_reason(job, *kit)
    assert jobs.reject_reason(read_job(execution()), *kit) == ""


def test_a_device_reports_a_result_once_and_only_of_what_it_began() -> None:
    begun = {JobStatus.IN_PROGRESS, JobStatus.DOWNLOADING}
    results = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.REJECTED, JobStatus.TIMED_OUT}
    legal = {(before, result) for before in begun for result in results} | {
        (JobStatus.QUEUED, JobStatus.IN_PROGRESS),
        (JobStatus.QUEUED, JobStatus.REJECTED),
        (JobStatus.DOWNLOADING, JobStatus.IN_PROGRESS),
    }
    for before, report in itertools.product(JobStatus, JobStatus):
        if (before, report) in legal:
            assert jobs.TRANSITIONS[before, report] is report
        else:
            with pytest.raises(IllegalTransition, match=f"{before.name} does not allow"):
                jobs.TRANSITIONS[before, report]
    assert {status for status in JobStatus if status.final} == results | {JobStatus.CANCELLED}


@pytest.mark.parametrize(
    ("offer", "open_job", "step", "finished", "action"),
    [
        (None, "", JobStep.IDLE, False, JobAction.IDLE),
        (offered(), "", JobStep.IDLE, False, JobAction.TAKE),
        (offered(status=JobStatus.IN_PROGRESS), "", JobStep.IDLE, False, JobAction.TAKE),
        (offered(status=JobStatus.DOWNLOADING), "", JobStep.IDLE, False, JobAction.LEAVE),
        (offered(status=JobStatus.SUCCEEDED), "", JobStep.IDLE, False, JobAction.LEAVE),
        (offered(), "", JobStep.IDLE, True, JobAction.REPORT_AGAIN),
        (offered(status=JobStatus.IN_PROGRESS), "a", JobStep.PROVEN, False, JobAction.RESUME),
        (offered(status=JobStatus.IN_PROGRESS), "a", JobStep.INSTALLED, False, JobAction.RESUME),
        (offered(status=JobStatus.CANCELLED), "a", JobStep.PROVEN, False, JobAction.DROP),
        (offered("b"), "a", JobStep.PROVEN, False, JobAction.DROP),
        (offered("b"), "a", JobStep.INSTALLED, False, JobAction.FINISH),
        (None, "a", JobStep.PROVEN, False, JobAction.DROP),
        (None, "a", JobStep.INSTALLED, False, JobAction.FINISH),
    ],
)
def test_the_move_follows_from_the_offer_and_the_journal(
    offer: Execution | None, open_job: str, step: JobStep, finished: bool, action: JobAction
) -> None:
    chosen = jobs.next_action(offer, open_job=open_job, step=step, finished=finished)
    assert chosen is action


@given(st.text(max_size=2000))
def test_a_detail_is_one_short_printable_line(text: str) -> None:
    whole = "x" * jobs.DETAIL_LIMIT
    assert jobs.detail_text(whole) == whole
    detail = jobs.detail_text(text)
    assert len(detail) <= jobs.DETAIL_LIMIT
    assert detail.isprintable()
