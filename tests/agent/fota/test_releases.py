from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadAnswer
from agent.fota.jobs import Execution, FirmwareType, JobStatus, MalformedJob, read_execution
from agent.fota.journal import JobResult
from agent.fota.releases import (
    WAITS,
    Component,
    ReleaseNotKept,
    is_release,
    offered_by_kit,
    offered_release,
    read_offered,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KIT = Component(FirmwareType.APP, "kit-1", "nrf9151dk", "main", "2.0.0")
URL = "https://files.example.com/app.bin?token=of-a-test"
ARTIFACT: dict[str, Any] = {
    "id": 7,
    "type": "firmware",
    "hardware_version": "nrf9151dk",
    "software_type": "main",
    "filename": "app.bin",
    "url": URL,
    "md5": "900150983CD24FB0D6963F7D28E17F72",
}
RELEASE: dict[str, Any] = {"id": 3, "version": "2.0.1+4", "artifacts": [ARTIFACT]}


def offered(release: dict[str, Any] | None = None, **changes: Any) -> Execution | None:
    component = changes.pop("component", KIT)
    results, now = changes.pop("results", ()), changes.pop("now", NOW)
    return offered_release(release or RELEASE, component, results, now, **changes)


def ended(execution: Execution | None, status: JobStatus, days_ago: float) -> JobResult:
    assert execution is not None
    at = (NOW - timedelta(days=days_ago)).isoformat()
    return JobResult(job_id=execution.job_id, status=status, detail="it went back", at=at)


@pytest.mark.contract("O5.4", "C6")
def test_a_release_is_read_as_a_job() -> None:
    execution = offered()
    assert execution is not None
    assert is_release(execution.job_id)
    assert "2.0.1+4" in execution.job_id
    assert (execution.device_id, execution.status) == ("kit-1", JobStatus.QUEUED)
    job = read_offered(execution.job_id, execution.document)
    assert (job.kind, job.host, job.paths) == (FirmwareType.APP, "", (URL,))
    assert (job.version, job.size_bytes) == ("2.0.1+4", 0)
    assert job.md5 == "900150983cd24fb0d6963f7d28e17f72"  # of "abc", RFC 1321
    assert job.sha256 == ""


def test_the_sha256_of_a_release_is_that_of_its_job() -> None:
    digest = hashlib.sha256(b"abc").hexdigest()
    execution = offered({**RELEASE, "artifacts": [{**ARTIFACT, "sha256": digest.upper()}]})
    assert execution is not None
    assert read_offered(execution.job_id, execution.document).sha256 == digest


def test_no_job_of_the_device_cloud_is_taken_for_a_release() -> None:
    document = {"firmwareType": "APP", "url": URL, "version": "1"}
    with pytest.raises(MalformedJob, match="no usable jobId"):
        read_execution({"jobId": "release/2.0.1/1.1", "jobDocument": document})
    with pytest.raises(MalformedJob, match="no host"):
        read_offered("release-2.0.1", document)


@pytest.mark.parametrize("running", ["2.0.1+4", "v2.0.1+4", "2.0.1"])
def test_what_runs_already_is_no_job(running: str) -> None:
    component = Component(FirmwareType.APP, "kit-1", "nrf9151dk", "main", running)
    assert offered(component=component) is None


@pytest.mark.parametrize("running", ["", "2.0.0", "2.0.1+3", "nightly"])
def test_what_does_not_run_is_one(running: str) -> None:
    component = Component(FirmwareType.APP, "kit-1", "nrf9151dk", "main", running)
    assert offered(component=component) is not None


def test_the_file_is_the_one_for_this_hardware_and_software() -> None:
    others = [
        "not an object",
        {**ARTIFACT, "type": "symbols", "url": "https://x/1"},
        {**ARTIFACT, "hardware_version": "nrf9161dk", "url": "https://x/2"},
        {**ARTIFACT, "software_type": "mfw", "url": "https://x/3"},
    ]
    execution = offered({**RELEASE, "artifacts": [*others, ARTIFACT]})
    assert execution is not None
    assert execution.document["url"] == URL
    with pytest.raises(BadAnswer, match=r"no file for hardware nrf9151dk and software main"):
        offered({**RELEASE, "artifacts": others})
    bare = {"url": URL}  # as small devices read it
    execution = offered({**RELEASE, "artifacts": [bare]})
    assert execution is not None
    assert execution.document["url"] == URL


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ({"artifacts": [ARTIFACT]}, "names no version"),
        ({**RELEASE, "version": 2}, "names no version"),
        ({**RELEASE, "artifacts": None}, "no file for"),
        ({**RELEASE, "artifacts": [{**ARTIFACT, "url": ""}]}, "no address"),
    ],
)
def test_a_release_that_cannot_be_read_is_a_bad_answer(release: dict[str, Any], says: str) -> None:
    with pytest.raises(BadAnswer, match=says):
        offered(release)


