"""Tables as Markdown and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from edgekernelbench.report.export.tables import Table

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "–": "--", "·": r"\textperiodcentered{}", "µ": r"\textmu{}", "×": r"\texttimes{}",
}  # fmt: skip


def markdown_of(tables: Iterable[Table]) -> str:
    """Each table under its caption, numbers to the right."""
    return "\n\n".join(_markdown(table) for table in tables) + "\n"


def _markdown(table: Table) -> str:
    rule = ("---", *("---:" for _ in table.header[1:]))
    lines = (table.header, rule, *table.rows)
    drawn = ["| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines]
    return "\n".join((_markdown_cell(table.caption), "", *drawn))


_MARKDOWN = re.compile(r"[\\|<>`*]|(?<!\w)_|_(?!\w)|\[(?!\d)|\](?=\()")
"""What begins markup; not the intervals of shares, ``[47, 91]``, nor the inside of a name."""


def _markdown_cell(text: str) -> str:
    """A name may be a stranger's: it neither ends the cell nor brings markup."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def latex_of(tables: Iterable[Table]) -> str:
    r"""Each as a ``table`` with ``booktabs`` lines; the file is for ``\input``."""
    head = "% Needs \\usepackage{booktabs}. Written by `ekb export`."
    return "\n\n".join((head, *(_latex(table) for table in tables))) + "\n"


def _latex(table: Table) -> str:
    columns = "l" + "r" * (len(table.header) - 1)
    return "\n".join(
        (
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{latex_text(table.caption)}}}",
            rf"  \label{{tab:{table.label}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            _latex_row(table.header),
            r"    \midrule",
            *(_latex_row(row) for row in table.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        )
    )


def _latex_row(cells: Sequence[str]) -> str:
    return "    " + " & ".join(map(latex_text, cells)) + r" \\"


def latex_text(text: str) -> str:
    """With every letter that LaTeX reads as a command escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
