"""Kernels out of answers: what models really write around one."""

from __future__ import annotations

import html
import json
import time

import pytest

from edgekernelbench.agents.answers import MAX_ANSWER, MAX_KERNEL, extract_kernel
from edgekernelbench.ir.parse import parse
from edgekernelbench.suite import load_suite

K = """kernel scale[N=64](x: f32[N]) -> (y: f32[N]) {
  compute { y[i: N] = 2 * x[i] }
  schedule for cpu { loops y (vectorize i) }  # one } in a comment
}"""
OLD = K.replace("2 *", "3 *")
OTHER = K.replace("scale", "other")
ONE_LINE = "kernel scale[N=64](x: f32[N]) -> (y: f32[N]) { compute { y[i: N] = 2 * x[i] } }"
TABLED = f"table t: f32[2] = [1.0, 2.0]\n{K}"
DEFINED = f"""def twice(a) = 2 * a
combiner first((a, i), (b, j)) init (-inf, -1) = (max(a, b), select(a >= b, i, j))
template scaled(t, w) -> (o) {{
  o[i: dim(t, 0)] = t[i] * w[i]
}}
{TABLED}"""
CUT = K[: K.index("loops")].rstrip()


def fence(text: str, word: str = "ekir", mark: str = "```") -> str:
    return f"{mark}{word}\n{text}\n{mark}"


def lines(text: str, form: str) -> str:
    return "\n".join(form.format(n, line) for n, line in enumerate(text.splitlines(), 1))


