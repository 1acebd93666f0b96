"""Hints that can be pasted: their commands with profile and port, or the keys of a kit. Pure."""

import re
import shlex

from agent.config.profile import KitSettings

_COMMAND = re.compile(r"`cellagent (\w+)([^`]*)`")
_OF_A_KIT = {"modem", "scan", "locate", "fota", "console", "assist", "provision"}
_WITHOUT_A_KIT = re.compile(r" (?:import|decode|replay|virtual)\b")
_KEY = re.compile(rf"\bkit\.({'|'.join(KitSettings.__struct_fields__)})\b")


def pasteable(hint: str, profile: str, port: str) -> str:
    """Return a hint with profile and port, "" for neither, in those commands that lack them."""

    def with_options(match: re.Match[str]) -> str:
        noun, words = match[1], match[2]
        has_one = not profile or "profile " in words or words.startswith(" use ")
        options = "" if has_one else f" --profile {shlex.quote(profile)}"
        needs_port = noun in _OF_A_KIT and not _WITHOUT_A_KIT.match(words)
        if needs_port and port and "--port" not in words:
            options += f" --port {shlex.quote(port)}"
        before, dashes, rest = words.partition(" -- ")
        return f"`cellagent {noun}{before}{options}{dashes}{rest}`"

    return _COMMAND.sub(with_options, hint)


def of_kit(hint: str, name: str) -> str:
    """Return a hint with the keys of the kit that has this name in the profile's table."""
    return _KEY.sub(lambda key: shlex.quote(f"kits.{name}.{key[1]}"), hint)
