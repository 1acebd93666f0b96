"""The type of a parameter that names a file."""

from pathlib import Path

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that is there."""
