"""Recorded sessions: format, recording, redaction, replay, and import from other logs."""
