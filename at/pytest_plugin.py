"""pytest fixtures to test against a recorded modem session. Loaded by pytest by itself."""
