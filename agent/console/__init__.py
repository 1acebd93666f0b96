"""What a kit prints: log lines, chunk export lines, core dumps and faults, told apart. Pure."""
