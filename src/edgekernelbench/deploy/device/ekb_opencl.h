/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs kernels on an OpenCL device: source and a list of launches, both part of the program. The
 * driver's library is loaded at the first call, so nothing of OpenCL is needed to build.
 *
 * Environment:
 *   EKB_OPENCL_LIBRARY  the library, where it is not libOpenCL.so.1 or a usual place of it
 *   EKB_OPENCL_DEVICE   words of the platform's or device's name; else the first GPU, else the
 *                       first device of all
 */
#ifndef EKB_OPENCL_H
#define EKB_OPENCL_H

#include <stddef.h>
#include <stdint.h>

#include "ekb_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name of the device that kernels run on; NULL if there is none, and ekb_error() says why. */
const char *ekb_opencl_device(void);

/* Gives all programs and buffers back. No kernel may be running; the next call starts anew. */
void ekb_opencl_release(void);

/* ---- for the generated wrappers ---- */
enum { EKB_CL_INPUT, EKB_CL_OUTPUT, EKB_CL_CONSTANT, EKB_CL_INNER };

typedef struct {
  int role;
  size_t bytes;
  size_t offset; /* of a constant: within the constants */
} ekb_cl_buffer;

typedef struct {
  int buffer;     /* -1: a number */
  size_t bytes;   /* of the number */
  uint64_t value; /* its bits */
} ekb_cl_argument;

typedef struct {
  const char *kernel;
  int first, count; /* of its arguments */
  size_t items[3], group[3];
} ekb_cl_launch;

typedef struct {
  const char *source, *source_end;
  const unsigned char *constants;
  const ekb_cl_buffer *buffers; /* inputs and outputs first, in the order of the C function */
  int buffer_count, parameter_count;
  const ekb_parameter *parameters;
  const ekb_cl_argument *arguments;
  const ekb_cl_launch *once; /* packs constants, at the first call */
  int once_count;
  const ekb_cl_launch *launches;
  int launch_count;
} ekb_cl_kernel;

int ekb_cl_call(const ekb_cl_kernel *kernel, const void *const *data);

#ifdef __cplusplus
}
#endif
#endif
