"""From a graph and schedules of its functions to a library and a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.lift.model import last_line
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.tuning.graph import Graph, functions, key, standalone
from edgekernelbench.compilers.tvm.tuning.measure import export
from edgekernelbench.compilers.tvm.tuning.plan import BAKED, LIBRARY, PLAN, Planner
from edgekernelbench.compilers.tvm.tuning.search import replay

Traces = Mapping[str, Any]
"""Schedule traces by key of the function; a function without one stays as it is."""


def timed(graph: Graph) -> dict[str, Any]:
    """The loop functions that the timed call runs, by name; the others only prepare constants.

    Raises:
        Refused: the graph does something else than call loop functions.
    """
    plan = Planner(graph.module).run(graph.inputs, tuple(graph.params), graph.outputs)
    called = {step.function for step in plan.steps}
    return {n: f for n, f in functions(graph.module).items() if n in called}


def build(graph: Graph, traces: Traces, target: Any, folder: Path) -> None:
    """Writes library, plan and baked constants of a scheduled graph into ``folder``.

    Raises:
        Refused: a trace does not fit its function, the graph does something else than call loop
            functions, or the code generator fails.
    """
    import tvm

    module = _packing_apart(scheduled(graph, traces))
    planner = Planner(module)
    plan = planner.run(graph.inputs, tuple(graph.params), graph.outputs)
    called = {step.function for step in (*plan.prepack, *plan.steps)}
    found = functions(module)
    parts = {n: found[n].with_attr("global_symbol", n) for n in sorted(called)}
    try:
        export(tvm.IRModule(parts), target, folder / LIBRARY)
    except OSError:  # no linker, no room: not the graph's fault
        raise
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"not built: {last_line(error)}") from error
    (folder / PLAN).write_text(plan.model_dump_json(indent=1) + "\n")
    np.savez(folder / BAKED, **planner.baked)


def scheduled(graph: Graph, traces: Traces) -> Any:
    """The graph's module with every function that has a trace replaced.

    Raises:
        Refused: a trace does not fit.
    """
    module = graph.module.clone()
    for name, function in functions(graph.module).items():
        trace = traces.get(key(function))
        if trace is None:
            continue
        try:
            made = replay(trace, standalone(function)).mod["main"]
        except Exception as error:
            raise Refused(f"the schedule of {name} does not apply: {last_line(error)}") from error
        made = made.without_attr("global_symbol").with_attr("tirx.is_scheduled", True)
        module.update_func(module.get_global_var(name), made)
    return module


def _packing_apart(module: Any) -> Any:
    """Rearrangements of weights that schedules ask for become functions of their own, which the
    plan calls before the timed steps."""
    import tvm
    from tvm import relax

    passes = [relax.transform.SplitLayoutRewritePreproc(), relax.transform.DeadCodeElimination()]
    try:
        return tvm.ir.transform.Sequential(passes)(module)
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"weights not packed: {last_line(error)}") from error
