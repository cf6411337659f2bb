"""The LALR(1) automaton of `grammar.lark`, fed with the tokens of `_scan.py`.

The words of the language are contextual, as in lark's contextual lexer: a word is a keyword only
where the automaton can take it as one. `table`, `layout`, `memory`, ... may name tensors.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any

from edgekernelbench.ir._scan import Scan, Tok
from edgekernelbench.ir.words import DTYPES, RESERVED

if TYPE_CHECKING:
    from lark import Lark
    from lark.parsers.lalr_interactive_parser import InteractiveParser

_BEFORE_NAME = frozenset({"kernel", "table"})


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
            raise NotImplementedError

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


_KINDS = {"int": "INT", "float": "FLOAT", "end": "$END"}


class Automaton:
    """The parser between two tokens."""

    def __init__(self) -> None:
        self._parser: InteractiveParser = load().parse_interactive()
        self._words = _terminals()

    def terminal(self, scan: Scan, index: int) -> str:
        """Name of the terminal that the token at this index is, in the present state."""
        token = scan.tokens[index]
        if token.kind == "word":
            keyword = self._words.get(token.text)
            if keyword is None:
                return "NAME"
            if token.text in RESERVED:
                return keyword
            if token.text in _BEFORE_NAME and scan.tokens[index + 1].kind != "word":
                return "NAME"
            return keyword if keyword in self._parser.choices() else "NAME"
        return _KINDS.get(token.kind) or self._words.get(token.text, "BAD")

    def feed(self, terminal: str, token: Tok) -> Any:
        """Take one token; the value of the whole text at its end.

        Raises:
            lark.UnexpectedToken: when the present state cannot take it; the state is then spoilt
                only by reductions that every continuation would have made.
        """
        from lark import Token

        return self._parser.feed_token(
            Token(terminal, token.text, start_pos=token.start, end_pos=token.end)
        )
