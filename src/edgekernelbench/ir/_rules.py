"""The rules of the text itself, codes E100 to E199: what a file must look like to be read at all.

E10x the text as a whole, E11x characters and literals, E12x brackets and sections, E13x the
header, E14x statements, E15x expressions, E16x schedule and memory lines, E190 everything else.
"""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

# ---- the text as a whole
NOT_TEXT = Rule("E100", "a kernel is given as text")
TOO_LONG = Rule("E101", "a kernel text has at most 256 KiB and 60,000 words and signs")
TOO_DEEP = Rule("E102", "brackets nest at most 100 deep, expressions at most 200 operators deep")
ONE_KERNEL = Rule("E103", "a file holds exactly one kernel, nothing after it")

# ---- characters and literals
CHARACTER = Rule("E110", "only printable ASCII outside comments; no control characters anywhere")
NUMBER = Rule(
    "E111", "integers have at most 64 bits, floats fit into f64, and neither has a suffix"
)
NO_STRINGS = Rule("E112", "the language has no strings")

# ---- brackets and sections
BRACKETS = Rule("E120", "every bracket is closed by its own kind, in order")
SECTION = Rule(
    "E121",
    "sections are `compute`, `schedule for TARGET` and `memory for TARGET`, each at most once",
)
TARGET = Rule("E122", "a section's target is one of cpu, gpu, llvm, cuda, opencl")
NO_COMPUTE = Rule("E123", "a kernel has one compute section")
DEFINITION = Rule(
    "E124", "`def`, `combiner`, `template` and `table` stand before `kernel` or inside `compute`"
)

# ---- the header
HEADER = Rule("E130", "a header reads `kernel name[SIZE=expr, ...](inputs) -> (outputs) { ... }`")
DTYPE = Rule("E131", "dtypes are f16 f32 f64 s8 u8 s16 u16 s32 u32 s64 bool")
RESERVED = Rule("E132", "reserved words cannot be names")

# ---- statements of the compute layer
STATEMENT = Rule(
    "E140",
    "the compute layer consists of stages, `seq`, `each`, `let`, `table`, `def`, `template`, "
    "`combiner`",
)
WRITE_ONCE = Rule("E141", "a stage defines its whole tensor at once with `=`; nothing is updated")
LOOP = Rule(
    "E142", "loops are axes, `seq t: L { ... }` and `each c: C { ... }`; `for` does not exist"
)
LEFT_SIDE = Rule("E143", "a left side is `name[i: M, j: N]`, one pair of brackets with axis names")

# ---- expressions
EXPRESSION = Rule("E150", "an expression is built from operands and operators as in Python")
REDUCTION = Rule("E151", "a reduction reads `op[k: K](body)`, with its body in parentheses")
INDEXING = Rule("E152", "a tensor is read as `x[i, j]`, with all indices in one pair of brackets")
OPERATOR = Rule("E153", "operators are those of Python: and, or, not, `a if c else b`")
BLOCK = Rule("E154", "a block reads `{ let a = ...  return expr }`")
NO_PYTHON = Rule("E155", "there are no attributes, lambdas, keyword arguments or slices")

# ---- schedule and memory
SCHEDULE = Rule("E160", "a schedule consists of `loops`, `place`, `inline` and `option` lines")
MEMORY = Rule("E161", "a memory layer consists of `layout`, `cache` and `prefetch` lines")
HOLE = Rule("E162", "`?{a, b}` stands only for integers of schedule and memory layers")

SYNTAX = Rule("E190", "the text follows the grammar of the kernel language")
