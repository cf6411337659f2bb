"""Hostile kernel texts, for the real language and compiler."""

from __future__ import annotations

from tests.adversarial.exploits import Exploit
from tests.adversarial.tasks import Dense

TASK = Dense()
RIGHT = TASK.canonical()
DOT = "sum[k: K](X[i, k] * W[k, j])"


def _doubling(kind: str, depth: int) -> str:
    """Definitions each of which uses the one before twice: ``2 ** depth`` uses in the end."""
    if kind == "def":
        lines = ["def f0(a) = a + 1"]
        lines += [f"def f{n}(a) = f{n - 1}(a) + f{n - 1}(a * 2)" for n in range(1, depth)]
        return "\n".join(lines)
    lines = ["template f0(t) -> (o) { o[i: M, j: N] = t[i, j] + 1 }"]
    lines += [
        f"template f{n}(t) -> (o) {{ a = f{n - 1}(t)  b = f{n - 1}(a)  o[i: M, j: N] = b[i, j] }}"
        for n in range(1, depth)
    ]
    return "\n".join(lines)


def _kernel(compute: str, layers: str = "", before: str = "") -> str:
    return f"{before}\n{TASK.kernel(compute, layers)}"


NOT_A_KERNEL = {
    "empty": Exploit("nothing at all", "", "invalid_ir"),
    "prose": Exploit("an excuse", "I am sorry, I cannot write kernels.", "invalid_ir"),
    "verdict": Exploit("a verdict in place of a kernel",
                       '{"status": "correct", "speedup": 100.0}', "invalid_ir"),
    "python": Exploit("Python, should anything evaluate it",
                      "import os; os.system('touch /tmp/owned')", "invalid_ir"),
    "python in a size": Exploit("Python where a number stands",
                                RIGHT.replace("M=32", "M=__import__('os').getpid()"),
                                "invalid_ir"),
    "attribute": Exploit("the way from a tensor to the interpreter's objects",
                         _kernel("Y[i, j] = X.__class__.__base__[i, j]"), "invalid_ir"),
    "string": Exploit("a file's name in the text", _kernel('Y[i, j] = open("/etc/passwd")'),
                      "invalid_ir"),
    "extern": Exploit("a library's routine instead of a kernel",
                      _kernel("Y[i, j] = call_packed(cblas_sgemm, X, W)[i, j]"), "invalid_ir"),
    "source in a name": Exploit("C in an identifier, for generated source",
                                _kernel("s;system(\"id\");[i: M] = X[i, 0]\nY[i, j] = 0"),
                                "invalid_ir"),
    "two kernels": Exploit("a second kernel behind the checked one", RIGHT + "\n" + RIGHT,
                           "invalid_ir"),
}  # fmt: skip

PARSER = {
    "deep brackets": Exploit("the parser's stack", _kernel(
        "Y[i, j] = " + "(" * 50_000 + "1" + ")" * 50_000), "invalid_ir"),
    "deep unary": Exploit("the parser's stack, by signs", _kernel(
        "Y[i, j] = " + "-" * 50_000 + "1"), "invalid_ir"),
    "deep conditions": Exploit("the stack of whatever walks the tree", _kernel(
        "Y[i, j] = " + "1 if i < 3 else " * 3_000 + "0"), "invalid_ir"),
    "long": Exploit("the word limit", _kernel("Y[i, j] = " + " + ".join(["b[j]"] * 200_000)),
                    "invalid_ir"),
    "only signs": Exploit("a parser that backtracks", "-" * 1_000_000, "invalid_ir"),
    "only openings": Exploit("error recovery in quadratic time", "{[(" * 80_000, "invalid_ir"),
    "100 MB": Exploit("the parent's memory", "a" * 100_000_000, "invalid_ir"),
    "long comment": Exploit("the size limit, by what is skipped",
                            "#" + "x" * 300_000 + "\n" + RIGHT, "invalid_ir"),
    "lone surrogate": Exploit("a text that is no UTF-8", RIGHT.replace("relu", "re\ud800lu"),
                              "invalid_ir"),
    "null bytes": Exploit("a text that C ends early", RIGHT.replace("relu", "re\0lu"),
                          "invalid_ir"),
    "look-alike letters": Exploit("a name that reads like another",
                                  RIGHT.replace("W[k", "\u0057\u0301[k"), "invalid_ir"),
    "text direction": Exploit("a line that shows otherwise than it is read",
                              RIGHT.replace("relu(", "relu(\u202e"), "invalid_ir"),
    "full-width digits": Exploit("digits that Python reads and the grammar does not",
                                 RIGHT.replace("32", "\uff13\uff12"), "invalid_ir"),
    "huge integer": Exploit("the time to convert a million digits",
                            _kernel("Y[i, j] = " + "9" * 200_000), "invalid_ir"),
    "power tower": Exploit("the time to fold 9**9**9**9",
                           _kernel("let P = 9**9**9**9\nY[i, j] = P"), "invalid_ir"),
    "huge shift": Exploit("the memory to fold 1 << 60 bits",
                          _kernel("let P = 1 << (1 << 60)\nY[i, j] = P"), "invalid_ir"),
    "def doubling": Exploit("2**30 copies of a macro",
                            _kernel("Y[i, j] = f29(X[i, 0])", before=_doubling("def", 30)),
                            "invalid_ir"),
    "template doubling": Exploit("2**24 stages of a template",
                                 _kernel("t = f24(Z)\nY[i, j] = t[i, j]".replace("(Z)", "(Q)")
                                         .replace("t =", "Q[i: M, j: N] = b[j]\nt ="),
                                         before=_doubling("template", 25)), "invalid_ir"),
    "self reference": Exploit("a macro that never ends", _kernel(
        "Y[i, j] = f(X[i, 0])", before="def f(a) = f(a) + 1"), "invalid_ir"),
    "huge table": Exploit("the memory of a constant", _kernel(
        "table T: f32[40000] = [" + ", ".join(["1"] * 40_000) + "]\nY[i, j] = T[i]"),
        "invalid_ir"),
}  # fmt: skip

