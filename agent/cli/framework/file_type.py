"""The types of a parameter that names a file: one that is not there is wrong usage."""

import os
from pathlib import Path
from typing import Any

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that is there."""


class _WholeFile(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.is_file():  # of a pipe the opening alone may wait without end
            self.fail("it is a pipe or a device: write what it gives into a file first", param, ctx)
        return path


WHOLE_FILE = _WholeFile(exists=True, dir_okay=False)
"""A file whose size is known, and which is read more than once."""


class _OutputFile(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "-":
            self.fail("- is no file: name one (./- is called so)", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


OUTPUT_FILE = _OutputFile(dir_okay=False, writable=True)
"""A file that is written; standard output has what is said of it."""

FILE_OR_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)
"""The same as text, or `-` for standard input."""
