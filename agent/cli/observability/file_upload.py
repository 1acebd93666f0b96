"""Upload of one large file to the service, with progress; an interrupted upload is resumed."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agent.cli.framework.command import emit, note, say
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import show_progress
from agent.config import Configuration
from agent.http import HttpClient
from agent.observability.ingest import upload_journal
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.observability.ingest.events import captured_date_of
from agent.observability.ingest.transfer import Upload, UploadSource, file_source, transfer
from agent.observability.ingest.uploads import FileKind, UploadProject, commit_details


async def upload_file(
    session: Session,
    path: Path,
    kind: FileKind,
    device: DeviceIdentity | None,
    *,
    compress: bool,
    again: bool,
) -> None:
    """Upload `path`, with `again` also if this machine did so before."""
    account = session.profile.account
    project = None
    if kind in {FileKind.SYMBOLS, FileKind.OTA}:
        project = UploadProject(account.organization, account.project)
    now = captured_date_of(datetime.now(UTC).timestamp())
    details = commit_details(kind, device, captured_date=now)
    # Symbols and payloads are known by their content: a second copy is answered with 409.
    upload = Upload(kind, device, details, project, anew=project is not None)
    with file_source(path, compress=compress) as source:
        async with session.client() as client:
            journal = _journal(session.configuration, client, upload, source)
            if again and journal.progress is not None and journal.progress.commit_sent:
                journal.save(None)
            before = "" if again else journal.committed
            if not before:
                _note_resumed(journal, source)
                await transfer(
                    client,
                    upload,
                    source,
                    progress=partial(show_progress, path.name),
                    journal=journal,
                )
                journal.mark_committed(now)
        _show(session, source, kind, before)


def _journal(
    configuration: Configuration, client: HttpClient, upload: Upload, source: UploadSource
) -> upload_journal.UploadJournal:
    """Return the upload journal of this file for this host, kind, project and device."""
    folder = configuration.state_dir / "uploads" / configuration.name
    upload_journal.remove_old_records(folder)
    name = upload_journal.journal_name(
        client.base_url(upload.kind.host),
        *(upload.kind.name, upload.project, upload.device),
        *(source.name, source.size, source.md5),
    )
    return upload_journal.UploadJournal(folder / name)


def _note_resumed(journal: upload_journal.UploadJournal, source: UploadSource) -> None:
    earlier = journal.progress
    if earlier is not None:
        done = f"{len(earlier.tags)} of {len(earlier.part_urls)} parts"
        done = "all of it" if earlier.whole else done
        note(f"{source.name}: an earlier run has sent {done}; going on from there")


def _show(session: Session, source: UploadSource, kind: FileKind, before: str) -> None:
    if session.json:
        result = {
            "uploaded": source.name,
            "kind": kind.wire_name,
            "bytes": source.size,
            "md5": source.md5,
        }
        emit({**result, "before": before} if before else result)
    elif before:
        say(f"{source.name}: uploaded already, on {before}; --again sends it once more")
    else:
        summary = f"{source.size} bytes uploaded as {kind.wire_name}, MD5 {source.md5}"
        say(f"{source.name}: {summary}")
