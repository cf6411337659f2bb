/* SPDX-License-Identifier: Apache-2.0
 *
 * What the self-test of a bundle is told of its kernel, by the generated golden.c.
 */
#ifndef EKB_SELFTEST_H
#define EKB_SELFTEST_H

#include <stddef.h>

typedef enum {
  ST_F16, ST_F32, ST_F64, ST_S8, ST_U8, ST_S16, ST_U16, ST_S32, ST_U32, ST_S64, ST_BOOL
} st_dtype;

typedef struct {
  const char *name;
  size_t bytes;
} st_input;

/* What is right is stored as double for floats, else in the output's dtype. An element with the
 * truth y may be off by rtol * |y| + atol[case]; see the documentation of tolerances. */
typedef struct {
  const char *name;
  st_dtype dtype;
  size_t count;
  double rtol;
  const double *atol;
  double matched; /* least share of elements within that, also of those whose truth is not 0 */
  double cap;     /* most that any element may be off, as a multiple of it */
  double cosine;  /* least cosine to the truth; below -1: not asked for */
  int lsb;        /* most that an integer may be off */
} st_output;

extern const char st_kernel[], st_cpu[];
extern const int st_cases, st_input_count, st_output_count;
extern const st_input st_inputs[];
extern const st_output st_outputs[];
int st_call(void *const *inputs, void *const *outputs);

#endif
