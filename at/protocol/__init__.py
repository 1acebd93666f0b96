"""Lines, answers, notices and values of AT. Pure: no port, clock or event loop."""
