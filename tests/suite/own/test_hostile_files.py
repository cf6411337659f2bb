"""Python files whose code or table would end, hang or mislead the command that reads them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.find import find_workload
from edgekernelbench.suite.own import store, verify
from edgekernelbench.suite.own.add import add
from tests.suite.own.test_python import SIMPLE, write

EVIL = """
class Evil(BaseException):
    pass

class Mute(Exception):
    def __str__(self):
        raise RuntimeError

"""
DRAWN = 'accumulation="K", draw={"x": drawn}'


def change(*pairs: tuple[str, str]) -> str:
    text = EVIL + SIMPLE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def refused(text: str, folder: Path, home: Path) -> UsageError:
    path = write(folder, text)
    with pytest.raises(UsageError) as caught:
        add(path)
    error = caught.value
    assert str(path) in error.message and "\n" not in error.message and error.help
    assert len(error.message) < 1000
    assert store.names() == () and not list((home / "suite").glob("*"))
    return error


RAISED = [
    ("sys.exit(0)", "SystemExit: 0"),
    ("sys.exit(3)", "SystemExit: 3"),
    ("raise_(Evil)", "Evil"),
    ("raise_(GeneratorExit)", "GeneratorExit"),
    ("raise_(Mute)", "Mute"),
]


@pytest.mark.parametrize(("code", "told"), RAISED)
@pytest.mark.parametrize("where", ["file", "function", "draw", "twin", "later"])
def test_what_is_raised(code: str, told: str, where: str, tmp_path: Path, home: Path):
    changes = {
        "file": [("@task(", f"{code}\n@task(")],
        "function": [("return x.sum(axis=1)", code)],
        "draw": [('accumulation="K"', DRAWN), ("@task(", f"def drawn(d, s): {code}\n@task(")],
        "twin": [
            ("return x.sum(axis=1)", f"return x.sum(axis=1)\n\n@total.twin\ndef _(g, x): {code}")
        ],
        "later": [("return x", f"global n; n += 1\n    if n > 2: {code}\n    return x")],
    }[where]
    head = "import sys\nn = 0\ndef raise_(kind):\n    raise kind()\n"
    assert told in refused(head + change(*changes), tmp_path, home).message


def test_what_is_raised_once_it_is_added(tmp_path: Path):
    text = change(("return x", "if STOP: raise SystemExit(0)\n    return x"))
    add(write(tmp_path, "import os\nSTOP = 'STOP_NOW' in os.environ\n" + text))
    workload = find_workload("mine__total__01")
    workload.definition.pattern.reference.__globals__["STOP"] = True
    with pytest.raises(RuntimeError, match="SystemExit"):
        workload.truth(workload.inputs(1), cache=False)


@pytest.mark.parametrize("where", ["@task(", "return x"])
def test_what_does_not_end(where: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verify, "REFERENCE_S", 0.5)
    loop = "while True: pass"
    text = change((where, f"{loop}\n{'' if where == '@task(' else '    '}{where}"))
    assert "takes more than 0.5 s" in refused(text, tmp_path, home).message


def test_what_is_printed_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = change(
        ("@task(", "print('read')\n@task("), ("return x", "print('called')\n    return x")
    )
    add(write(tmp_path, text))
    workload = find_workload("mine__total__01")
    workload.truth(workload.inputs(1), cache=False)
    captured = capsys.readouterr()
    assert captured.out == "" and "read" in captured.err and "called" in captured.err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('accumulation="K"', 'accumulation="1e400"', "no finite value"),
        ('accumulation="K"', 'accumulation="1e400-1e400"', "no finite value"),
        ('accumulation="K"', 'accumulation="10**60"', "beyond 64 bits"),
        ('accumulation="K"', 'accumulation="10**9"', "all inputs have 60 elements"),
        ('accumulation="K"', 'accumulation="M**9**9**9", derived="M=K"', "exponent"),
        ('accumulation="K"', 'accumulation="cv(K)"', "missing"),
        ('accumulation="K"', 'accumulation="min()"', "min"),
        ('accumulation="K"', 'accumulation="(-K)**0.5"', "no real value"),
        ('accumulation="K"', 'accumulation="K", flops="-5"', "flops is -5"),
        ('accumulation="K"', 'accumulation="K", flops="10**400"', "an exponent beyond"),
        ('accumulation="K"', 'accumulation="K", flops="+".join(["K"]*20000)', "longer than"),
        ('accumulation="K"', 'accumulation="K", draw={"w": near(1.0)}', "draw names no input 'w'"),
        ('accumulation="K"', 'accumulation="K", draw={"x": 3}', "draw: 'x' is given no function"),
        ('accumulation="K"', 'accumulation="K", draw=["x"]', "draw: not a mapping"),
        ('accumulation="K"', 'accumulation="K", inert={"w": "no"}', "inert names no input 'w'"),
        ('accumulation="K"', 'accumulation="K", exempt={"w": "no"}', "exempt names no control"),
        ('accumulation="K"', 'accumulation="K", derived="x=K"', "two things are called 'x'"),
        ("y:[N]:f32", "x:[N]:f32", "two things are called 'x'"),
        ('"K": 3', '"K": True', "shapes.0.K"),
        ('"K": 3', '"K": "3"', "shapes.0.K"),
        ('"K": 3', '"K": 2.5', "the extent K is 2.5, not a whole number"),
        ('"K": 3', '"K": float("nan")', "shapes.0.K"),
        ('"K": 3', '"K": 10**30', "64 bits"),
        ("K", "where", "`where` is a reserved word"),
        ("x:[N,K]", "é:[N,K]", "is no sign of the language"),
        ("def total(", "def ümlaut(", "not a name that a kernel can have"),
        ("def total(x):\n    return", "total = _(lambda x:", "not a name"),
        ("def total(", f"def {'n' * 300}(", "not a name"),
    ],
)
def test_tables(old: str, new: str, told: str, tmp_path: Path, home: Path):
    text = change((old, new))
    if "lambda" in new:
        text = text.replace("@task(", "_ = task(").replace("axis=1)", "axis=1))")
    assert re.search(re.escape(told), refused(text, tmp_path, home).message)


def test_a_docstring_of_blanks(tmp_path: Path):
    text = change(("return x", '"""\n    \n    """\n    return x'))
    assert add(write(tmp_path, text)).manifest.tasks[0].workload.definition.formula == "total"


# ---------------------------------------------------------------- paths
@pytest.mark.parametrize(
    "named",
    [
        "/etc/passwd",
        "../secret.ekir",
        "/dev/zero",
        "pipe",
        "link",
        "circle",
        "sub",
        "a\\0b",
        "large",
    ],
)
def test_canonical_lies_beside_the_file(named: str, tmp_path: Path, home: Path):
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "secret.ekir").write_text("kernel")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(tmp_path / "secret.ekir")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "sub").mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(8 << 20)
    text = change(('accumulation="K"', f'accumulation="K", canonical="{named}"'))
    error = refused(text, folder, home)
    assert "cannot be read" in error.message and str(folder) in error.help


def test_a_function_named_like_a_path(tmp_path: Path, home: Path):
    (tmp_path / "total.ekir").write_text("kernel k(x: f32[1]) -> (y: f32[1]) { }")
    text = change(
        ("@task(", "@rename\n@task("),
        ('accumulation="K"', 'accumulation="K", canonical="total.ekir"'),
    )
    text = "def rename(made):\n    made.id = '../../evil'\n    return made\n" + text
    assert "'../../evil': not a name" in refused(text, tmp_path, home).message
    assert not list(tmp_path.rglob("evil*"))
