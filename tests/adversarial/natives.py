"""The tricks of `tricks` and `builds`: what each hopes for, and how it must end."""

from __future__ import annotations

from tests.adversarial.exploits import Exploit

DENIED = "Operation not permitted"
NO_FILE = "Permission denied"


def _trick(tries: str, name: str, status: str, says: str = "") -> Exploit:
    return Exploit(tries, name, status, says)


_CALLS = {
    "fork": "a helper that works while others are timed",
    "exec": "another program in its place",
    "udp": "a message to somebody",
    "netlink": "the host's network settings",
    "signal_parent": "the server that started it",
    "signal_all": "everybody",
    "handle_of_parent": "a handle on the parent, for signals",
    "ptrace": "the parent's registers and memory",
    "copy_memory": "the truth, out of the parent's memory",
    "limit_parent": "a limit that ends the parent",
    "pin_neighbour": "a neighbour that is bound to a busy core",
    "idle_neighbour": "a neighbour that runs only when nobody else does",
    "nice_neighbour": "a neighbour of low priority",
    "shared_memory": "memory that outlives the process, for the next attempt",
    "user_namespace": "root's rights in a namespace",
    "write_inputs": "inputs for which the truth is known",
    "local_daemon": "a daemon of the host that does what it may not",
}
_FILES = {
    "read_memory": "the truth, in the parent's memory",
    "environment": "keys in the parent's environment",
    "records": "the run's records",
    "home": "the user's home",
    "cache": "cached baselines and truths",
    "others": "other tasks' folders",
    "package": "a tolerance, by changing the package",
    "own_build": "its own library, which a second process loads",
    "note": "a note to a later process, in its folder",
    "note_in_tmp": "a note to a later process, in /tmp",
    "note_in_memory": "a note to a later process, in shared memory",
}
SYSTEM = {
    **{name: _trick(tries, name, "crashed", DENIED) for name, tries in _CALLS.items()},
    **{name: _trick(tries, name, "crashed", NO_FILE) for name, tries in _FILES.items()},
    "tcp": _trick("a server that knows the answer", "tcp", "crashed", DENIED),
    "raise_limit": _trick("more memory than allowed", "raise_limit", "crashed", "maximum limit"),
    "flood_log": _trick("the disk, by what it prints", "flood_log", "crashed", "File too large"),
    "allocate": _trick("the machine's memory", "allocate", "over_budget"),
    "descriptors": _trick("the system's descriptors", "descriptors", "crashed", "Too many open"),
    "sleep": _trick("the evaluator's patience", "sleep", "run_timeout"),
    "stop": _trick("the evaluator's patience, asleep for good", "stop", "run_timeout"),
    "recurse": _trick("the C stack", "recurse", "crashed"),
    "exit_0": _trick("an exit that says all is well", "exit_0", "crashed", "exit code 0"),
    "sys_exit": _trick("an exit that says all is well, politely", "sys_exit", "crashed"),
    "hang_up": _trick("a parent that waits for ever", "hang_up", "crashed"),
}

RESULTS = {
    "unwritten": _trick("the right result that lay there before", "unwritten", "wrong_result"),
    "stale": _trick("the first result, again and again", "stale", "wrong_result"),
    "memorised": _trick("results of inputs that come back", "memorised", "implausible",
                        "never seen"),
    "guessed_poison": _trick("only what looks unwritten", "guessed_poison", "wrong_result"),
    "first_calls_only": _trick("the calls that are timed", "first_calls_only", "wrong_result"),
    "later": _trick("work after the clock has stopped", "later", "wrong_result"),
    "partly": _trick("the last element", "partly", "wrong_result"),
    "neighbour_array": _trick("one element too much", "neighbour_array", "wrong_result"),
    "in_place": _trick("its input as workspace", "in_place", "wrong_result"),
    "all_nan": _trick("NaN as a wildcard", "all_nan", "wrong_result"),
    "some_nan": _trick("one NaN as a wildcard", "some_nan", "wrong_result"),
    "infinite": _trick("infinity as a wildcard", "infinite", "wrong_result"),
    "exit_hook": _trick("a verdict of its own, printed at exit", "exit_hook", "wrong_result"),
    "harness_times": _trick("a clock that runs slow", "harness_times", "implausible"),
    "harness_outputs": _trick("memory shared with the parent", "harness_outputs", "wrong_result"),
}  # fmt: skip

