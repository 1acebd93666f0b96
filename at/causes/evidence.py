"""Reads a modem's lines for their facts. Pure.

A named answer or notice is read by the typed command of its name, a command says what it set, an
error stands under the command's name ("%CMNG!"), and firmware's own words are found by the patterns
of the table.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from at.causes.facts import BESIDES_LTE, Fact, Facts, Value
from at.causes.line_content import (
    SAYS_RECEIVED,
    asked_to_end,
    command_in,
    named_in,
    numbered_in,
    result_in,
    returned_in,
    split_command,
    values_of,
    without_harmless,
)
from at.causes.table import Table, Words
from at.causes.value_notes import ValueNotes
from at.causes.written_pem import defect_of
from at.commands.functional_mode import OFF_MODES, FunctionalMode
from at.protocol.error_codes import CME_OF_CMS, FIRST_OF_MAKER, code_name
from at.protocol.kit_log import LEVEL
from at.transcripts.logs.shapes import LOST_END
from at.transcripts.logs.wrapping import STRAIGHT

_TURN_OFF = frozenset(map(str, OFF_MODES))
_BESIDES_LTE = frozenset(map(str, BESIDES_LTE))
_TURN_ON = frozenset({"1", "21"})
_LEAVE_ON = frozenset(str(mode.value) for mode in FunctionalMode) - _TURN_OFF
"""The modes in which something runs: a refusal of another one tells of nothing that stays off."""
_TELL_OF_OFF = frozenset(
    {"+CFUN", "+CEREG", "%XMONITOR", "+COPS", "+CGATT", "%CONEVAL", "+CESQ", "+CSQ"}
)
# Of these the set form is as the read reply.
_SETTINGS = frozenset(
    {"+CFUN", "%XSYSTEMMODE", "%XBANDLOCK", "+COPS", "+CGDCONT", "+CGAUTH", "+CPSMS"}
)
_OF_THE_COMMAND = frozenset({0, 3, 4, 50, 100, "ERROR"})
"""Errors that say something of the command, and nothing of the modem's state."""
_NOT_FOUND = 513
_OF_THE_TECHNOLOGY = 15
"""EMM: no suitable cells, of this technology."""
_EXCHANGED = re.compile(
    r"[+%#*^&]|\bAT|OK|ERROR|[Cc][Mm][EeSs] "
    r"|\b(?:65536|(?:13[12]|19[67])\d{3}|0x0*[123]0[0-9A-Fa-f]{3})\b"
)
"""What stands in each line with a command, an answer, a notice or a result."""
_TOLD = re.compile(rf"\b[a-z]{{2,}} [a-z]{{2,}}\b|{LEVEL}")
"""A part of a sentence, or of a log of firmware, before a command."""
_SEARCHED = 500
"""Characters that are searched for words at once: some patterns take the square of them."""
_PIECES = re.compile(rf".{{1,{_SEARCHED}}}(?:\s|$)|.{{1,{_SEARCHED}}}")
_KIT_CLOCK = re.compile(r"^\[[0-9]{2}(?::[0-9]{2}){2}\.[0-9]{3},[0-9]{3}\] ")
_PLACE = re.compile(r"\s*└─ .* @ \S+:\d+\s*$")
"""Where in the source a line of defmt was written, below it: the names there tell of nothing."""
_NO_CLOCK = "[00:00:00.000,000] "
"""In place of a kit's clock, for lines that differ in it alone are searched for words once."""
_TYPED = re.compile(r"^(\W{0,3}[+%#][A-Z]\w{2,12}) (?=:)")
"""A name, and the blank behind it of who writes an answer by hand."""
_CONNECTION = frozenset({"+CGATT", "+CGACT"})
_KEY_COMMANDS = frozenset(
    {
        *("%KEYGEN", "%JWT", "%ATTESTTOKEN", "%CLAIMTOKEN", "%KEYINJECT", "%XSUDO", "%XPMNG"),
        *("%REGJWT", "%CLOUDACCESSKEY"),
    }
)
_CARD_READS = frozenset({"+CPIN", "+CIMI", "%XICCID", "+CRSM"})


