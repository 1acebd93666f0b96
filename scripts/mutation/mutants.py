"""The ways to spoil a line of code: one small change each, as text put in place of other text.

The rules are fixed before any test is looked at. Left out is what no test can see, or what would
not be a change of behaviour:

- what is not run by calling: module and class bodies, decorators, defaults, annotations, patterns;
- docstrings, log lines, `assert`, `cast`, and a text with a space in it: a person reads it;
- how long something waits: only a clock would tell;
- calls that end processes or take away files: a spoilt one could meet more than the test's own.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
_DANGEROUS = re.compile(
    r"\b(kill\w*|terminate|send_signal|unlink|rmtree|rmdir|remove|rename|chmod|chown|truncate"
    r"|setrlimit|fork\w*|exec[lv]\w*)\b"
)
_WAITS = re.compile(r"_s$|timeout|delay|interval|wait|deadline|sleep", re.IGNORECASE)
_SHOWN = 70  # characters of a text before and after its change
_LOG = re.compile(r"_?log(ger)?\.\w+$")
_Spoiled = list[ast.stmt] | ast.expr | ast.stmt
_Change = tuple[str, _Spoiled, str]
"""An operator, what it replaces, and by what."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the bytes `start` to `end` become `after`."""

    file: str
    function: str  # its name, those of what it stands in before it
    line: str  # the text of the line on which the change begins
    operator: str
    change: str  # in words that fit on a line
    nth: int  # among those that are alike in all of the above
    statement: int  # the number of the line on which its statement begins
    start: int
    end: int
    after: str

    @property
    def name(self) -> str:
        """What tells it from all others, whatever its place in the file."""
        words = (self.file, self.function, self.line, self.operator, self.change, str(self.nth))
        return " | ".join(words)

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(file: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file, in the order of its text."""
    found = sorted(_Finder(file, source).found(), key=lambda one: (one.start, one.operator))
    seen: Counter[str] = Counter()
    numbered = []
    for one in found:
        numbered.append(replace(one, nth=seen[one.name]))
        seen[one.name] += 1
    return numbered


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.lines = source.decode().splitlines()
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def found(self) -> Iterator[Mutant]:
        yield from self._within(ast.parse(self.source), "", None)

    def _within(self, node: ast.AST, function: str, statement: ast.stmt | None) -> Iterator[Mutant]:
        if isinstance(node, Function | ast.ClassDef):
            inner = f"{function}.{node.name}".lstrip(".")
            for one in node.body:
                yield from self._within(one, inner, one if isinstance(node, Function) else None)
            return
        if isinstance(node, ast.stmt):
            statement = node if function and statement is not None else None
            if self._is_left_out(node):
                return
        if statement is not None:
            for operator, target, after in _changes(node, statement):
                yield self._mutant(function, statement, operator, target, after)
        for child in _children(node):
            inner_statement = child if isinstance(child, ast.stmt) else statement
            keep = inner_statement if statement is not None else None
            yield from self._within(child, function, keep)

    def _mutant(
        self, function: str, statement: ast.stmt, operator: str, target: _Spoiled, after: str
    ) -> Mutant:
        first, last = (target[0], target[-1]) if isinstance(target, list) else (target, target)
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        start = self.starts[first.lineno - 1] + first.col_offset
        end = self.starts[last.end_lineno - 1] + last.end_col_offset
        return Mutant(
            self.file,
            function,
            self.lines[first.lineno - 1].strip(),
            operator,
            f"{_short(self.source[start:end].decode())} -> {_short(after)}",
            0,
            statement.lineno,
            start,
            end,
            after,
        )

    def _is_left_out(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
            return True
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant):
                return True
            if isinstance(node.value, ast.Call) and _LOG.match(ast.unparse(node.value.func)):
                return True
        return not hasattr(node, "body") and bool(_DANGEROUS.search(ast.unparse(node)))


def _changes(node: ast.AST, statement: ast.stmt) -> Iterator[_Change]:
    """Yield each way to spoil a node."""
    yield from _of_values(node, statement)
    yield from _of_calculations(node)
    yield from _of_statements(node)


def _of_values(node: ast.AST, statement: ast.stmt) -> Iterator[_Change]:
    match node:
        case ast.Constant(value=bool()):
            yield "constant", node, str(not node.value)
        case ast.Constant(value=int() | float() as number):
            if not _WAITS.search(_header(statement)):
                yield "constant", node, _text(ast.Constant(number + 1))
        case ast.Constant(value=str() as word) if _is_wire_word(word):
            yield "text", node, _text(ast.Constant("x" + word))
        case ast.Constant(value=bytes() as word) if _is_wire_word(word.decode("latin-1")):
            yield "text", node, _text(ast.Constant(b"x" + word))
        case ast.JoinedStr():
            parts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            if all(_is_wire_word(part) for part in parts):
                yield "text", node, _text(ast.JoinedStr([ast.Constant("x"), *node.values]))


def _of_calculations(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[first, *_]) if type(first) in _COMPARISONS:
            ops = [_COMPARISONS[type(first)](), *node.ops[1:]]
            yield "comparison", node, _text(ast.Compare(node.left, ops, node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "boolean", node, _text(ast.BoolOp(other, node.values))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign", node, _text(node.operand)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            changed = ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
            yield "arithmetic", node, _text(changed)
        case ast.Call():
            for keyword in node.keywords:
                if keyword.arg is not None and not _WAITS.search(keyword.arg):
                    rest = [one for one in node.keywords if one is not keyword]
                    yield "argument", node, _text(ast.Call(node.func, node.args, rest))


def _of_statements(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield "condition", node.test, _text(ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", node, "return None"
        case ast.ExceptHandler() if not isinstance(node.body[0], ast.Pass):
            yield "handler", node.body, "pass"
        case ast.Expr() if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            yield "statement", node, "pass"
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield "statement", node, "pass"
        case ast.Assign() if not any(_binds_a_name(target) for target in node.targets):
            yield "statement", node, "pass"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a node and runs with it."""
    if isinstance(node, ast.JoinedStr | ast.pattern | ast.Lambda):
        return  # inside a text the places are not those of the file
    match node:
        case ast.Call(func=ast.Name("cast")):
            yield from node.args[1:]
        case ast.Call(func=ast.Name("isinstance")):
            yield node.args[0]
        case ast.AnnAssign():
            if node.value is not None:
                yield node.value
        case _:
            yield from ast.iter_child_nodes(node)


def _binds_a_name(target: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) for node in ast.walk(target)
    )


def _header(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]


def _is_wire_word(text: str) -> bool:
    return bool(text) and not any(character.isspace() for character in text)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}... ({crc32(text.encode()):08x})"
