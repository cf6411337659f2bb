"""The C that bundles carry: its threads, its memory, and that it judges as the evaluator does."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.deploy.golden import Case, Golden, rules_of
from edgekernelbench.deploy.manifest import Parameter
from edgekernelbench.deploy.sources import Sources
from edgekernelbench.ir.core import Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.tolerance import Facts
from tests.deploy.support import DEVICE, C

_P = ctypes.c_void_p
RUNTIME = str(DEVICE / "ekb_runtime.c")


@pytest.mark.parametrize("sanitizer", ["", "thread", "address,undefined"])
def test_the_run_time(tmp_path: Path, sanitizer: str) -> None:
    program = tmp_path / "check"
    options = (f"-fsanitize={sanitizer}", "-g") if sanitizer else ()
    sources = (RUNTIME, str(Path(__file__).with_name("runtime_check.c")))
    built = subprocess.run(
        (*C, *options, *sources, "-pthread", "-o", str(program)), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if sanitizer and built.returncode:
        pytest.skip(f"no -fsanitize={sanitizer} here: {built.stderr[-200:]}")
    assert not built.returncode, built.stderr
    done = subprocess.run((str(program),), capture_output=True, text=True, timeout=240, check=False)
    if sanitizer == "thread" and "FATAL: ThreadSanitizer: unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


HALVES = """#include <stdint.h>
#include <string.h>
float __extendhfsf2(float boxed);
float __truncsfhf2(float value);

void extend(const uint16_t *halves, float *values, int count) {
  for (int k = 0; k < count; k++) {
    uint32_t bits = 0xFFFF0000 | halves[k];
    float boxed;
    memcpy(&boxed, &bits, 4);
    values[k] = __extendhfsf2(boxed);
  }
}

void truncate_(const float *values, uint32_t *halves, int count) {
  for (int k = 0; k < count; k++) {
    float boxed = __truncsfhf2(values[k]);
    memcpy(&halves[k], &boxed, 4);
  }
}
"""


def test_halves_for_risc_v(tmp_path: Path) -> None:
    """Every half, and floats around every half and every tie between two."""
    (tmp_path / "halves.c").write_text(HALVES)
    library = tmp_path / "halves.so"
    sources = (RUNTIME, str(tmp_path / "halves.c"))
    # Other libraries of this process have routines of these names, and a global name wins.
    own = "-Wl,-Bsymbolic"
    options = ("-DEKB_HALVES", "-shared", "-fPIC", own, "-pthread", "-o", str(library))
    subprocess.run((*C, *sources, *options), check=True)
    code = ctypes.CDLL(str(library))
    halves = np.arange(1 << 16, dtype=np.uint16)
    widened = np.empty(1 << 16, np.float32)
    code.extend(halves.ctypes.data_as(_P), widened.ctypes.data_as(_P), halves.size)
    expected = halves.view(np.float16).astype(np.float32)
    nan = np.isnan(expected)
    assert np.array_equal(widened[~nan].view(np.uint32), expected[~nan].view(np.uint32))
    assert np.isnan(widened[nan]).all()
    finite = np.unique(expected[np.isfinite(expected)])
    between = (finite[1:].astype(np.float64) + finite[:-1]) / 2
    ties = between.astype(np.float32)
    around = [np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf)]
    edges = np.array([65519.996, 65520, 1e9, np.inf, -np.inf, np.nan, 1e-30, -0.0], np.float32)
    values = np.concatenate([finite, ties, *around, edges, -edges])
    rounded = np.empty(values.size, np.uint32)
    code.truncate_(values.ctypes.data_as(_P), rounded.ctypes.data_as(_P), values.size)
    assert (rounded >> 16 == 0xFFFF).all()
    found = rounded.astype(np.uint16)
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float16)
    number = ~np.isnan(wanted)
    assert np.array_equal(found[number], wanted[number].view(np.uint16))
    assert np.isnan(found[~number].view(np.float16)).all()


# ---------------------------------------------------------------- the judgement
READER = """#include "selftest.h"
#include <stdio.h>

