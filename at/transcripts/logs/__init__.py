"""A terminal's or another tool's log, read as commands, answers and notices."""
