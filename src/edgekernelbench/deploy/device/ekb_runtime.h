/* SPDX-License-Identifier: Apache-2.0
 *
 * What compiled kernels need of the device: a pool of threads, workspace, and a way to complain.
 * C11 and POSIX threads, nothing else. Several bundles in one program share one copy of it.
 */
#ifndef EKB_RUNTIME_H
#define EKB_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels return. */
enum {
  EKB_OK = 0,
  EKB_NULL = 1,       /* an argument is NULL */
  EKB_MISALIGNED = 2, /* an argument does not begin at a multiple of EKB_ALIGNMENT */
  EKB_OVERLAP = 3,    /* an output shares memory with another argument */
  EKB_FAILED = 4      /* the kernel gave up: there is no memory for its workspace */
};

#define EKB_ALIGNMENT 64

/* Why the last call in this thread did not return EKB_OK. Never NULL. */
const char *ekb_error(void);

/* Memory for an argument, aligned as kernels want it; NULL if there is none. Freed by ekb_free. */
void *ekb_alloc(size_t bytes);
void ekb_free(void *memory);

/* How many threads kernels use, the caller's included: 1 to EKB_MOST_THREADS. To begin with, the
 * environment variable EKB_THREADS says it, else as many as the process may use processors. Takes
 * effect with the next call; returns the number in force. */
#define EKB_MOST_THREADS 64
int ekb_set_threads(int threads);
int ekb_threads(void);

/* Ends the pool and gives workspace back. No kernel may be running; the next call starts anew. */
void ekb_release(void);

/* ---- for the generated wrappers ---- */
enum { EKB_INT = 0, EKB_UINT = 1, EKB_FLOAT = 2 };
#define EKB_MOST_ARGUMENTS 128

typedef struct {
  const char *name;
  const int64_t *shape;
  int32_t dimensions;
  uint8_t kind; /* EKB_INT .. */
  uint8_t bits;
  uint8_t output;
  size_t bytes;
} ekb_parameter;

struct ekb_any;
typedef int (*ekb_function)(void *self, const struct ekb_any *arguments, int32_t count,
                            struct ekb_any *result);

int ekb_fail(int code, const char *what, const char *name); /* sets ekb_error(), returns the code */
int ekb_check(const ekb_parameter *parameters, const void *const *data, int count);
int ekb_call(ekb_function function, const ekb_parameter *parameters, const void *const *data,
             int count);

#ifdef __cplusplus
}
#endif
#endif