class Evidence:
    """The facts of the lines that were added, in order."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._told_in = lru_cache(maxsize=1024)(self._search_piece)
        self._facts = Facts()
        self._values = ValueNotes(table.same, self._facts)
        self._pending = ""
        """The command that waits for its result."""
        self._sent_as = "", 0
        self._before: dict[str, Fact] = {}
        self._names: set[str] = set()
        """Of the commands that were sent."""
        self._commands: set[str] = set()
        self._refused: dict[str, str] = {}
        """What refused commands were to set, by their names, until it is set after all."""
        self._card_errors = 0
        self._ending = False
        """Whether somebody asked for the end of a connection, and has opened none since."""
        self._unwritten: set[tuple[str, ...]] = set()
        """The tags and types of the credentials whose write was refused last."""

    def add(self, text: str, number: int, at_s: float | None = None) -> None:
        """Add a line, or a text in quotes over several of them, with its time in seconds."""
        if _PLACE.match(text):
            return
        self._facts.begin_line(at_s)
        whole = _TYPED.sub(r"\1", text)
        if not whole.isascii() and "CMNG" not in text:  # there they are a credential's defect
            whole = whole.translate(STRAIGHT)
        lines = zip(text.split("\n"), whole.split("\n"), strict=True)
        for offset, (shown, line) in enumerate(lines):
            self._facts.line, self._facts.number = shown.strip(), number + offset
            self._facts.order += 1
            exchanges = LOST_END.split(line)
            if len(exchanges) == 1:
                self._read(line, whole if offset == 0 else line)
                continue
            for exchange in exchanges:
                self._facts.line = exchange
                self._read(exchange, exchange)

    def facts(self) -> Mapping[str, Fact]:
        """Return the facts of what was added so far, with those that follow from several."""
        self._facts.conclude()
        return self._facts

    # --- one line

    def _read(self, line: str, whole: str) -> None:
        self._search_words(line)
        if SAYS_RECEIVED.search(line):
            self._facts.pop("silent", None)
        if not _EXCHANGED.search(whole):
            self._heard()
            return
        command, rest = command_in(whole)
        if command:
            told = _TOLD.search(whole.partition(command)[0]) is not None
            self._note_sent(command, told=told)
        else:
            rest = line
            self._heard()
        named = list(named_in(rest))
        for name, body in named:
            self._note_answer(name, body)
        result = result_in(rest, behind=bool(named or command)) or numbered_in(line)
        if result is None and (result := returned_in(line)):
            self._facts.note("returned", 1)
        if result is not None:
            self._finish(*result)
        elif "+CME ERROR:" in rest:  # a library's own print stands before its number
            self._answered()

    def _note_sent(self, command: str, *, told: bool) -> None:
        """Note a command. `told`: a sentence of firmware holds it, which logs no answer to it."""
        self._pending = command
        self._sent_as = self._facts.line, self._facts.number
        self._before = dict(self._facts)
        self._values.begin_list()
        if not told:
            self._facts.count("unanswered" if "answered" in self._facts else "silent")
            if command in self._commands:
                self._facts.count("sent_again")
        if self._pending.upper().startswith("AT%CMNG=0"):
            if defect := defect_of(self._pending):
                self._facts.note("pem_defect", defect)
            elif not self._unwritten:
                self._facts.pop("pem_defect", None)
        name, _, written = split_command(command)
        if name == "D":
            self._facts.pop("carrier", None)
        self._names.add(name)
        self._commands.add(command)
        self._facts.note("sent_names", len(self._names))
        self._facts.turns_off = name == "+CFUN" and written in _TURN_OFF
        if written and not self._facts.turns_off:
            self._take(name, written)  # many a log leaves the answer out

    def _note_answer(self, name: str, body: str) -> None:
        values = values_of(name, body)
        if values is not None or name == split_command(self._pending)[0]:
            self._answered()
        if values is not None:
            self._values.note(name, values, self._pending)
            if body.replace(" ", "").startswith(self._refused.get(name, body)):
                self._refused.pop(name, None)
            if name in _TELL_OF_OFF and not self._facts.is_on:
                self._facts.note("off_seen", 1)

    def _answered(self) -> None:
        self._facts.pop("silent", None)
        self._heard()
        self._facts.note("answered", 1)

    def _heard(self) -> None:
        """Note a line behind a command, whatever it says."""
        unanswered = self._facts.pop("unanswered", None)
        if unanswered is not None and int(unanswered.value) > 1:
            self._facts.note("answers_left_out", 1)

    def _finish(self, word: str, code: str) -> None:
        """Note how the command that waits ended."""
        self._answered()
        self._facts.count("results")
        name, mark, written = split_command(self._pending)
        error = self._error_of(word, code, name) if code else "ERROR"
        changes = "?" not in mark or name not in _SETTINGS | _CONNECTION
        is_gone = error == _NOT_FOUND and name == "%CMNG" and written.startswith("3")
        if name and word == "OK":
            self._accept(name, written, changes=changes)
        elif name and not is_gone:  # what was to be deleted, which is as good
            self._refuse(name, written, word, error, changes=changes)
        self._pending = ""
        self._facts.turns_off = False

    def _error_of(self, word: str, code: str, name: str) -> Value:
        """Return the number of an error, or its words; note one that tells of the modem's state."""
        error: Value = int(code) if code.isdigit() else self._number_of(code)
        of_messages = word == "+CMS ERROR" and code.isdigit()
        known = CME_OF_CMS.get(int(code), "ERROR") if of_messages else error
        if isinstance(known, int) and known >= FIRST_OF_MAKER:
            self._facts.note("error", known)
        elif known not in _OF_THE_COMMAND and name not in {"%CMNG", *_KEY_COMMANDS}:
            self._facts.note("cme", known)  # of a credential it is 513 or the like, cut
        return error

    def _number_of(self, words: str) -> Value:
        """Return the number of an error that is told in words, which a log may go on behind."""
        known = self._table.cme_texts
        first = words.partition(" -")[0].rstrip()
        return known.get(words.upper(), known.get(first.upper(), words))

    def _refuse(self, name: str, written: str, word: str, error: Value, *, changes: bool) -> None:
        """Note that the modem refused a command."""
        self._forget(name)
        if name == "%CMNG" and written.startswith("0"):
            self._unwritten.add(_slot(written))
        if error == "ERROR":  # it says nothing without its command
            self._facts.line, self._facts.number = self._sent_as
        if changes and (name != "+CFUN" or written.partition(",")[0] in _LEAVE_ON):
            self._facts.note(f"{name}!", error)
            self._refused[name] = written
        refused = f"AT{name}" if error == "ERROR" else f"AT{name}: {_meaning(word, error)}"
        self._facts.note("command_refused", refused)
        if name in _KEY_COMMANDS and written:
            self._facts.note("key_refused", refused)
        if name in _CARD_READS and not self._facts.is_off:
            self._card_errors += 1
            self._facts.note("sim_errors", self._card_errors)

    def _accept(self, name: str, written: str, *, changes: bool) -> None:
        """Note that the modem took a command, which `changes` something or asks for a setting."""
        self._facts.pop("command_refused", None)
        if name in _KEY_COMMANDS:
            self._facts.pop("key_refused", None)
        if name == "%CMNG":
            self._unwritten.discard(_slot(written))
            if self._unwritten:
                return  # what was written is another credential
        if changes:
            self._refused.pop(name, None)
        elif name in self._refused:
            return  # it is still as it was before the refusal
        if name != "+CFUN" or written not in _TURN_OFF:  # that says nothing of turning it on
            self._facts.pop(f"{name}!", None)
        if name in _CARD_READS:
            self._card_errors = 0
            self._facts.pop("sim_errors", None)
        if written:
            self._note_done(name, written)
            self._take(name, written)
        if name == "%XSYSTEMMODE" and self._changes_technology():
            refusal = self._facts.get("emm")
            if refusal is not None and refusal.value == _OF_THE_TECHNOLOGY:
                self._facts.pop("emm")
                self._facts.pop("refused", None)

    def _note_done(self, name: str, written: str) -> None:
        """Note what a command has mended."""
        if name == "+CPIN":
            self._facts.note("sim_ready", 1)
        elif name == "+CGACT":
            self._facts.pop("+CGACT.state", None)
        elif name == "+CFUN" and written in _TURN_ON:
            self._facts.note("turned_on", 1)
        elif name == "%KEYGEN" or (name == "%CMNG" and not written.startswith("1")):
            self._facts.note("written", 1)

    def _changes_technology(self) -> bool:
        """Return whether the command that waits changed which radio technologies are used."""
        flags = ("%XSYSTEMMODE.lte_m", "%XSYSTEMMODE.nb_iot")
        before, now = (
            [facts[flag].value for flag in flags if flag in facts]
            for facts in (self._before, self._facts)
        )
        return bool(before) and before != now

    def _take(self, name: str, written: str) -> None:
        """Note what a command sets as if it had been read; the command is the evidence."""
        shown = self._facts.line, self._facts.number
        self._facts.line, self._facts.number = self._sent_as
        self._take_values(name, written)
        self._facts.line, self._facts.number = shown

    def _take_values(self, name: str, written: str) -> None:
        if name not in _SETTINGS:
            return
        if name == "%XBANDLOCK":
            self._values.note_band_lock(written.partition(",")[2] if written[:1] != "0" else "")
            return
        if name == "+COPS" and written.startswith("0"):
            written = "0"
        if name == "+CFUN" and written in _BESIDES_LTE and "fun" in self._facts:
            return
        values = values_of(name, written)
        if values is not None:
            self._values.note(name, values, self._pending)

    def _forget(self, name: str) -> None:
        """Undo what a command would have set, for it was refused."""
        short = {key for field, key in self._table.same.items() if field.startswith(f"{name}.")}
        for key in [*self._facts]:
            if key.startswith(f"{name}.") or key in short:
                if key in self._before:
                    self._facts[key] = self._before[key]
                else:
                    del self._facts[key]

    # --- facts

    def _search_words(self, line: str) -> None:
        if (ends := asked_to_end(line)) is not None:
            self._ending = ends
        for piece in _PIECES.findall(line) if len(line) > _SEARCHED else [line]:
            for fact, told in self._told_in(_KIT_CLOCK.sub(_NO_CLOCK, piece), ended=self._ending):
                self._facts.note(fact, told)

    def _search_piece(self, piece: str, *, ended: bool) -> tuple[tuple[str, Value], ...]:
        """Return the facts that words of a piece of a line tell of, in their order."""
        candidates = [*self._table.words.of(piece)]
        searched = without_harmless(piece, ended=ended) if candidates else ""
        found = ((words, match) for words in candidates if (match := words.search(searched)))
        told = ((words.fact, _told(words, match)) for words, match in found)
        return tuple((fact.replace("{}", str(value)), value) for fact, value in told)


def _meaning(word: str, error: Value) -> str:
    return code_name(word, error) if isinstance(error, int) else str(error)


def _slot(written: str) -> tuple[str, ...]:
    """Return the tag and the type of the credential that a %CMNG command is about."""
    return tuple(part.strip() for part in written.split(",")[1:3])


def _told(words: Words, match: re.Match[str]) -> Value:
    if words.value is not None:
        return words.value
    told = next((group for group in match.groups() if group), match[0])
    return int(told) if re.fullmatch("[0-9]{1,6}", told) else told
