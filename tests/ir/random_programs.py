"""Random kernel texts around one question: is every index in range?

Most are unsafe or at least not provable; the way a read is guarded is drawn too, so that a good
part is accepted. Deterministic for a seed.
"""

from __future__ import annotations

import random

DATA = ("idx[i]", "b[i]", "s32(u[i] % 8)", "s32(u[i])", "s32(f[i])", "s32(q[i])")
HEADER = (
    "kernel k[M=4, N=6](x: f32[M, N], idx: s32[M], b: u8[M], u: u32[M], f: f32[M], q: s64[M])"
    " -> (y: f32[M, N]) {{ compute {{\n{body}\n}} }}\n"
)
LOOPS = (
    "kernel k[M=4, N=5](idx: s32[M], f: f32[M]) -> (y: f32[M, N]) {{ compute {{\n{body}\n}} }}\n"
)


class Draw:
    """One text's worth of choices."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    # ------------------------------------------------------------ expressions
    def integer(self, atoms: tuple[str, ...], depth: int) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.25:
            return self.one(*atoms) if r.random() < 0.75 else f"({r.randint(-4, 9)})"
        a, b = self.integer(atoms, depth - 1), self.integer(atoms, depth - 1)
        match r.randint(0, 13):
            case 0 | 1 | 2:
                return f"({a} {self.one('+', '-')} {b})"
            case 3:
                return f"({a} * {b})"
            case 4:
                return f"({a} {self.one('&', '|', '^')} {b})"
            case 5 | 6:
                return f"({a} {self.one('//', '%')} {r.randint(1, 5)})"
            case 7:
                return f"({a} {self.one('<<', '>>')} {self.one(str(r.randint(0, 4)), b)})"
            case 8:
                return f"{self.one('min', 'max')}({a}, {b})"
            case 9:
                return f"clamp({a}, {r.randint(-2, 0)}, {r.randint(0, 5)})"
            case 10:
                return self.one(f"abs({a})", f"(-{a})", f"s32(s64({a}) * 3)", f"s32(u32({a}))")
            case 11:
                return f"({a} {self.one('%', '//')} max({b}, 1))"
            case 12:
                return f"({a} if {self.condition(atoms, depth - 1)} else {b})"
        return f"{{ let v = {a}  return {self.one('v', f'v + {b}', f'{b} - v')} }}"

    def condition(self, atoms: tuple[str, ...], depth: int) -> str:
        r = self.random
        a, b = self.integer(atoms, depth), self.integer(atoms, depth)
        match r.randint(0, 5):
            case 0 | 1:
                return f"{a} {self.one('<', '<=', '>', '>=', '==', '!=')} {b}"
            case 2:
                return f"{r.randint(-1, 1)} <= {a} < {r.randint(1, 6)}"
            case 3:
                return f"not ({self.condition(atoms, depth)})"
        first, second = self.condition(atoms, depth), self.condition(atoms, depth)
        return f"({first} {self.one('and', 'or')} {second})"

    # ------------------------------------------------------------ reads
    def read(self, atoms: tuple[str, ...]) -> str:
        index = self.integer(atoms, self.random.randint(0, 3))
        text = f"x[{index}, {self.one('j', 'i', '0', '5 - j', '(j + 1) % 6')}]"
        cond = self.condition(atoms, 1)
        return self.one(
            text,
            f"pad({text}, 0)",
            f"edge({text})",
            f"({text} if 0 <= {index} < M else 0)",
            f"({text} if {index} >= 0 and {index} < 4 and {cond} else 0)",
            f"(0 if {index} < 0 or {index} >= M else {text})",
            f"({text} if {cond} else 0)",
            text.replace(f"x[{index}", f"x[clamp({index}, 0, 3)"),
            text.replace(f"x[{index}", f"x[({index}) % M"),
            f"{{ let v = {index}  return {text.replace(index, 'v', 1)} if 0 <= v <= 3 else 1 }}",
        )

    def program(self) -> str:
        r = self.random
        atoms = ("i", "j", *r.choice((DATA, (), DATA[:1], DATA[1:3])))
        body = self.read(atoms)
        match r.randint(0, 3):
            case 1:
                low, high = r.choice((("0", "j"), ("j", "6"), ("1", "5"), ("-1", "2")))
                where = self.one("", " where p != i", " where idx[i] == p")
                body += f" + sum[p: {low}..{high}{where}]({self.read((*atoms, 'p'))})"
            case 2:
                inner = self.read((*atoms, "p", "p2"))
                cond = self.condition(atoms, 1)
                body = f"(sum[p: 1..3](sum[p2: p..4]({inner})) if {cond} else {body})"
            case 3:
                body = f"x[clamp(g[i], 0, 3), j] + x[g[i] % 4, j] + {body}"
        stage = self.integer(("i", "idx[i]", "b[i]"), 2)
        return HEADER.format(body=f"g[i: M] = {stage}\ny[i, j] = {body}")

    def recurrence(self) -> str:
        """Nested loops with reads of histories at random iterations."""
        r = self.random
        kinds = [self.one("seq", "seq", "seq", "each") for _ in range(2)]
        back = [self.one("", " reversed") if k == "seq" else "" for k in kinds]
        lows = r.choice(((0, 0), (0, 0), (1, 0), (0, 2)))
        second = self.one("f[t]", f"f[t] + {self.history('h')}")
        first = self.one("f[t]", f"f[t] + {self.history('g')}", f"f[t] + {self.history('h')}")
        lines = [
            f"{kinds[0]} t: {lows[0]}..M{back[0]} {{ {kinds[1]} s: {lows[1]}..N{back[1]} {{",
            f"h[t, s] = {first}",
            f"g[t, s] = {second}",
            "} }",
            f"y[i, j] = {self.one('h[i, j]', 'pad(h[i, j], 0)', 'edge(g[i - 1, j])')}",
        ]
        return LOOPS.format(body="\n".join(lines))

    def history(self, name: str) -> str:
        atoms = ("t", "s", "idx[t]", "t - 1", "s - 1", "s + 1")
        near = (("t", "t", "t - 1", "t + 1", "t - 2"), ("s", "s - 1", "s + 1", "0", "4 - s"))
        index = [
            self.one(*some) if self.random.random() < 0.9 else self.integer(atoms, 1)
            for some in near
        ]
        text = f"{name}[{', '.join(index)}]"
        cond = self.one("t > 0", "s > 0", "t > 0 and s > 0", self.condition(atoms, 1))
        return self.one(f"pad({text}, 0.0)", f"pad({text}, 0.0)", f"({text} if {cond} else 0.0)")