int st_call(void *const *inputs, void *const *outputs) {
  (void)inputs;
  FILE *file = fopen("output.bin", "rb");
  size_t read = fread(outputs[0], 1, %d, file);
  fclose(file);
  return read != %d;
}
"""
COUNT = 2000


def _judged_in_c(place: Path, golden: Golden, output: np.ndarray) -> tuple[bool, int]:
    dtype = next(d for d in DType if d.numpy == output.dtype)
    tensor = Tensor("Y", dtype, (COUNT,), "output")
    parameter = Parameter(
        name="Y", c_name="Y", c_type="void", dtype=dtype.value, shape=(COUNT,),
        bytes=output.nbytes, role="output",
    )  # fmt: skip
    sources = Sources("fake", (parameter,), (), ("Y",), "here")
    text = sources.golden(golden, rules_of(golden, (tensor,)))
    table = text.replace('#include "fake.h"\n', "").split("int st_call")[0]
    (place / "golden.c").write_text(table + READER % (output.nbytes, output.nbytes))
    (place / "golden" / "0").mkdir(parents=True)
    output.tofile(place / "output.bin")
    golden.cases[0].truth["Y"].tofile(place / "golden" / "0" / "out0-Y.bin")
    files = (str(DEVICE / "selftest.c"), str(place / "golden.c"), RUNTIME)
    subprocess.run((*C, *files, "-lm", "-pthread", "-o", str(place / "t")), check=True)
    done = subprocess.run(
        (str(place / "t"), "--threads", "1"), cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    [matched] = re.findall(r"(\d+) of 2000 match", done.stdout)
    return done.returncode == 0, int(matched)


def _cases() -> list[tuple[str, ToleranceClass, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    truth = rng.normal(size=COUNT) * 2.0 ** rng.integers(-6, 7, COUNT)
    sparse = np.where(rng.random(COUNT) < 0.98, 0.0, truth)
    f32 = truth.astype(np.float32)
    noisy = (truth * (1 + 1.1e-4 * rng.normal(size=COUNT))).astype(np.float32)
    few = f32.copy()
    few[:2] *= 1.002
    far = f32.copy()
    far[7] += 5
    strange = truth.copy()
    strange[[3, 4, 5]] = np.nan, np.inf, -np.inf
    lost = sparse.astype(np.float32)
    lost[np.flatnonzero(sparse)[0]] *= 1.0005
    half = truth.astype(np.float16)
    odd = rng.integers(-128, 128, COUNT).astype(np.int8)
    step = odd.copy()
    step[0] += 1 if odd[0] < 127 else -1
    steps, leap = odd.copy(), odd.copy()
    steps[:40] = np.clip(odd[:40].astype(int) ^ 1, -128, 127)
    leap[5] ^= 2
    big = rng.integers(-(2**62), 2**62, COUNT)
    near = big.copy()
    near[9] += 1
    turned = np.roll(f32, 1)
    return [
        ("rounded", "f32_reduction", f32, truth),
        ("noisy", "f32_reduction", noisy, truth),
        ("few", "f32_reduction", few, truth),
        ("far", "f32_reduction", far, truth),
        ("graph", "f32_graph", f32, truth),
        ("turned", "f32_graph", turned, truth),
        ("strange", "f32_elementwise", strange.astype(np.float32), strange),
        ("stranger", "f32_elementwise", f32, strange),
        ("lost", "f32_reduction", lost, sparse),
        ("zeros", "f32_graph", np.zeros(COUNT, np.float32), np.zeros(COUNT)),
        ("half", "f16_elementwise", half, truth),
        ("half-nan", "f16_elementwise", strange.astype(np.float16), strange),
        ("moved", "exact_move", f32, f32.astype(np.float64)),
        ("moved-not", "exact_move", f32, truth),
        ("step", "int8_requant", step, odd),
        ("steps", "int8_requant", steps, odd),
        ("leap", "int8_requant", leap, odd),
        ("exact", "int_exact", step, odd),
        ("big", "int_exact", near, big),
        ("same", "int_exact", big, big),
        ("bool", "int_exact", odd > 0, odd > 3),
        ("double", "f32_graph", truth.copy(), truth),
    ]


@pytest.mark.parametrize(("name", "tolerance", "output", "truth"), _cases())
def test_it_judges_as_the_evaluator_does(
    tmp_path: Path, name: str, tolerance: ToleranceClass, output: np.ndarray, truth: np.ndarray
) -> None:
    golden = Golden({}, (Case({}, {"Y": truth}),), tolerance, Facts(16, 0.002), "", "")
    judged = golden.judge(0, {"Y": output})
    passed, matched = _judged_in_c(tmp_path, golden, output)
    assert passed == judged.passed, judged.outputs[0].reason
    assert matched == round(judged.matched_ratio * COUNT)


def test_the_cases_fall_on_both_sides() -> None:
    verdicts = {
        Golden({}, (Case({}, {"Y": truth}),), tolerance, Facts(16, 0.002), "", "")
        .judge(0, {"Y": output})
        .passed
        for _, tolerance, output, truth in _cases()
    }
    assert verdicts == {True, False}
