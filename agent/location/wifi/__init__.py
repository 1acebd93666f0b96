"""The sources of Wi-Fi scans: the host's own radio, a companion, or a file."""
