"""The calling convention: that of TVM's code, so that one loader, one pool of threads and one
run time of bundles serve both. Arguments are tagged pointers to descriptions of tensors."""

from __future__ import annotations

from collections.abc import Sequence

CONVENTION = """\
/* What a call brings: tagged pointers to descriptions of tensors. */
typedef struct {
  int32_t kind;
  uint32_t zero;
  union {
    int64_t integer;
    const char *pointer;
  } value;
} any;

typedef struct {
  char *data;
  int32_t device[2], dimensions;
  uint8_t type[4];
  const int64_t *shape, *strides;
  uint64_t offset;
} tensor;

extern void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count);

static int failure(const char *message) {
  TVMFFIErrorSetRaisedFromCStrParts("RuntimeError", &message, 1);
  return -1;
}

/* The data of an argument: 7 is a description, 70 an object with one behind its head. */
static void *data_of(const any *argument) {
  const char *at = argument->value.pointer;
  if (argument->kind == 70) at += 24;
  else if (argument->kind != 7) return NULL;
  const tensor *found = (const tensor *)at;
  return found->data + found->offset;
}
"""

THREADS = """\
/* The run time's pool of threads: each task gets its number. */
typedef struct {
  void *sync;
  int32_t tasks;
} group;

__attribute__((weak)) int (*__TVMBackendParallelLaunch)(int (*)(int, group *, void *), void *, int);
"""

WORKSPACE = """\
/* Memory of the run time, given back after use. */
__attribute__((weak)) void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
__attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void *);
"""


def entry(symbol: str, function: str, pointers: Sequence[str]) -> str:
    """The exported function ``__tvm_ffi_SYMBOL``, which calls ``function`` with its arrays.

    Args:
        pointers: the type of each (``const float *``).
    """
    count = len(pointers)
    lines = [
        f"int __tvm_ffi_{symbol}(void *self, const any *arguments, int32_t count, any *result);",
        f"int __tvm_ffi_{symbol}(void *self, const any *arguments, int32_t count, any *result) {{",
        "  (void)self, (void)result;",
        f'  if (count != {count}) return failure("{count} arguments are wanted");',
        f"  void *data[{max(1, count)}];",
        f"  for (int32_t k = 0; k < {count}; ++k)",
        "    if (!(data[k] = data_of(&arguments[k])))",
        '      return failure("an argument is no tensor, or has no data");',
        f"  if (!{function}({', '.join(f'data[{k}]' for k in range(count))})) return 0;",
        '  return failure("there is no memory for the workspace");',
        "}",
    ]
    return "\n".join(lines) + "\n"
