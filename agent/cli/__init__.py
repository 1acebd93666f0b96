"""The command line: one file a command; parse, call, print, exit code."""

from agent import __version__

VERSION_LINE = f"cellagent, version {__version__}"
"""What `--version` prints."""