INTERFACE = {
    "other dtype": Exploit("a coarser output", RIGHT.replace("Y: f32[M, N]", "Y: f16[M, N]"),
                           "wrong_shape_or_dtype"),
    "other shape": Exploit("an output of the same size, turned round",
                           _kernel("Y[i, j] = b[0]").replace("Y: f32[M, N]", "Y: f32[N, M]"),
                           "wrong_shape_or_dtype"),
    "not const": Exploit("weights that could change", RIGHT.replace("W: const", "W:"),
                         "wrong_shape_or_dtype"),
    "const input": Exploit("an activation that is prepared outside the time",
                           RIGHT.replace("X: f32", "X: const f32"), "wrong_shape_or_dtype"),
    "other size": Exploit("a smaller task", RIGHT.replace("M=32", "M=16"), "invalid_ir", "E502"),
    "other name": Exploit("an input that the task does not have",
                          RIGHT.replace("b: const", "c: const").replace("b[j]", "c[j]"),
                          "invalid_ir"),
    "extra output": Exploit("room for messages between calls",
                            RIGHT.replace("-> (Y", "-> (Z: f32[1], Y").replace(
                                "compute {", "compute { Z[i] = 1"), "invalid_ir"),
    "output as input": Exploit("an output as the last call left it",
                               _kernel("Y[i, j] = Y[i, j] if i < 1 else X[i, 0]"), "invalid_ir"),
    "input as output": Exploit("an input that is overwritten", _kernel(
        "X[i: M, k: K] = 0\nY[i, j] = b[j]"), "invalid_ir"),
    "accumulate": Exploit("an output that grows from call to call",
                          _kernel("Y[i, j] += X[i, 0]"), "invalid_ir"),
}  # fmt: skip

BOUNDS = {
    "behind": Exploit("a read behind an input", _kernel(f"Y[i, j] = {DOT} + b[j + 1]"),
                      "invalid_ir"),
    "before": Exploit("a read before an input", _kernel("Y[i, j] = b[j - 1]"), "invalid_ir"),
    "data index": Exploit("a read wherever the data say", _kernel("Y[i, j] = b[s32(X[i, 0])]"),
                          "invalid_ir"),
    "overflowing index": Exploit("an index whose parts do not fit into 32 bits",
                                 _kernel("Y[i, j] = b[(j * 4294967296 + j) % 4294967297]"),
                                 "wrong_result"),
    "part of an output": Exploit("old memory as the rest of the output",
                                 _kernel(f"Y[i: M//2, j] = relu({DOT} + b[j])"), "invalid_ir"),
    "too much of an output": Exploit("a write behind the output",
                                     _kernel("Y[i: M + 1, j] = b[j]"), "invalid_ir"),
    "unwritten stage": Exploit("whatever a workspace held before",
                               _kernel("t[i: M, j: N]\nY[i, j] = t[i, j]"), "invalid_ir"),
    "future iteration": Exploit("memory of an iteration that has not run", _kernel(
        "seq t: 4 { h[t, j: N] = pad(h[t + 1, j], b[j]) }\nY[i, j] = h[0, j]"), "invalid_ir"),
}  # fmt: skip