# (shape, answer, kernel that is meant)
SHAPES = [
    ("bare", K, K),
    ("bare with line breaks around", f"\n\n{K}\n\n", K),
    ("one line", ONE_LINE, ONE_LINE),
    ("fence of the language", fence(K), K),
    ("fence without a language", fence(K, ""), K),
    ("fence of another language", fence(K, "rust"), K),
    ("fence with attributes", fence(K, 'ekir title="k.ekir" {.numberLines}'), K),
    ("fence with a space before the word", fence(K, " ekir"), K),
    ("fence of tildes", fence(K, mark="~~~"), K),
    ("fence of four", fence(K, mark="````"), K),
    ("fence in a fence", fence(f"Here:\n{fence(K)}", "markdown", "````"), K),
    ("indented fence", "1. This:\n\n" + lines(fence(K), "   {1}"), "indented"),
    ("fence that is not closed", f"```ekir\n{K}", K),
    ("fence that is not opened", f"{K}\n```", K),
    ("code on the line of the fence", f"```{K}\n```", K),
    ("inline code", f"It is `{ONE_LINE}`.", ONE_LINE),
    ("prose before", f"Here is the kernel you asked for:\n\n{K}", K),
    ("prose after", f"{K}\n\nIt is vectorised along `i` (64 lanes).", K),
    ("prose on both sides, fenced", f"Sure!\n\n{fence(K)}\n\nThis should be {{fast}}.", K),
    ("prose that says kernel", f"The kernel scale (see above) is small.\n\n{fence(K)}", K),
    ("prose that says kernel afterwards", f"{fence(K)}\nThis kernel scale (N = 64) runs.", K),
    ("prose with an open bracket afterwards", f"{fence(K)}\nA kernel scale (as here", K),
    ("prose in the fence behind the kernel", fence(f"{K}\n\nDone."), K),
    ("prose in the fence before the kernel", fence(f"// file k.ekir\n{K}"), K),
    ("heading", f"## Kernel\n\n{K}", K),
    ("bold label", f"**Answer:** {ONE_LINE}", ONE_LINE),
    ("list item", f"- {ONE_LINE}", ONE_LINE),
    ("numbered item", f"1. {ONE_LINE}", ONE_LINE),
    ("corrected further down", f"{fence(OLD)}\nWait, twice was asked:\n{fence(K)}", K),
    ("corrected without fences", f"{OLD}\nNo:\n{K}", K),
    ("corrected in the same fence", fence(f"{OLD}\n\n{K}"), K),
    ("another kernel before", f"{fence(OTHER)}\n{fence(K)}", K),
    ("another kernel after", f"{fence(K)}\nFor comparison:\n{fence(OTHER)}", K),
    ("only another kernel", fence(OTHER), OTHER),
    ("a plan in another fence", f"{fence('loops y (i)', '')}\n{fence(K)}", K),
    ("a header before", f"The header is `{K.splitlines()[0]}`.\n{fence(K)}", K),
    ("a header fenced before", f"{fence(K.splitlines()[0])}\n\nand so\n{fence(K)}", K),
    ("a second one that is cut", f"{fence(K)}\n```ekir\n{CUT}", K),
    ("NumPy beside it", f"{fence('y = 2 * x', 'python')}\n{fence(K)}", K),
    ("python string", f'code = """\n{K}\n"""', K),
    ("assignment", f"KERNEL = '''{K}'''", K),
    ("thoughts before", f"<think>{OLD} is wrong</think>\n{K}", K),
    ("thoughts with fences", f"<think>\n{fence(OLD)}\n</think>\n\n{fence(K)}", K),
    ("thoughts of another name", f"<reasoning>{OLD}</reasoning>{K}", K),
    ("thoughts in capitals", f"<Thinking>{OLD}</Thinking>{K}", K),
    ("thoughts without their beginning", f"First {OLD}, no.\n</think>\n{K}", K),
    ("thoughts after it", f"{K}\n<think>was that right? {OLD}", K),
    ("answer tag", f"<answer>\n{K}\n</answer>", K),
    ("xml", f'<kernel name="scale"><![CDATA[\n{K}\n]]></kernel>', K),
    ("JSON", json.dumps({"kernel": K}), K),
    ("JSON with more", json.dumps({"note": "a kernel", "files": [{"text": K}], "n": 1}), K),
    ("JSON, fenced", fence(json.dumps({"kernel": K}), "json"), K),
    ("JSON, indented and fenced", fence(json.dumps({"code": K}, indent=2), "json"), K),
    ("JSON of a fence", json.dumps({"answer": fence(K)}), K),
    ("JSON string", json.dumps(K), K),
    ("JSON list", json.dumps(["text", K]), K),
    ("JSON that is cut", json.dumps({"kernel": K})[:-2], K),
    ("escaped line breaks", K.replace("\n", "\\n"), K),
    ("prose and escaped line breaks", "The answer:\n" + K.replace("\n", "\\n"), K),
    ("HTML entities", html.escape(K), K),
    ("HTML entities in pre", f"<pre><code>{html.escape(K)}</code></pre>", K),
    ("Windows line ends", fence(K).replace("\n", "\r\n"), K),
    ("old Macintosh line ends", fence(K).replace("\n", "\r"), K),
    ("byte order mark", "\ufeff" + K, K),
    ("zero-width spaces", K.replace("kernel", "ker\u200bnel").replace("[i", "[\u200bi"), K),
    ("non-breaking spaces", K.replace("kernel scale", "kernel\u00a0scale"), K),
    ("quoted", lines(K, "> {1}"), K),
    ("quoted and fenced", lines(fence(K), "> {1}"), K),
    ("quoted twice", lines(K, ">> {1}"), K),
    ("line numbers with bars", lines(K, "{0:3} | {1}"), K),
    ("line numbers with colons", fence(lines(K, "{0}: {1}")), K),
    ("a patch that adds it", fence("@@ -0,0 +1,4 @@\n" + lines(K, "+{1}"), "diff"), K),
    ("table before", fence(TABLED), TABLED),
    ("table before, after prose", f"With a table:\n\n{TABLED}", TABLED),
    ("table of an earlier kernel", f"{TABLED}\n\nBetter:\n\n{K}", K),
    ("definitions before", fence(DEFINED), DEFINED),
    ("definitions before, after prose", f"With definitions:\n\n{DEFINED}", DEFINED),
    ("definitions before, quoted", lines(fence(DEFINED), "> {1}"), DEFINED),
    ("definitions before, with line numbers", lines(DEFINED, "{0:3} | {1}"), DEFINED),
    ("definitions of an earlier kernel", f"{DEFINED}\n\nBetter:\n\n{K}", K),
    ("definitions of both kernels", f"{DEFINED.replace('2 *', '3 *')}\n\n{DEFINED}", DEFINED),
    ("a template in a sentence", f"A template scaled(t, w) is too much here.\n\n{K}", K),
    ("definitions in another fence", f"{fence(DEFINED)}\nShorter:\n{fence(K)}", K),
    ("holes", K.replace("vectorize i", "i by ?{8, 16}, vectorize i"), "same"),
    ("no header brackets", "kernel scale() -> (y: f32[1]) { compute { y[i: 1] = 0 } }", "same"),
    ("arrow forgotten", K.replace("->", ""), "same"),
    ("header over several lines", K.replace("](", "]\n  (").replace("->", "\n  ->\n "), "same"),
    ("brace on the next line", K.replace("{\n", "\n{\n", 1), "same"),
    ("comment in the header", K.replace("(x", "( # { the input\n x"), "same"),
    ("long prose before", "word " * 200_000 + "\n" + K, K),
]  # fmt: skip

