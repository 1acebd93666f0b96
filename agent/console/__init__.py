"""Reads what a kit prints: log lines, chunk export lines, core dumps, faults and restarts."""
