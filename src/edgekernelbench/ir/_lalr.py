"""The LALR(1) automaton of `grammar.lark`, fed with the tokens of `_scan.py`.

lark reads the grammar and computes the automaton. It is run here, because error recovery needs its
stack, and because chains of one-symbol rules (an operand climbing through all precedences) can be
taken in one step.

The words of the language are contextual, as in lark's contextual lexer: a word is a keyword only
where the automaton can take it as one. `table`, `layout`, `memory`, ... may name tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from edgekernelbench.ir._scan import Scan, Tok
from edgekernelbench.ir.words import DTYPES, RESERVED

if TYPE_CHECKING:
    from lark import Lark

_PIECES = frozenset({"scatter", "block", "thread", "warp", "mma"})
_BEFORE_NAME = frozenset({"kernel", "table", "combiner"}) | _PIECES
_KINDS = {"int": "INT", "float": "FLOAT", "end": "$END"}


@functools.cache
def _lark() -> Lark:
    """The automaton with `_build.Builder` as its actions; built once per process."""
    from lark import Lark
    from lark.lexer import Lexer

    from edgekernelbench.ir._build import Builder

    class NoLexer(Lexer):
        """Tokens are fed from outside; this saves building lark's own lexer."""

        def __init__(self, lexer_conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            raise AssertionError("the automaton is fed, it does not read")

    grammar = resources.files("edgekernelbench.ir").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=NoLexer,
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=Builder(),  # type: ignore[arg-type]
    )


@functools.cache
def _terminals() -> dict[str, str]:
    """Terminal of each fixed spelling, keywords and signs alike."""
    from lark.lexer import PatternStr

    out = dict.fromkeys(DTYPES, "DTYPE") | {word: word.upper() for word in _BEFORE_NAME}
    for terminal in _lark().terminals:
        if isinstance(terminal.pattern, PatternStr):
            out[terminal.pattern.value] = terminal.name
    return out


@functools.cache
def spelling() -> Mapping[str, str]:
    """Text of each terminal that has just one."""
    return {name: text for text, name in _terminals().items() if name != "DTYPE"}


@dataclass(frozen=True, slots=True)
class _Reduce:
    """Replace the last ``size`` values by one for ``origin``; with ``action`` None it is the one
    value itself."""

    origin: str
    size: int
    action: Callable[[list[Any]], Any] | None


@dataclass(slots=True)
class _Table:
    """The automaton: per state the action of each terminal (a state to shift to, or a reduction)
    and the state after each nonterminal."""

    start: int
    end: int
    actions: dict[int, dict[str, int | _Reduce]] = field(default_factory=dict)
    gotos: dict[int, dict[str, int]] = field(default_factory=dict)
    # State after a nonterminal and the one-symbol reductions that its lookahead allows.
    _after: dict[tuple[int, str, str], int] = field(default_factory=dict)

    def after(self, base: int, origin: str, terminal: str) -> int:
        key = base, origin, terminal
        state = self._after.get(key)
        if state is None:
            state = self.gotos[base][origin]
            action = self.actions[state].get(terminal)
            if isinstance(action, _Reduce) and action.action is None:
                state = self.after(base, action.origin, terminal)
            self._after[key] = state
        return state


@functools.cache
def _table() -> _Table:
    from lark.parsers.lalr_analysis import Shift

    conf = _lark().parse_interactive().parser_state.parse_conf
    table = _Table(conf.start_state, conf.end_state)
    reductions: dict[Any, _Reduce] = {}
    for state, row in conf.states.items():
        actions = table.actions[state] = {}
        gotos = table.gotos[state] = {}
        for symbol, (kind, arg) in row.items():
            if kind is not Shift:
                if arg not in reductions:
                    reductions[arg] = _reduction(arg, conf.callbacks[arg])
                actions[symbol] = reductions[arg]
            elif symbol.isupper():
                actions[symbol] = arg
            else:
                gotos[symbol] = arg
    return table


def _reduction(rule: Any, action: Callable[[list[Any]], Any]) -> _Reduce:
    passes = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
    return _Reduce(rule.origin.name, len(rule.expansion), None if passes else action)


