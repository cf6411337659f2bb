"""Everything that decides how an evaluation is carried out, in one frozen object."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class EvalSettings(BaseModel):
    """Limits, measuring effort and baselines. Times in seconds of wall time unless named so.

    Attributes:
        compile_s: parsing, checking and compiling of a candidate.
        baseline_compile_s: building one baseline; happens once per task, then it is cached.
        run_s: one call of a candidate, and of a baseline.
        total_run_s: everything that a candidate's process does in one evaluation.
        compile_memory_bytes: address space of the compile child beyond what it starts with.
        measure_s: time cap of the interleaved measurement, all contestants together. Kernels so
            slow that `min_rounds` take longer are measured for `min_rounds`.
        min_rounds: rounds for the candidate and each scored baseline; six is the least number
            that gives a 95 % interval of a median.
        replicas: processes of each contestant that take turns, where calls are short and arrays
            small; see `replicas`.
        interval: wanted half width of the 95 % interval of the candidate's median, relative.
        sample_us: a sample holds as many calls as take at least this long.
        cache_state: ``warm``: calls follow each other on the same buffers, whose contents change
            from sample to sample; ``cold``: each sample is one call into emptied caches.
        input_sets: input sets a pool holds, all with the same constants.
        pool_evaluations: evaluations after which constants and inputs are drawn anew.
        verify_samples: samples of a candidate whose outputs are compared, first and last included;
            a baseline's first and last are.
        baselines: names, of `baselines.registry`.
        threads: cores for candidate and baselines alike; None takes the target's.
        roofline: hold results against the measured peaks of the host, which are measured first
            where that has not been done (about a minute, once a machine).
        roofline_slack: how far above the measured roofline a result may be, as a factor.
        order_seed: decides the order of contestants and which samples are verified, if given;
            None (the rule outside of tests) takes the system's randomness.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    compile_s: float = Field(default=60.0, gt=0)
    baseline_compile_s: float = Field(default=300.0, gt=0)
    run_s: float = Field(default=20.0, gt=0)
    total_run_s: float = Field(default=180.0, gt=0)
    compile_memory_bytes: int = Field(default=6 << 30, gt=0)
    measure_s: float = Field(default=0.5, gt=0)
    min_rounds: int = Field(default=6, ge=6)
    replicas: int = Field(default=4, ge=1, le=8)
    interval: float = Field(default=0.02, gt=0)
    sample_us: float = Field(default=200.0, gt=0)
    cache_state: Literal["warm", "cold"] = "warm"
    input_sets: int = Field(default=3, ge=3, le=16)
    pool_evaluations: int = Field(default=8, ge=1)
    verify_samples: int = Field(default=4, ge=2)
    baselines: tuple[str, ...] = ("tvm", "tvm-raw", "ort", "tvm-tuned", "torch")
    threads: int | None = Field(default=None, ge=1)
    roofline: bool = True
    roofline_slack: float = Field(default=1.1, ge=1)
    order_seed: int | None = None
