"""A large file in parts."""

from __future__ import annotations

from agent.observability.ingest.storage import completion_body, part_bounds


def test_parts_cover_the_file_and_are_all_alike_but_the_last():
    assert part_bounds(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert part_bounds(10, 1) == [(0, 10)]


def test_what_completes_the_parts_names_them_in_order():
    assert completion_body(['"a"', "b<"]) == (
        b'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part>'
        b"<Part><PartNumber>2</PartNumber><ETag>b&lt;</ETag></Part></CompleteMultipartUpload>"
    )