class Automaton:
    """The parser between two tokens of a text."""

    def __init__(self, scan: Scan) -> None:
        from lark import Token

        self._tokens = scan.tokens
        self._table = _table()
        self._words = _terminals()
        self._token_class = Token
        self._states = [self._table.start]
        self._values: list[Any] = []

    def terminal(self, index: int) -> str:
        """Name of the terminal that the token at this index is, in the present state."""
        token = self._tokens[index]
        if token.kind != "word":
            return _KINDS.get(token.kind) or self._words.get(token.text, "BAD")
        keyword = self._words.get(token.text)
        if keyword is None:
            return "NAME"
        if token.text in RESERVED:
            return keyword
        after = self._tokens[index + 1]
        if token.text in _BEFORE_NAME and after.kind != "word":
            return "NAME"
        if token.text in _PIECES and self._is_step(index + 1):  # an axis of that name
            return "NAME"
        return keyword if keyword in self._table.actions[self._states[-1]] else "NAME"

    def _is_step(self, index: int) -> bool:
        """Whether the token begins a step: it is ``by``, and that is no axis."""
        after = self._tokens[min(index + 1, len(self._tokens) - 1)]
        return self._tokens[index].text == "by" and after.text not in (",", ")", "by", "=")

    def feed(self, terminal: str, token: Tok) -> tuple[bool, Any]:
        """Take one token: whether it was legal, and at the end of a text its value.

        The lookaheads of LALR states are merged, so that an illegal token may still cause
        reductions; they are those that every continuation would have caused.
        """
        table, states, values = self._table, self._states, self._values
        while True:
            action = table.actions[states[-1]].get(terminal)
            if action is None:
                return False, None
            if not isinstance(action, _Reduce):
                states.append(action)
                values.append(
                    self._token_class(
                        terminal, token.text, start_pos=token.start, end_pos=token.end
                    )
                )
                return True, None
            size, reduce = action.size, action.action
            if reduce is None:
                states.pop()
            elif size:
                children = values[-size:]
                del states[-size:], values[-size:]
                values.append(reduce(children))
            else:
                values.append(reduce([]))
            states.append(table.after(states[-1], action.origin, terminal))
            if terminal == "$END" and states[-1] == table.end:
                return True, values[-1]

    def expected(self) -> frozenset[str]:
        """The terminals that are legal now."""
        return frozenset(t for t in self._table.actions[self._states[-1]] if self._takes(t))

    def _takes(self, terminal: str) -> bool:
        table, states = self._table, list(self._states)
        while True:
            action = table.actions[states[-1]].get(terminal)
            if action is None:
                return False
            if not isinstance(action, _Reduce):
                return True
            if action.size:
                del states[-action.size :]
            states.append(table.after(states[-1], action.origin, terminal))
            if terminal == "$END" and states[-1] == table.end:
                return True

    # ---- the stack, for error recovery
    def enclosing(self, lists: Mapping[str, Any]) -> tuple[int, Any]:
        """Depth of the innermost state in which one of these nonterminals may begin, and the
        mapping's value for it."""
        for depth in range(len(self._states) - 1, -1, -1):
            gotos = self._table.gotos[self._states[depth]]
            for nonterminal, value in lists.items():
                if nonterminal in gotos:
                    return depth, value
        raise AssertionError("the initial state can begin a kernel")

    def offset(self, depth: int) -> int | None:
        """Character offset of what has been read since the state at this depth, if anything."""
        return _offset(self._values[depth]) if depth < len(self._values) else None

    def unwind(self, depth: int) -> None:
        """Forget all that has been read since the state at this depth."""
        del self._states[depth + 1 :]
        del self._values[depth:]


def _offset(value: Any) -> int | None:
    """Where a value of the automaton's stack begins."""
    while not hasattr(value, "span") and not hasattr(value, "start_pos"):
        if not value.children:
            return None
        value = value.children[0]
    return value.span.start if hasattr(value, "span") else value.start_pos
