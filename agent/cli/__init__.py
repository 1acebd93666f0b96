"""The command line: one file a command; parse, call, print, exit code."""

from agent import __version__

VERSION_LINE = f"cellagent, version {__version__}"
"""What `--version` prints."""

EXIT_INTERRUPTED = 130
"""The code of a command that Ctrl-C ended: 128 and the number of SIGINT."""

EXIT_HUNG_UP = 129
"""The code of a command whose terminal was closed: 128 and the number of SIGHUP."""
