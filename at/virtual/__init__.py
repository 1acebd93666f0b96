"""A virtual nRF91: a stateful modem behind a transport, a PTY or a TCP port, with its faults."""
