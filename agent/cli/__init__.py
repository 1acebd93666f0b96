"""The command line: one file per command group; parse, call, print, exit code."""
