"""Test forms of the Serial Modem's commands (AT#X...=?): what each says of its parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.values import Record, after_name, single_line

_KEY = "<project_key>"


@dataclass(frozen=True, slots=True)
class CommandSyntax(Record):
    """Answer of a test form, as it is printed: "(0,1),(60-86400),<project_key>"."""

    syntax: str


@dataclass(frozen=True, slots=True)
class ReadSyntax(Command[CommandSyntax]):
    """A test form. `grammar` matches each answer that some build of the firmware gives."""

    grammar: ClassVar[str] = ""

    def parse(self, lines: Sequence[str]) -> CommandSyntax:
        """Return the parameters. Raises ParseError where they are not those of this command."""
        text = after_name(single_line(lines, self.name), self.name)
        if not re.fullmatch(self.grammar, text, re.ASCII):
            raise ParseError(f"{self.name}: these are not the parameters of this command")
        return CommandSyntax(text)


@at_command("AT#XLOG=?")
class ReadLogSyntax(ReadSyntax):
    """AT#XLOG=?: mode 2 is listed by builds that log for debugging."""

    grammar = r"\(0,1(?:,2)?\)"


@at_command("AT#XTRACE=?")
class ReadTraceSyntax(ReadSyntax):
    """AT#XTRACE=?."""

    grammar = r"\(0,1\)"


@at_command("AT#XBOOTINFO=?")
class ReadBootloaderSyntax(ReadSyntax):
    """AT#XBOOTINFO=?."""

    grammar = r"\(0,1\)"


@at_command("AT#XNRFCLOUD=?")
class ReadCloudSyntax(ReadSyntax):
    """AT#XNRFCLOUD=?."""

    grammar = r"\(0,1,2\),<send_location>"


@at_command("AT#XNRFCLOUDFOTA=?")
class ReadCloudUpdateSyntax(ReadSyntax):
    """AT#XNRFCLOUDFOTA=?."""

    grammar = rf"\(0,1,2,4,6\)\[,{_KEY}\]"


@at_command("AT#XNRFCLOUDOBSAUTO=?")
class ReadAutomaticUploadSyntax(ReadSyntax):
    """AT#XNRFCLOUDOBSAUTO=?."""

    grammar = rf"\(0,1\),\(60-86400\),{_KEY}"


@at_command("AT#XNRFCLOUDOBSUPLOAD=?")
class ReadUploadSyntax(ReadSyntax):
    """AT#XNRFCLOUDOBSUPLOAD=?."""

    grammar = _KEY


@at_command("AT#XNRFCLOUDOBSFORWARD=?")
class ReadForwardSyntax(ReadSyntax):
    """AT#XNRFCLOUDOBSFORWARD=?."""

    grammar = rf"<base64_chunk>,{_KEY}"


@at_command("AT#XNRFCLOUDOBSCOREDUMP=?")
class ReadCoredumpUploadSyntax(ReadSyntax):
    """AT#XNRFCLOUDOBSCOREDUMP=?."""

    grammar = r"\(0,1\)"


@at_command("AT#XNRFCLOUDOBSCRASH=?")
class ReadCrashSyntax(ReadSyntax):
    """AT#XNRFCLOUDOBSCRASH=?."""

    grammar = r"<type>"


@at_command("AT#XNRFPROV=?")
class ReadProvisioningSyntax(Command[CommandSyntax]):
    """AT#XNRFPROV=?: answered with the name alone, where the build has the command."""

    def parse(self, lines: Sequence[str]) -> CommandSyntax:
        """Return that there are no parameters. Raises ParseError."""
        if single_line(lines, self.name).strip() != self.name:
            raise ParseError(f"{self.name}: the answer is not the name of the command")
        return CommandSyntax("")
