"""The rules of the schedule layer (E4xx) and of the memory layer (E5xx)."""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

# ---- schedule: names and numbers
UNKNOWN_STAGE = Rule("E401", "a schedule names stages of the compute layer")
REPEATED = Rule(
    "E402", "a stage has at most one `loops` line, one `place` or `inline`; its loops one `wave`"
)
NUMBER = Rule("E403", "steps are whole numbers from 1: literals, sizes, holes and their arithmetic")
CONSTANT_STAGE = Rule("E404", "a stage that reads only constants is computed before the call")

# ---- schedule: loops
AXES = Rule("E410", "`loops` lists every axis of the stage, reduction axes too, and no other")
LAST_PIECE = Rule("E411", "the last piece of an axis has no `by`; all pieces before it have one")
STEP = Rule("E412", "a step is at most the range that it cuts")
LABEL = Rule("E413", "every loop of a nest has a name of its own")
PARALLEL = Rule(
    "E414",
    "`parallel` marks the outermost loops of a nest that is not placed, one of them at most a "
    "reduction axis, in at most 256 chunks",
)
VECTORIZE = Rule("E415", "`vectorize` marks the innermost loop, a last piece, once per nest")
UNROLL = Rule("E416", "an unrolled loop has a constant, bounded number of iterations")
SIMD = Rule("E417", "around a vectorised reduction axis, spatial loops inside are unrolled")
TOO_DEEP = Rule("E418", "a nest has at most 32 loops")
COPIES = Rule(
    "E419", "remainders of steps that do not divide copy the code a bounded number of times"
)

# ---- schedule: place and inline
NO_TARGET = Rule("E420", "`place A in S.loop` names a loop of another stage of the same loop body")
CIRCULAR = Rule("E421", "placements form no circle, and every stage runs after what it reads")
UNRELATED = Rule("E422", "a placed stage feeds the stage it is placed in, or reads it")
READERS = Rule("E423", "everything that reads a placed producer is inside the loop")
INSIDE_REDUCTION = Rule("E424", "what reads a reduction is placed outside its reduction loops")
NOT_TILEWISE = Rule("E425", "a placed consumer reads its target tile by tile")
NOT_COVERED = Rule("E426", "a placed stage that is kept whole is computed exactly once everywhere")
INLINE = Rule("E427", "`inline` takes a stage without reduction that is read in its own iteration")
TOO_LARGE = Rule("E428", "expressions stay below a fixed size after `inline`")
NORMALISE = Rule("E429", "reductions can be given stages of their own within fixed limits")
NESTED = Rule("E430", "stages are placed at most 16 deep in one another")
OUTSIDE_TILE = Rule("E431", "a placed consumer is computed only where its readers want it")

# ---- schedule: waves
WAVE_LOOPS = Rule(
    "E470", "`wave S (i, j)` names two `seq` loops around S, the second alone in the first's body"
)
WAVE_FORM = Rule(
    "E471",
    "a wave is `(i, j)`, or in tiles `(i by A, j by B, i, j)`; `parallel` may stand first, "
    "`vectorize` last, not both without tiles",
)
WAVE_ORDER = Rule(
    "E472",
    "an iteration of a wave reads earlier diagonals, of tiles only what is not below or right",
)
WAVE_LANES = Rule(
    "E473", "lanes of a wave run stages without axes, reductions and loops of their own"
)
WAVE_LAYOUT = Rule(
    "E474", "a stage that is not indexed by the outer loop of a wave has no layout: rows overlap"
)

# ---- schedule: scatters
SCATTER = Rule(
    "E460",
    "`scatter v` stands once in a nest that is not placed, for an axis that `where` compares with "
    "data (`data == v`), inside the loops that decide where an element lands",
)

ATOMIC = Rule(
    "E461",
    "on a GPU, what lands by `scatter` is an integer sum, minimum or maximum, which is the same in "
    "every order; loops of blocks and threads stand in front of `scatter`",
)

# ---- dot products
DOT = Rule(
    "E432",
    "`dot4 k` is the end of a nest, behind a vectorised spatial axis, and takes four values of a "
    "reduction axis",
)
DOT_PRODUCT = Rule(
    "E433", "`dot4` computes an s32 sum of products of two s8 or u8 tensors, without a condition"
)
DOT_LAYOUT = Rule(
    "E434",
    "`dot4` reads four values of its axis side by side, and those of the vectorised axis behind "
    "one another",
)

# ---- options
OPTION = Rule("E440", "`option` names an option of the backend once, with one of its values")
OPTION_SECTION = Rule("E441", "options stand in the section of one backend, not of a class of them")

# ---- GPUs
ON_GPU = Rule("E450", "a nest of a GPU says what blocks, threads and loops of a thread do")
THREAD_TILE = Rule("E451", "what a thread of a GPU keeps of a stage takes at most 4096 bytes")

GPU_LOOPS = Rule(
    "E452",
    "`block` loops are the outermost ones of a nest that is not placed, `thread` loops are shared "
    "by the threads of a block; `parallel` goes with neither",
)
ON_CPU = Rule("E453", "`block`, `thread`, `warp` and `mma` are for GPUs")
TEAM = Rule(
    "E454", "threads that keep results over loops of the block are all there at the same time"
)
AHEAD_COPY = Rule(
    "E455", "on a GPU, `prefetch T in S.k0 ahead 1` fetches the next tile of `cache T in S.k0`"
)
MMA = Rule(
    "E456",
    "`mma i, mma j, mma k` is the end of a nest: two spatial axes, then a reduction axis; `warp` "
    "loops are the only other ones that threads share",
)
MMA_PRODUCT = Rule(
    "E457",
    "`mma` computes an f32 sum of products of two f16 tensors, or an s32 one of bytes, without a "
    "condition; one factor moves along the first axis, the other one along the second",
)
MMA_TILE = Rule(
    "E458", "`mma` takes multiples of 16 x 16 x 16 values, of bytes 16 x 16 x 32, and no remainders"
)
MMA_ARCH = Rule("E459", "tensor cores multiply as `mma` wants from sm_75 on")
THREADS = Rule("E630", "a block has at most as many threads as the target runs together")
SHARED_BYTES = Rule("E631", "what a block shares fits the shared memory of the target")

# ---- memory
UNKNOWN_TENSOR = Rule("E510", "`layout` names an input or a stage")
REPEATED_LAYOUT = Rule("E511", "a tensor has one layout")
OUTPUT_LAYOUT = Rule("E512", "outputs have the layout of the header")
LAYOUT_AXES = Rule("E513", "a layout names each dimension of the tensor once")
LAYOUT_MAP = Rule("E514", "a layout index is made of axes and numbers with `+ * // %`")
NOT_INJECTIVE = Rule("E515", "a layout gives every element a place of its own")
LAYOUT_SIZE = Rule("E516", "a layout takes at most four times the tensor's size")
UNREAD = Rule("E520", "`cache T in S.loop` and `prefetch T in S.loop` name a tensor that S reads")
REPEATED_CACHE = Rule("E521", "a stage reads a tensor through one cache, and prefetches it once")
CACHE_DTYPE = Rule("E522", "a cache has a dtype that holds all values of its tensor")
CACHE_SIZE = Rule(
    "E523",
    "a cache of more than 1024 elements copies at most four times as many as are read from it",
)
OWN_HISTORY = Rule("E526", "a stage does not cache itself")
PREFETCH_LOOP = Rule(
    "E524", "`prefetch T in S.loop` names a serial loop whose later reads are known when it runs"
)
PREFETCH_SIZE = Rule("E525", "one iteration fetches at most 64 cache lines ahead")