def test_a_release_that_the_kit_did_not_keep_is_tried_three_times_at_growing_intervals() -> None:
    first = offered()
    tried = [ended(first, JobStatus.FAILED, 0.9)]
    with pytest.raises(ReleaseNotKept, match=r"it went back; it is tried again from 2026-03-01T14"):
        offered(results=tried)
    tried = [ended(first, JobStatus.FAILED, WAITS[0].days)]
    second = offered(results=tried)
    tried.append(ended(second, JobStatus.SUCCEEDED, 2.9))  # and it went back later
    with pytest.raises(ReleaseNotKept):
        offered(results=tried)
    tried[-1] = ended(second, JobStatus.TIMED_OUT, WAITS[1].days)
    third = offered(results=tried)
    assert len({one.job_id for one in (first, second, third) if one}) == 3
    tried.append(ended(third, JobStatus.REJECTED, 400))
    with pytest.raises(ReleaseNotKept, match="after 3 tries it is left") as left:
        offered(results=tried)
    assert "`cellagent fota pull --again`" in str(left.value.hint)
    assert offered(results=tried, again=True) is not None


def test_a_try_that_was_dated_years_ahead_does_not_put_the_next_off_for_years() -> None:
    assert offered(results=[ended(offered(), JobStatus.FAILED, -1000)]) is not None


def test_tries_of_another_file_or_version_and_cancelled_ones_do_not_count() -> None:
    first = offered()
    same = [ended(first, JobStatus.FAILED, 0.1)]
    assert offered({**RELEASE, "version": "2.0.2"}, results=same) is not None
    mended = {**RELEASE, "artifacts": [{**ARTIFACT, "md5": "0" * 32}]}
    assert offered(mended, results=same) is not None
    assert offered(results=[ended(first, JobStatus.CANCELLED, 0.1)]) == first
    signed_anew = {**RELEASE, "artifacts": [{**ARTIFACT, "url": URL + "2"}]}
    with pytest.raises(ReleaseNotKept):
        offered(signed_anew, results=same)


def test_tries_of_an_update_from_a_longer_version_do_not_count() -> None:
    def found(running: str, results: tuple[JobResult, ...] = ()) -> Execution:
        return offered_by_kit(FirmwareType.MODEM, "kit-1", running, results, NOW)

    longer = ended(found("mfw_nrf91x1_2.0.4"), JobStatus.FAILED, 0.5)
    assert found("mfw_nrf91x1_2.0", (longer,)).job_id == "kit/MODEM/mfw_nrf91x1_2.0.1"
    with pytest.raises(ReleaseNotKept):
        found("mfw_nrf91x1_2.0.4", (longer,))


def test_the_maker_s_file_name_tells_where_a_modem_delta_leads_from() -> None:
    modem = Component(FirmwareType.MODEM, "kit-1", "nrf91x1", "mfw", "mfw_nrf91x1_2.0.2")
    name = "mfw_nrf91x1_update_from_2.0.2_to_2.0.4.bin"
    artifact = {**ARTIFACT, "hardware_version": "nrf91x1", "software_type": "mfw"}
    release = {"version": "mfw_nrf91x1_2.0.4", "artifacts": [{**artifact, "filename": name}]}
    execution = offered(release, component=modem)
    assert execution is not None
    job = read_offered(execution.job_id, execution.document)
    assert (job.delta_from, job.kind) == ("2.0.2", FirmwareType.MODEM)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["version", "artifacts", "id"]), _JSON),
    st.dictionaries(st.sampled_from([*ARTIFACT, "size"]), _JSON),
)
def test_whatever_the_service_answers_is_a_job_or_a_named_mistake(
    release: dict[str, Any], artifact: dict[str, Any]
) -> None:
    for answer in (release, {**RELEASE, **release}, {**RELEASE, "artifacts": [artifact]}):
        try:
            execution = offered(answer)
        except BadAnswer:
            continue
        if execution is not None:
            job = read_offered(execution.job_id, execution.document)
            assert job.paths[0]
            assert execution.job_id.isprintable()
