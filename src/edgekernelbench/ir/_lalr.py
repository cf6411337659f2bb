"""The LALR(1) automaton of `grammar.lark`, fed with the tokens of `_scan.py`.

The words of the language are contextual, as in lark's contextual lexer: a word is a keyword only
where the automaton can take it as one. `table`, `layout`, `memory`, ... may name tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from edgekernelbench.ir._scan import Scan, Tok
from edgekernelbench.ir.words import DTYPES, RESERVED

if TYPE_CHECKING:
    from lark import Lark

_BEFORE_NAME = frozenset({"kernel", "table"})
_KINDS = {"int": "INT", "float": "FLOAT", "end": "$END"}


@functools.cache
def load() -> Lark:
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

    out = dict.fromkeys(DTYPES, "DTYPE") | {"kernel": "KERNEL", "table": "TABLE"}
    for terminal in load().terminals:
        if isinstance(terminal.pattern, PatternStr):
            out[terminal.pattern.value] = terminal.name
    return out


@functools.cache
def spelling() -> Mapping[str, str]:
    """Text of each terminal that has just one."""
    return {name: text for text, name in _terminals().items() if name != "DTYPE"}


class Automaton:
    """The parser between two tokens of a text."""

    def __init__(self, scan: Scan) -> None:
        from lark import Token, UnexpectedToken

        self._tokens = scan.tokens
        self._parser = load().parse_interactive()
        self._words = _terminals()
        self._token_class = Token
        self._unexpected = UnexpectedToken

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
        if token.text in _BEFORE_NAME and self._tokens[index + 1].kind != "word":
            return "NAME"
        return keyword if keyword in self._parser.choices() else "NAME"

    def feed(self, terminal: str, token: Tok) -> tuple[bool, Any]:
        """Take one token: whether it was legal, and at the end of a text its value."""
        if terminal not in self._parser.choices():
            return False, None
        lark_token = self._token_class(
            terminal, token.text, start_pos=token.start, end_pos=token.end
        )
        try:
            return True, self._parser.feed_token(lark_token)
        except self._unexpected:
            # The lookaheads of an LALR state are merged: this one belonged to another context.
            return False, None

    def expected(self) -> frozenset[str]:
        """The terminals that are legal now."""
        return frozenset(self._parser.accepts())

    # ---- the stack, for error recovery
    def enclosing(self, lists: Mapping[str, Any]) -> tuple[int, Any]:
        """Depth of the innermost state in which one of these nonterminals may begin, and the
        mapping's value for it."""
        states = self._parser.parser_state.parse_conf.states
        stack = self._parser.parser_state.state_stack
        for depth in range(len(stack) - 1, -1, -1):
            for nonterminal, value in lists.items():
                if nonterminal in states[stack[depth]]:
                    return depth, value
        raise AssertionError("the initial state can begin a kernel")

    def offset(self, depth: int) -> int | None:
        """Character offset of what has been read since the state at this depth, if anything."""
        values = self._parser.parser_state.value_stack
        return _offset(values[depth]) if depth < len(values) else None

    def unwind(self, depth: int) -> None:
        """Forget all that has been read since the state at this depth."""
        state = self._parser.parser_state
        del state.state_stack[depth + 1 :]
        del state.value_stack[depth:]


def _offset(value: Any) -> int | None:
    """Where a value of the automaton's stack begins."""
    while not hasattr(value, "span") and not hasattr(value, "start_pos"):
        if not value.children:
            return None
        value = value.children[0]
    return value.span.start if hasattr(value, "span") else value.start_pos
