"""The types of a parameter that names a file: one that is not there is wrong usage."""

from pathlib import Path

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that is there."""

FILE_OR_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)
"""The same as text, or `-` for standard input."""