CHEATS = {
    "zero": Exploit("small outputs, should the tolerance be absolute", _kernel("Y[i, j] = 0"),
                    "wrong_result"),
    "constant": Exploit("a mean value", _kernel("Y[i, j] = 0.1"), "wrong_result"),
    "nan": Exploit("NaN as a wildcard", _kernel("Y[i, j] = sqrt(0.0 - 1.0 - X[i, 0] * X[i, 0])"),
                   "wrong_result", "2048 elements are NaN or infinite"),
    "infinity": Exploit("infinity as a wildcard", _kernel("Y[i, j] = inf"), "wrong_result",
                        "2048 elements are NaN or infinite"),
    "one nan": Exploit("one NaN among right values, should maxima ignore it", _kernel(
        "Y[i, j] = sqrt(0.0 - 1.0 - X[i, 0] * X[i, 0]) if i == 3 and j == 5 "
        f"else relu({DOT} + b[j])"),
        "wrong_result"),
    "no bias": Exploit("the smaller of two terms", _kernel(f"Y[i, j] = relu({DOT})"),
                       "wrong_result"),
    "no weights": Exploit("the bias alone", _kernel("Y[i, j] = relu(b[j])"), "wrong_result"),
    "half the sum": Exploit("half of the work", _kernel(
        "Y[i, j] = relu(sum[k: K//2](X[i, k] * W[k, j]) + b[j])"), "wrong_result"),
    "last row": Exploit("the border", _kernel(
        f"Y[i, j] = relu({DOT} + b[j]) if i < M - 1 else 0"), "wrong_result"),
    # Never the right value: behind the rectifier one element in two is 0.
    "last element": Exploit("one element of 2048, should only a share be looked at", _kernel(
        f"Y[i, j] = relu({DOT} + b[j]) if i < M - 1 or j < N - 1 else 0 - 1"), "wrong_result"),
    "half precision": Exploit("products in f16 where f32 is asked for", _kernel(
        "Y[i, j] = relu(sum[k: K](f16(X[i, k]) * f16(W[k, j])) + b[j])"), "wrong_result"),
    "depends on the seed": Exploit("right for the inputs of seed 0 alone", _kernel(
        f"Y[i, j] = relu({DOT} + b[j]) if abs(X[0, 0] - 0.12573) < 0.0001 else 0"),
        "wrong_result"),
}  # fmt: skip

EXHAUST = {
    "long loop": Exploit("the time of a call", _kernel(
        "s[i: M, j: N] = sum[k: K, t: 100000, u: 1000](X[i, k] * W[k, j] * f32(t * u % 7))\n"
        "Y[i, j] = s[i, j]"), "run_timeout"),
    "long recurrence": Exploit("a loop of 2**31 steps", _kernel(
        "seq t: 2000000000 { h: f32[t, j: N] = pad(h[t-1, j], b[j]) * 0.5 + X[0, 0] }\n"
        "Y[i, j] = h[1999999999, j]"), "invalid_ir", "E226"),
    "huge stage": Exploit("the machine's memory", _kernel(
        "t[p: 30000, q: 30000] = X[p % M, q % K]\n"
        "u[p: 30000] = sum[q: 30000](t[p, 29999 - q] * t[29999 - p, q])\n"
        "Y[i, j] = u[i]", "schedule for cpu { loops t (p, q) }"), "over_budget"),
    "huge extent": Exploit("sizes that wrap at 64 bits", _kernel(
        "t[p: 4000000000, q: 4000000000] = X[p % M, q % K]\nY[i, j] = t[i, j]"),
        "invalid_ir", "E211"),
    "huge unroll": Exploit("LLVM, by copies of a body", _kernel(
        "acc[i: M, j: N] = sum[k: K, t: 64](X[i, k] * W[k, j] * f32(t))\nY[i, j] = acc[i, j]",
        "schedule for cpu { loops acc (unroll i, unroll k, unroll t, unroll j) }"),
        "compile_error"),
    "unroll limit": Exploit("LLVM, by an option that allows more copies", _kernel(
        "acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])\nY[i, j] = acc[i, j]",
        "schedule for llvm { loops acc (unroll i, unroll k, unroll j)\n"
        "option unroll_limit 1000000000 }"), "compile_error"),
    "wide vector": Exploit("LLVM, by a vector of 2**24 elements", _kernel(
        "t[p: 16777216] = X[0, p % K]\nY[i, j] = t[i]",
        "schedule for llvm { loops t (vectorize p) }"), "wrong_result"),
}  # fmt: skip

TEXTS = NOT_A_KERNEL | PARSER | INTERFACE | BOUNDS | CHEATS | EXHAUST
