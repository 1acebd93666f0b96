"""Test forms of the Serial Modem's commands (AT#X...=?): what each says of its parameters."""

import re
from collections.abc import Sequence

from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.values import Record, named_text, single_line

_KEY = "<project_key>"


class CommandSyntax(Record, frozen=True):
    """Answer of a test form, as it is printed: "(0,1),(60-86400),<project_key>"."""

    syntax: str


class ReadSyntax(Command[CommandSyntax], frozen=True):
    """A test form, whose grammar matches each answer that some build of the firmware gives."""

    def parse(self, lines: Sequence[str]) -> CommandSyntax:
        """Return the parameters. Raises ParseError where they are not those of this command."""
        text = named_text(lines, self.name)
        if not re.fullmatch(_GRAMMARS[self.name], text, re.ASCII):
            raise ParseError(f"{self.name}: these are not the parameters of this command")
        return CommandSyntax(text)


# What each answers; #XLOG lists mode 2 in builds that log for debugging.
_GRAMMARS = {
    "#XLOG": r"\(0,1(?:,2)?\)",
    "#XTRACE": r"\(0,1\)",
    "#XBOOTINFO": r"\(0,1\)",
    "#XNRFCLOUD": r"\(0,1,2\),<send_location>",
    "#XNRFCLOUDFOTA": rf"\(0,1,2,4,6\)\[,{_KEY}\]",
    "#XNRFCLOUDOBSAUTO": rf"\(0,1\),\(60-86400\),{_KEY}",
    "#XNRFCLOUDOBSUPLOAD": _KEY,
    "#XNRFCLOUDOBSFORWARD": rf"<base64_chunk>,{_KEY}",
    "#XNRFCLOUDOBSCOREDUMP": r"\(0,1\)",
    "#XNRFCLOUDOBSCRASH": r"<type>",
}


def _test_form(name: str) -> type[ReadSyntax]:
    return at_command(f"AT{name}=?")(type(f"ReadSyntax of {name}", (ReadSyntax,), {}))


FURTHER_TYPES = tuple(map(_test_form, _GRAMMARS))
"""The types of the table, for the catalogue."""


@at_command("AT#XNRFPROV=?")
class ReadProvisioningSyntax(Command[CommandSyntax], frozen=True):
    """AT#XNRFPROV=?: answered with the name alone, where the build has the command."""

    def parse(self, lines: Sequence[str]) -> CommandSyntax:
        """Return that there are no parameters. Raises ParseError."""
        if single_line(lines, self.name).strip() != self.name:
            raise ParseError(f"{self.name}: the answer is not the name of the command")
        return CommandSyntax("")