_OUT_OF_FORM = {
    "huge_length": "2 GiB that the parent would read",
    "no_json": "a reply that is no JSON",
    "no_object": "JSON that is no object",
    "no_text": "JSON that is no UTF-8",
    "deep": "the stack of the JSON reader",
    "large": "a reply of a megabyte",
    "long_number": "a number of 4,000 digits",
    "very_long_number": "the time to read a number of 100,000 digits",
    "nan": "a time that is NaN",
    "infinity": "a time that overflows to infinity",
    "negative": "a negative time",
    "float": "a time of 1e308",
    "truth_value": "a time that is true",
    "text": "a time that is text",
    "null": "a time that is not there",
    "no_times": "fewer times than samples",
    "more_times": "more times than samples",
    "more_fields": "a verdict beside the times",
    "verdict": "a verdict instead of times",
    "device_times": "a device's times from a host's kernel",
    "surrogate": "text that no record can hold",
}
REPLIES = {
    **{name: _trick(tries, name, "crashed") for name, tries in _OUT_OF_FORM.items()},
    "half": _trick("half a message, then silence", "half", "run_timeout"),
    "zero": _trick("a time of zero, without a result", "zero", "wrong_result"),
    "many_answers": _trick("answers ahead of the questions", "many_answers", "wrong_result"),
    "long_error": _trick("a message that floods records and terminals", "long_error", "crashed"),
    "fast_forger": _trick("a thousandth of the time", "fast_forger", "implausible"),
    "forger_at_work": _trick(
        "a sixth of the time, but the truth when clocks are compared",
        "forger_at_work",
        "implausible",
    ),
}

_BUILD_REFUSED = {
    "build_outcome": "an outcome that does not exist",
    "build_verdict": "a verdict beside the outcome",
    "build_infinite_time": "a time that overflows to infinity",
    "build_negative_time": "a negative time",
    "build_surrogate": "text that no record can hold",
    "build_deep_diagnostic": "the stack of whoever writes the record",
    "build_large_answer": "2 GiB that the parent would read",
    "build_pipe": "a parent that reads a pipe for ever",
    "build_link": "another file as the manifest",
    "build_library_link": "another file as the library",
    "build_sparse": "200 MB of manifest in the parent's memory",
    "build_folder": "a folder as the manifest",
    "build_elsewhere": "a library outside of its folder",
    "build_no_memory": "a workspace of less than nothing",
    "build_records": "the run's records",
    "build_cache": "another task's baselines",
    "build_package": "a tolerance, by changing the package",
    "build_signal": "the server that started it",
    "build_network": "a server that knows the answer",
    "build_descriptors": "the system's descriptors",
    "build_large_file": "the disk",
    "build_memory": "the machine's memory",
    "build_exit": "an exit that says all is well",
    "build_hash_path": "a file of its own text anywhere, named by its hash",
    "build_hash_null": "a run that ends at a name that no file can have",
    "build_hash_long": "a run that ends at a name that is too long for a file",
    "build_unsupported": "a verdict that leaves the denominator",
    "build_deep": "folders that outlive it, nested too deep to be deleted",
    "build_closed": "folders that outlive it, closed to their owner",
}
BUILDS = {
    **{name: _trick(tries, name, "compile_error") for name, tries in _BUILD_REFUSED.items()},
    "build_no_diagnostic": _trick("a refusal of no form", "build_no_diagnostic", "invalid_ir"),
    "build_other_arguments": _trick("a library of other arguments", "build_other_arguments",
                                    "wrong_shape_or_dtype"),
    "build_sleep": _trick("the evaluator's patience", "build_sleep", "compile_timeout"),
}  # fmt: skip

NATIVES = SYSTEM | RESULTS | REPLIES | BUILDS

NEEDS_LANDLOCK = {*_FILES, "build_records", "build_cache", "build_package"} - {
    "read_memory",
    "environment",
}
"""What nothing else stops."""