# (shape, answer, what of it is handed on)
BEGUN = [
    ("cut in the schedule", CUT, CUT),
    ("cut in a fence", f"Here:\n```ekir\n{CUT}", CUT),
    ("cut and the fence closed", fence(CUT), CUT),
    ("cut in the header", "kernel scale[N=64](x: f32[N", "kernel scale[N=64](x: f32[N"),
    ("closing brace forgotten", fence(K[:-1]), K[:-1].rstrip()),
    ("a bracket closed by a brace", K.replace("x[i]", "x[i"), K.replace("x[i]", "x[i")),
    ("quoted and cut", lines(CUT, "> {1}"), CUT),
]

NOTHING = [
    ("empty", ""),
    ("blanks", " \n\t\n"),
    ("refusal", "I am sorry, but I cannot help with that."),
    ("prose about it", "The kernel scale (N = 64) doubles its input."),
    ("prose about it, cut", "The kernel scale (N = 64, which"),
    ("a question", "Should the kernel be vectorised?"),
    ("NumPy", fence("def scale(x):\n    return 2 * x", "python")),
    ("CUDA", fence("__global__ void kernel(float *x) { x[0] *= 2; }", "cuda")),
    ("C", fence("void kernel_scale(float *x, int n) { for (;;) {} }", "c")),
    ("one layer alone", fence("schedule for cpu { loops y (vectorize i) }")),
    ("thoughts alone", f"<think>{K}"),
    ("thoughts alone, closed", f"<think>{K}</think>"),
    ("braces alone", "{}" * 1000),
    ("JSON without one", json.dumps({"error": "overloaded"})),
    ("deep JSON", "[" * 100_000),
    ("null bytes", "\0" * 100),
]


def test_there_are_enough_shapes():
    assert len(SHAPES) + len(BEGUN) + len(NOTHING) >= 100
    shapes = [*SHAPES, *BEGUN, *NOTHING]
    assert len({shape[0] for shape in shapes}) == len({shape[1] for shape in shapes}) == len(shapes)


@pytest.mark.parametrize(("answer", "meant"), [s[1:] for s in SHAPES], ids=[s[0] for s in SHAPES])
def test_the_kernel_of_an_answer(answer, meant):
    found = extract_kernel(answer, "scale")
    assert found is not None
    assert found.complete
    if meant == "indented":
        assert [x.strip() for x in found.text.splitlines()] == [x.strip() for x in K.splitlines()]
    else:
        assert found.text == (answer if meant == "same" else meant)


@pytest.mark.parametrize(("answer", "meant"), [s[1:] for s in BEGUN], ids=[s[0] for s in BEGUN])
def test_a_kernel_that_was_begun_is_handed_on(answer, meant):
    found = extract_kernel(answer, "scale")
    assert found is not None
    assert not found.complete
    assert found.text == meant
    assert parse(found.text).kernel is None


@pytest.mark.parametrize("answer", [s[1] for s in NOTHING], ids=[s[0] for s in NOTHING])
def test_an_answer_without_a_kernel(answer):
    assert extract_kernel(answer, "scale") is None


def test_without_the_name_the_last_complete_one_counts():
    found = extract_kernel(f"{fence(K)}\n{fence(OTHER)}\n{CUT}")
    assert found is not None
    assert (found.name, found.text) == ("other", OTHER)


@pytest.mark.parametrize(
    "answer",
    [
        "<think>" * 500_000,
        "</think>" * 500_000,
        "kernel a(" * 400_000,
        "kernel a{" * 400_000,
        "kernel a[" + "(" * 3_000_000,
        "```\n" * 900_000,
        "\n> " * 900_000,
        "table t:" * 400_000 + K,
        "\\n" * 2_000_000,
        "&lt;" * 1_000_000,
        '{"a":' * 500_000,
        "x" * (MAX_ANSWER + 10) + K,
    ],
    ids=lambda text: f"{text[:9]!r}",
)
def test_time_grows_with_length_alone(answer):
    began = time.process_time()
    found = extract_kernel(answer, "scale")
    assert time.process_time() - began < 10
    assert found is None or len(found.text) <= 2 * MAX_KERNEL


def test_canonical_programs_stay_whole():
    for workload in load_suite().subset("agent"):
        text = workload.canonical().strip()
        found = extract_kernel(f"Here it is.\n\n{fence(text)}\n")
        assert found is not None and found.text == text, workload.id
