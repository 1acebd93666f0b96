"""Each message's way out can be pasted: `scripts/messages` lists them, to be read by a person."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from agent.auth.credential import ProjectKey
from agent.config.parse import all_keys
from agent.config.secrets import Secret
from tests.support.commands.command_tree import assert_exists

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
from messages import Message, messages

_QUOTED = re.compile(r"`[^`]*`")
_KEYS = sorted({key.replace(".NAME.", ".{name}.") for key in all_keys() if "." in key})
_KEY = re.compile(rf"(?<![\w.{{`])({'|'.join(map(re.escape, _KEYS))})(?![\w.])")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# What is there and may be left out, or is meant as a name, is none to paste.
_NAMED = re.compile(
    r"(?:leave out|without|leave|or|instead of|than|with|say) (?:--[\w-]+(?: and |, )?)+"
)


@pytest.fixture(scope="module")
def all_messages() -> list[Message]:
    """Read no file when the tests are collected, which each of their processes does."""
    return list(messages())


def test_each_command_that_a_message_names_exists_with_its_options(
    all_messages: list[Message],
) -> None:
    commands = [
        (f"{message.path}:{message.line}", quoted.strip("`"))
        for message in all_messages
        for text in (message.text, message.hint)
        for quoted in _QUOTED.findall(text)
        if quoted.startswith("`cellagent ")
    ]
    assert commands
    for where, line in commands:
        words = shlex.split(re.sub(r"\{[^}]*\}+", "WORD", line))[1:]
        named = next((at for at, word in enumerate(words) if not word.islower()), len(words))
        options = [word for word in words[named:] if word[:1] == "-"]
        assert_exists(where, words[:named] + options)


def test_no_command_stands_in_parentheses_which_a_line_of_its_own_would_leave_behind(
    all_messages: list[Message],
) -> None:
    hints = [*(message.hint for message in all_messages), *ProjectKey(Secret("-")).refused.values()]
    assert not [hint for hint in hints if re.search(r"\([^()]*`[^`]+`", hint)]


def _left_to_type(hint: str) -> str:
    """Return what of a hint is to be typed and stands in no backticks, "" for nothing."""
    text = _QUOTED.sub("", hint)
    patterns = (re.compile(r"cellagent [a-z]+ "), _KEY, _OPTION)
    found = (pattern.search(_NAMED.sub("", text)) for pattern in patterns)
    return ", ".join(each[0] for each in found if each)


def test_what_a_hint_says_to_type_stands_in_backticks(all_messages: list[Message]) -> None:
    wrong = [
        f"{message.path}:{message.line}: {left}: {message.hint}"
        for message in all_messages
        if (left := _left_to_type(message.hint))
    ]
    assert not wrong, "\n".join(wrong)
