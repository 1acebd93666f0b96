"""The type of a parameter that is a time."""

import math
from typing import Any

import click

_LONGEST_S = 1e10
"""As in a profile; whoever adds more to the time of day leaves the calendar."""


class Seconds(click.FloatRange):
    """A number of seconds: also not `nan`, which as click compares is in every range."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds. Raises click's BadParameter."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not seconds <= _LONGEST_S:
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return float(super().convert(value, param, ctx))
