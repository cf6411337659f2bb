"""Kernel texts with mistakes, for the golden table of diagnostics in `golden/syntax.txt`."""

_HEADER = (
    "kernel k[M=4, N=8, K=16](x: f32[M, K], w: const f32[K, N], b: f32[N]) -> (y: f32[M, N]) {\n"
)


def _compute(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{_HEADER}  compute {{\n{lines}  }}\n}}\n"


def _layer(lines: str, head: str = "schedule for cpu") -> str:
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    stage = "    y[i, j] = sum[k: K](x[i, k] * w[k, j])\n"
    return f"{_HEADER}  compute {{\n{stage}  }}\n  {head} {{\n{body}  }}\n}}\n"


def _kernel(head: str, body: str = "y[i] = x[i]") -> str:
    return f"{head} {{ compute {{ {body} }} }}"


def _kernel_with(definition: str) -> str:
    return f"{_HEADER}  {definition}\n  compute {{ y[i, j] = b[j] }}\n}}\n"


CASES: dict[str, str] = {
    # reductions
    "red_noparen": _compute("y[i, j] = sum[k: K] x[i, k] * w[k, j]"),
    "red_call": _compute("y[i, j] = sum(k: K) x[i, k] * w[k, j]"),
    "red_call2": _compute("y[i, j] = sum(k: K)(x[i, k] * w[k, j])"),
    "red_reduce": _compute("y[i, j] = reduce(sum, k: K, x[i, k])"),
    "red_reduce2": _compute("y[i, j] = reduce sum[k: K](x[i, k])"),
    "red_gen": _compute("y[i, j] = sum(x[i, k] * w[k, j] for k in range(K))"),
    "red_noextent": _compute("y[i, j] = sum[k] x[i, k] * w[k, j]"),
    "red_noextent2": _compute("y[i, j] = sum[k](x[i, k] * w[k, j])"),
    "red_nested_noparen": _compute("y[i, j] = (sum[k: K] x[i, k]) / 2\nz[i: M] = 1"),
    # updates and loops
    "update": _compute("y[i, j] += x[i, j]"),
    "for": _compute("for i in range(M) {\n  y[i, j] = 0\n}"),
    "for_py": _compute("for i in range(M):\n  for j in range(N):\n    y[i, j] = 0"),
    "while": _compute("while t < 4 { y[i, j] = 0 }"),
    "seq_in": _compute("seq t in 0..M {\n  y[t, j] = 0\n}"),
    "seq_eq": _compute("seq t = 0..M {\n  y[t, j] = 0 0\n}"),
    "seq_rev": _compute("seq t: M reverse {\n  y[t, j] = 0\n}"),
    "seq_noaxis": _compute("seq { y[i, j] = 0 }"),
    "if_stmt": _compute("if M > 3 { y[i, j] = 0 }"),
    "return_stmt": _compute("y[i, j] = 0\nreturn y"),
    # left sides
    "chained": _compute("y[i][j] = x[i, j]"),
    "chained_r": _compute("y[i, j] = x[i][j]"),
    "left_expr": _compute("y[i-1, j] = x[i, j]"),
    "left_num": _compute("y[0, j] = x[i, j]\nz[i: M] = 2"),
    "left_range": _compute("y[i: 0..M, j] = x[i, j]"),
    "left_call": _compute("y(i, j) = x[i, j]"),
    "left_tuple": _compute("(a, b) = f(x)"),
    "left_dtype": _compute("a[i: M]: f32 = x[i, 0]"),
    "left_eqeq": _compute("y[i, j] == x[i, j]"),
    "left_reserved": _compute("s8[i: M] = x[i, 0]\ny[i, j] = s8[i]"),
    "left_two": _compute("a[i: M], b = f(x)"),
    "left_two_bare": _compute("a, b[i: M] = f(x)"),
    "combiner_no_init": _compute("combiner f((a, b), (c, d)) = (a + c, b + d)"),
    "combiner_flat": _compute("combiner f(a, b, c, d) init (0, 0) = (a + c, b + d)"),
    "combiner_init": _compute("combiner f(a, b) init 0 - 1 = a + b"),
    "call_stmt": _compute("relu(x)"),
    "decl": _compute("f32 acc = 0\ny[i, j] = acc"),
    "decl2": _compute("float acc = 0\ny[i, j] = acc"),
    "coloneq": _compute("y[i, j] := 0"),
    # python
    "lambda": _compute("f = lambda a: a + 1\ny[i, j] = f(x[i, j])"),
    "ternary": _compute("y[i, j] = x[i, j] > 0 ? x[i, j] : 0"),
    "ternary_call": _compute("y[i, j] = max(x[i, j] > 0 ? x[i, j] : 0, 2)"),
    "andand": _compute("y[i, j] = 1 if i > 0 && j > 0 || !(i == j) else 0"),
    "if_then": _compute("y[i, j] = if i > 0 then 1 else 0"),
    "missing_else": _compute("y[i, j] = x[i, j] if i > 0\nz[i: M] = 1"),
    "attr": _compute("y[i, j] = np.exp(x[i, j])"),
    "shape": _compute("y[i, j] = x[i, j] / x.shape[0]"),
    "kw": _compute("y[i, j] = clip(x[i, j], lo=0, hi=6)"),
    "slice": _compute("y[i, j] = f(x[i, :])"),
    "slice2": _compute("y[i, j] = f(x[i: M])"),
    "eq_in_cond": _compute("y[i, j] = 1 if i = j else 0"),
    "eq_in_paren": _compute("y[i, j] = f(1 if i = j else 0)"),
    "where_call": _compute("y[i, j] = where(i > 0, 1, 0)"),
    "matmul_at": _compute("y = x @ w"),
    "string": _compute('y[i, j] = "abc"'),
    "unicode": _compute("y[i, j] = x[i, j] × 2 ≤ 3"),
    "suffix": _compute("y[i, j] = x[i, j] * 2.0f"),
    "underscore": _compute("y[i, j] = x[i, j] * 1_000"),
    "glued": _compute("y[i, j] = 2x[i, j]"),
    "juxta": _compute("y[i, j] = x[i, j] w[i, j]"),
    "comment": _compute("y[i, j] = 0 // set all to zero"),
    "comment_first": _compute("// set all to zero\ny[i, j] = 0"),
    "comment_block": _compute("/* zero */ y[i, j] = 0"),
    "unfinished": _compute("a[i: M, j: N] = x[i, j] +\ny[i, j] = a[i, j]"),
    "unfinished2": _compute("a[i: M, j: N] = \ny[i, j] = a[i, j]"),
    "unclosed_paren": _compute("a[i: M, j: N] = max(x[i, j], 0\ny[i, j] = a[i, j]"),
    "unclosed_brk": _compute("a[i: M, j: N] = max(x[i, j, 0)\ny[i, j] = a[i, j]"),
    "stray_paren": _compute("a[i: M, j: N] = max(x[i, j], 0))\ny[i, j] = a[i, j]"),
    "mismatch": _compute("a[i: M, j: N] = (x[i, j] + 1]\ny[i, j] = a[i, j]"),
    "block_noreturn": _compute("y[i, j] = { let a = x[i, j]; a * 2 }"),
    "block_noreturn2": _compute("y[i, j] = { let a = x[i, j] }"),
    "block_nolet": _compute("y[i, j] = { a = x[i, j]  return a }"),
    "let_dtype": _compute("let P: f32 = 3\ny[i, j] = P"),
    "let_two": _compute("y[i, j] = { let a, b = f(x[i, j])  return a }"),
    "reserved": _compute("let[i: M] = 0\nseq = 4\ny[i, j] = for + 1"),
    "typo_seq": _compute("sequ t: M { y[t, j] = 0 }"),
    "typo_table": _compute("tabel G: f32[2] = [1, 2]\ny[i, j] = G[0]"),
    "typo_els": _compute("y[i, j] = 1 if i > 0 esle 2"),
    "typo_red": _compute("y[i, j] = reduce acc"),
    "def_py": _compute("def f(a): return a + 1\ny[i, j] = f(x[i, j])"),
    "def_brace": _compute("def f(a) { return a + 1 }\ny[i, j] = f(x[i, j])"),
    "def_typed": _compute("def f(a: f32) = a + 1\ny[i, j] = f(x[i, j])"),
    "table_bare": _compute("table G = [1, 2]\ny[i, j] = G[0]"),
    "hole": _compute("y[i, j] = ?{1, 2}"),
    "templ": _compute("template f(a) -> o { o[i: M] = a[i] }\ny[i, j] = x[i, j]"),
    "templ2": _compute("template f(a) { o[i: M] = a[i] 3 }\ny[i, j] = x[i, j]"),
    "cast_alias": _compute("y[i, j] = float32(x[i, j]) + i32(2)"),
    "typed_alias": _compute("a: float32[i: M] = x[i, 0]\nb: int8 = 3"),
    # header
    "hdr_dtype": _kernel(
        "kernel k[N=4](x: float32[N], z: int8[N], q: foo[N]) -> (y: bf16[N])", "y[i] = x[i] 2"
    ),
    "hdr_arrow": "kernel k[N=4](x: f32[N]) (y: f32[N]) { compute { y[i] = x[i] } }",
    "hdr_noout": "kernel k[N=4](x: f32[N]) {\n compute { y[i] = x[i] z } }",
    "hdr_outbare": "kernel k[N=4](x: f32[N]) -> y: f32[N] {\n compute { y[i] = x[i] z } }",
    "hdr_const": "kernel k[N=4](const x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "hdr_nodtype": "kernel k[N=4](x[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "hdr_nodtype2": "kernel k[N=4](x, z: f32) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "hdr_sizes": "kernel k[N: 4, M](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "hdr_noname": "kernel (x: f32[4]) -> (y: f32[4]) { compute { y[i] = x[i] } }",
    "hdr_noname2": "kernel [N=4](x: f32[4]) -> (y: f32[4]) { compute { y[i] = x[i] } }",
    "hdr_shape_paren": "kernel k[N=4](x: f32(N)) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "top_let": "let N = 4\nkernel k(x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }",
    "prose": "Here is the kernel you asked for:\n\n```ekir\n"
    + _kernel("kernel k[N=4](x: f32[N]) -> (y: f32[N])")
    + "\n```\n",
    "prose_only": "I cannot do that. The kernel is too hard for me.",
    "fence": "```\nkernel k[N=4](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }\n```\n",
    "empty": "",
    "comment_only": "# nothing\n",
    "two_kernels": _compute("y[i, j] = 0") + _compute("y[i, j] = 0"),
    "extra_brace": _compute("y[i, j] = 0") + "}\n",
    "junk_after": _compute("y[i, j] = 0") + "Some explanation follows.\n",
    # sections
    "nocompute": "kernel k[N=4](x: f32[N]) -> (y: f32[N]) {\n"
    "  y[i] = x[i]\n  z[i: N] = x[i] +* 2\n}\n",
    "def_between": _kernel_with("def g(a) = a * 2"),
    "combiner_between": _kernel_with("combiner m(a, b) init 0 = { let c = a  return max(c, b) }"),
    "template_between": _kernel_with("template g(t) -> (o) { o[i: 4] = t[i] * 2 }"),
    "two_defs_between": _kernel_with("def g(a) = { let b = a  return b }  def h(a) = a * 2"),
    "nocompute2": "kernel k[N=4](x: f32[N]) -> (y: f32[N]) { }",
    "missing_close": _HEADER
    + "  compute {\n"
    + "    y[i, j] = 0\n  schedule for cpu {\n    loops y (i, j)\n  }\n}\n",
    "missing_close_seq": _HEADER + "  compute {\n" + "    seq t: M {\n      y[t, j] = 0\n  }\n}\n",
    "missing_close_seq2": _HEADER
    + "  compute {\n"
    + "    seq t: M {\n      y[t, j] = 0\n  }\n  schedule for cpu { loops y (i) }\n}\n",
    "missing_last": _HEADER + "  compute {\n" + "    y[i, j] = 0\n  }\n",
    "early_close": _HEADER + "  compute {\n" + "    a[i: M] = 0 }\n    y[i, j] = a[i]\n  }\n}\n",
    "nested_sched": _HEADER
    + "  compute {\n"
    + "    y[i, j] = 0\n    schedule for cpu {\n      loops y (i, j)\n    }\n  }\n}\n",
    "typo_section": _compute("y[i, j] = 0")[:-2] + "  shedule for cpu { loops y (i, j) }\n}\n",
    "target": _layer("loops y (i, j, k)", "schedule for avx"),
    "target_none": _layer("loops y (i, j, k)", "schedule"),
    "target_nofor": _layer("loops y (i, j, k)", "schedule cpu"),
    "target_empty": _layer("loops y (i, j, k)", "schedule for"),
    "dup": _layer("loops y (i, j, k)\n  }\n  schedule for cpu {\n  loops y (j, i, k)"),
    "compute_colon": _compute("y[i, j] = 0").replace("compute {", "compute:"),
    "compute_colon2": _compute("y[i, j] = 0").replace("compute {", "compute: {"),
    # schedule
    "s_paralel": _layer("loops y (paralel i by 8, j, k)"),
    "s_vectorise": _layer("loops y (parallel i by 8, j, k, vectorise j)"),
    "s_noparen": _layer("loops y parallel i by 8, j, k\nplace a in y.j0"),
    "s_brackets": _layer("loops y [i, j, k]"),
    "s_colon": _layer("loops y: (i, j, k)"),
    "s_step": _layer("loops y (i / 8, j, k)"),
    "s_step2": _layer("loops y (i: 8, j, k)"),
    "s_prefcall": _layer("loops y (parallel(i), j, k)"),
    "s_twopref": _layer("loops y (parallel unroll i, j, k)"),
    "s_at": _layer("place a at y.j0\nloops y (i, j"),
    "s_place": _layer("place a in y\nloops y (i, j, k) foo"),
    "s_split": _layer("split y.i by 8\nreorder y (i, j)\nparallel y.i0\nloops y (i, j, k)"),
    "s_lops": _layer("lops y (i, j, k)\nplaced a in y.j0"),
    "s_stage": _layer("a[i: M] = x[i, 0]"),
    "s_layout": _layer("layout w [k, j] -> [j, k]"),
    "m_eq": _layer("layout w [k, j] = [j // 32, k, j % 32]", "memory for cpu"),
    "m_noaxes": _layer("layout w -> [j // 32, k, j % 32]", "memory for cpu"),
    "m_pre": _layer(
        "layout w [k, j] -> [j // 32, k, j % 32] prepacked\nprepack w", "memory for cpu"
    ),
    "m_src": _layer("layout w [k, j // 32] -> [j // 32, k, j % 32]", "memory for cpu"),
    "m_cache": _layer("cache x at y.k0\ncache w in y\ncache x: int8 in y.k", "memory for cpu"),
    "m_fetch": _layer("prefetch x in y.k\nprefetch x at y.k ahead 4 8", "memory for cpu"),
    "s_cache": _layer("cache x in y.k0\ncache_read x\noption 256\noption unroll = 4"),
    "m_loops_same_line": _layer("cache w in y.j   loops w.cache (k, j)", "memory for cpu"),
    "s_cache_same_line": _layer("loops y (i, j, k)   cache w in y.j"),
    "m_loops": _layer("loops y (i, j, k)", "memory for cpu"),
    "c_loops": _compute("y[i, j] = 0\nloops y (i, j)\nlayout w [k, j] -> [j, k]"),
    # several
    "many": _compute(
        "a[i: M] = sum[k: K] x[i, k]\nb[i: M] += 2\nfor i in range(3) { c[i: M] = a b }\n"
        "d[i: M] = a[i] && b[i]\ny[i, j] = a[i][j]"
    ),
    "bigint": _compute("y[i, j] = 99999999999999999999999"),
    "bigfloat": _compute("y[i, j] = 1e999"),
    "nul": "kernel\0",
    "dots": _compute("y[i, j] = x[i, ...]"),
    "power": _compute("y[i, j] = x[i, j] ^ ^ 2"),
    "deep": _compute("y[i, j] = " + "(" * 150 + "1" + ")" * 150),
    "deep2": _compute("y[i, j] = " + "-" * 1500 + "1"),
    "deep3": _compute("y[i, j] = " + "a+" * 1500 + "1"),
    "if_py": _compute("a[i: M] = x[i, 0]\nif a > 3:\n  y[i, j] = 0\nelse:\n  y[i, j] = 1"),
    "if_brace": _compute("a[i: M] = x[i, 0]\nif a > 3 { y[i, j] = 0 }"),
    "let_tensor": _compute("let a[i: M] = x[i, 0]"),
    "red_in": _compute("y[i, j] = sum[k in 0..K](x[i, k])"),
    "red_eq": _compute("y[i, j] = sum[k = 0..K](x[i, k])"),
    "red_colon": _compute("y[i, j] = sum[k: 0:K](x[i, k])"),
    "red_if": _compute("y[i, j] = sum[k: K if k > i](x[i, k])"),
    "loop_word": _compute("t: M { y[t, j] = 0 }"),
    "hdr_colon": _compute("y[i, j] = 0").replace("(y: f32[M, N]) {", "(y: f32[M, N]):"),
    "sched_colon": _layer("loops y (i, j, k)").replace("cpu {", "cpu:"),
    "s_behind": _layer("loops y (i by 8 parallel, j, k)"),
    "dtype_twice": _compute("y[i, j] = 0").replace("x: f32", "x: tensor f32"),
    "each_colon": _compute("each c: N :\n  y[i, c] = 0\nz[i: M] = 0 1"),
}
