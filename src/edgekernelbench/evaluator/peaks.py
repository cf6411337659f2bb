"""Measures the peaks of a target with kernels written in the IR, through the evaluator itself.

Operations: register-tiled matrix products of each dtype. Bandwidth: a triad and a sum at
working sets from the first cache to memory. Each counts with its best sample, and the best of all
measurements on the same processor, so that other work on the machine does not lower a roof that
results are held against.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.environment import observe
from edgekernelbench.evaluator.peak_gpu import TypedProduct, cpu_products, gpu_products
from edgekernelbench.evaluator.task import Arrays
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.tolerance import Facts, compare
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Bandwidth, Peaks, load_peaks, store_peaks

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator

METHOD = (
    "best sample of kernels in the IR: register-tiled matrix products of each dtype; "
    "triad and sum, bytes read and written once each"
)

_SIDE = 256
_MEMORY_BYTES = 64 << 20


class _PeakTask:
    """What the measuring tasks have in common; an `EvalTask`."""

    dtype = "f32"
    tolerance = "f32_reduction"
    terms = 1
    sizes: Mapping[str, int | float]
    input_specs: tuple[TensorSpec, ...]
    output_specs: tuple[TensorSpec, ...]

    @property
    def id(self) -> str:
        return f"peak {type(self).__name__}"

    @property
    def bytes_touched(self) -> int:
        return sum(spec.bytes for spec in (*self.input_specs, *self.output_specs))

    def header(self) -> str:
        raise NotImplementedError

    def canonical(self) -> str:
        raise FileNotFoundError

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        rng = np.random.default_rng(seed)
        return {s.name: rng.random(s.shape, np.float32) - 0.5 for s in self.input_specs}

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, "f32_reduction", Facts(accumulation=self.terms))


def _f32(name: str, *shape: int) -> TensorSpec:
    return TensorSpec(name=name, dtype=DType.F32, shape=shape)


class Product(_PeakTask):
    """``C = A B`` on square matrices that fit the second-level cache."""

    flops = 2 * _SIDE**3
    terms = _SIDE
    sizes: Mapping[str, int | float] = {"N": _SIDE}
    input_specs = (_f32("A", _SIDE, _SIDE), _f32("B", _SIDE, _SIDE))
    output_specs = (_f32("C", _SIDE, _SIDE),)

    def header(self) -> str:
        return f"kernel product[N={_SIDE}](A: f32[N, N], B: f32[N, N]) -> (C: f32[N, N])"

    def kernel(self, rows: int, columns: int) -> str:
        return f"""{self.header()} {{
  compute {{
    P[k: N, j: N] = B[k, j]
    acc[i: N, j: N] = sum[k: N](A[i, k] * P[k, j])
    C[i, j] = acc[i, j]
  }}
  schedule for cpu {{
    loops acc (parallel i by {rows}, j by {columns}, k by 4, unroll k, unroll i, vectorize j)
    place C in acc.j0
    loops C (i, vectorize j)
  }}
  memory for cpu {{ layout P [k, j] -> [j // {columns}, k, j % {columns}] }}
}}"""

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}


class ByteProduct(_PeakTask):
    """``C = A B`` of u8 by s8, with the dot products that the target has."""

    dtype = "s8"
    tolerance = "int_exact"
    flops = 2 * _SIDE**3
    terms = _SIDE
    sizes: Mapping[str, int | float] = {"N": _SIDE}
    input_specs = (
        TensorSpec(name="A", dtype=DType.U8, shape=(_SIDE, _SIDE)),
        TensorSpec(name="B", dtype=DType.S8, shape=(_SIDE, _SIDE)),
    )
    output_specs = (TensorSpec(name="C", dtype=DType.S32, shape=(_SIDE, _SIDE)),)

    def header(self) -> str:
        return f"kernel product[N={_SIDE}](A: u8[N, N], B: s8[N, N]) -> (C: s32[N, N])"

    def kernel(self, rows: int, columns: int) -> str:
        return f"""{self.header()} {{
  compute {{ C[i, j] = sum[k: N](A[i, k] * B[k, j]) }}
  schedule for cpu {{
    loops C (parallel i by {rows}, j by {columns}, k by 4, unroll i, vectorize j, dot4 k)
  }}
  memory for cpu {{ layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4] }}
}}"""

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        rng = np.random.default_rng(seed)
        return {
            spec.name: rng.integers(*spec.dtype.int_range, spec.shape, spec.dtype.numpy, True)
            for spec in self.input_specs
        }

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return {"C": inputs["A"].astype(np.int64) @ inputs["B"].astype(np.int64)}

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, "int_exact", Facts(accumulation=self.terms))


class Triad(_PeakTask):
    """``y = 2 x + z``: two streams read, one written."""

    def __init__(self, working_set: int) -> None:
        n = max(4096, working_set // 12 // 4096 * 4096)
        self.n = n
        self.flops = 2 * n
        self.sizes = {"N": n}
        self.input_specs = (_f32("x", n), _f32("z", n))
        self.output_specs = (_f32("y", n),)

    def header(self) -> str:
        return f"kernel triad[N={self.n}](x: f32[N], z: f32[N]) -> (y: f32[N])"

    def kernel(self) -> str:
        return f"{self.header()} {{ compute {{ y[i] = x[i] * 2 + z[i] }} }}"

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return {"y": inputs["x"].astype(np.float64) * 2 + inputs["z"]}


class Sum(_PeakTask):
    """Sums of rows: one stream read, next to nothing written."""

    _ROW = 2048

    def __init__(self, working_set: int) -> None:
        rows = max(2, working_set // 4 // self._ROW)
        self.rows = rows
        self.flops = rows * self._ROW
        self.terms = self._ROW
        self.sizes = {"R": rows}
        self.input_specs = (_f32("x", rows, self._ROW),)
        self.output_specs = (_f32("s", rows),)

    def header(self) -> str:
        return f"kernel rows[R={self.rows}](x: f32[R, {self._ROW}]) -> (s: f32[R])"

    def kernel(self) -> str:
        return f"""{self.header()} {{
  compute {{ s[r] = sum[k: {self._ROW}](x[r, k]) }}
  schedule for cpu {{ loops s (parallel r, vectorize k) }}
}}"""

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return {"s": inputs["x"].astype(np.float64).sum(axis=1)}


_Measured = Product | ByteProduct | TypedProduct | Triad | Sum


@dataclass(frozen=True, slots=True)
class _Rate:
    name: str
    task: _Measured
    text: str


def _rates(target: Target) -> Iterator[_Rate]:
    if target.gpu is None:
        yield from _cpu_products(target)
    else:
        yield from (_Rate(*each) for each in gpu_products(target))
    last = target.cache_bytes[-1] if target.cache_bytes else 0
    threads = 1 if target.gpu is not None else target.threads
    in_caches = [size * threads * 3 // 4 for size in target.cache_bytes[:-1]]
    sizes: list[tuple[int, tuple[type[Triad | Sum], ...]]] = [
        *((size, (Triad, Sum)) for size in (*in_caches, last // 2)),
        (max(_MEMORY_BYTES, 2 * last), (Triad,)),
    ]
    for size, kinds in sizes:
        for task in (kind(size) for kind in kinds):
            name = f"{type(task).__name__.lower()} {task.bytes_touched >> 10} KiB"
            yield _Rate(name, task, task.kernel())


def _cpu_products(target: Target) -> Iterator[_Rate]:
    lanes = target.vector_bits // 32
    product = Product()
    for rows, columns in ((8, 2 * lanes), (4, 2 * lanes), (4, 4 * lanes)):
        yield _Rate(f"product {rows}x{columns}", product, product.kernel(rows, columns))
    bytes_ = ByteProduct()
    for rows, columns in ((12, 2 * lanes), (6, 2 * lanes), (6, 4 * lanes), (4, 4 * lanes)):
        yield _Rate(f"bytes {rows}x{columns}", bytes_, bytes_.kernel(rows, columns))
    yield from (_Rate(*each) for each in cpu_products(target))


def _silent(_name: str, _done: int, _all: int) -> None:
    pass


def measure_peaks(
    target: Target,
    evaluator: Evaluator | None = None,
    progress: Callable[[str, int, int], None] = _silent,
) -> Peaks:
    """Measures and stores the peaks of a target: about a minute, most of it compiling.

    Args:
        target: the device.
        evaluator: one for the target that is there already.
        progress: told before each measurement what it is, how many are done and of how many.

    Raises:
        UsageError: the target cannot be run here, or none of the kernels for a roof gave a time.
    """
    if evaluator is None:
        from edgekernelbench.evaluator.evaluator import Evaluator as Fresh

        with Fresh(target) as fresh:
            return measure_peaks(fresh.target, fresh, progress)
    seen, failures, spread = _measure(target, evaluator, progress)
    ops = _operations(seen)
    streams = [(n, r, task) for n, (r, task) in seen.items() if isinstance(task, Triad | Sum)]
    if "f32" not in ops or not any(
        task.bytes_touched >= _MEMORY_BYTES // 2 for *_, task in streams
    ):
        raise UsageError(
            f"the peaks of {target.name} cannot be measured: {'; '.join(failures)}",
            "these kernels are known to be good: the device or the compiler does not work",
        )
    bandwidths = [
        Bandwidth(working_set=task.bytes_touched, bytes_per_s=rate, kernel=name)
        for name, rate, task in streams
    ]
    peaks = Peaks(
        target=target.name,
        cpu=observe(target.threads).cpu if target.device is None else target.description,
        threads=target.threads,
        flops_f32=ops["f32"],
        ops_bytes=ops.get("s8"),
        ops={dtype: rate for dtype, rate in ops.items() if dtype not in ("f32", "s8")},
        spread=spread,
        bandwidths=tuple(sorted(bandwidths, key=lambda b: b.working_set)),
        kernels={name: rate for name, (rate, _) in seen.items()},
        failures=tuple(failures),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        method=METHOD,
    )
    earlier = load_peaks(target)
    if earlier is not None:
        peaks = peaks.raised_by(earlier)
    store_peaks(target, peaks)
    return peaks


def _operations(seen: Mapping[str, tuple[float, _Measured]]) -> dict[str, float]:
    """The best rate of products by dtype."""
    best: dict[str, float] = {}
    for rate, task in seen.values():
        if isinstance(task, Product | ByteProduct | TypedProduct):
            best[task.dtype] = max(rate, best.get(task.dtype, 0.0))
    return best


def _measure(
    target: Target, evaluator: Evaluator, progress: Callable[[str, int, int], None]
) -> tuple[dict[str, tuple[float, _Measured]], list[str], dict[str, float]]:
    """Operations or bytes a second by kernel, what went wrong with the others, and spreads."""
    from edgekernelbench.evaluator.session import TaskSession

    seen: dict[str, tuple[float, _Measured]] = {}
    failures: list[str] = []
    spread: dict[str, float] = {}
    rates = tuple(_rates(target))
    for number, rate in enumerate(rates):
        progress(rate.name, number, len(rates))
        with TaskSession(evaluator, rate.task, baselines=()) as session:
            result = session.evaluate(rate.text)
        if result.performance is None:
            failures.append(f"{rate.name}: {result.status.value} {result.message}")
            continue
        seconds = min(result.performance.samples_us) * 1e-6
        streams = isinstance(rate.task, Triad | Sum)
        work = rate.task.bytes_touched if streams else rate.task.flops
        seen[rate.name] = (work / seconds, rate.task)
        times = result.performance
        spread[rate.name] = round((times.high_us - times.low_us) / 2 / times.median_us, 4)
    return seen, failures, spread


__all__ = ["load_peaks", "measure_peaks"]
