"""Put man page and completions into the wheel, where `scripts/release` has made them."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Share(BuildHookInterface[Any]):  # noqa: D101 - hatchling takes the only hook of this file
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002, D102
        if (Path(self.root) / "share").is_dir():
            build_data["shared_data"]["share"] = "share"
