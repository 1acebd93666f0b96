"""The agent's chunks as the stand-in reads them: two codecs, written apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observability.ingest.chunk_codec import ReassembledMessage, encode
from agent.observability.ingest.chunk_codec import Reassembler as Ours
from agent.standin.device_chunks import Reassembler as Theirs


@pytest.mark.contract("O5.1")
@given(st.lists(st.binary(max_size=200), max_size=5), st.integers(9, 120))
def test_both_put_the_same_messages_together(messages, mtu):
    ours, theirs, got = Ours(), Theirs(), []
    for message in messages:
        for chunk in encode(message, mtu):
            found = ours.receive(chunk)
            received = theirs.receive("kit", chunk, 0.0)
            assert [item.data for item in found if isinstance(item, ReassembledMessage)] == (
                [] if received.message is None else [received.message]
            )
            if received.message is not None:
                got.append(received.message)
    assert got == messages
