"""Where a Wi-Fi scan comes from: the host's own radio, a companion, or a file."""
