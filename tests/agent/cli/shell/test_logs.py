from __future__ import annotations

import logging

from agent.cli.shell.logs import RedactingFormatter
from agent.config import Secret

CANARY = "canary-5f1c9e-of-the-test"


def test_a_log_record_is_redacted_with_its_arguments_and_its_traceback() -> None:
    Secret(CANARY)
    try:
        raise ValueError(f"while sending {CANARY}")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.DEBUG, __file__, 1, "key %s", (CANARY,), info)
    text = RedactingFormatter("%(message)s").format(record)
    assert CANARY not in text
    assert "Traceback" in text
