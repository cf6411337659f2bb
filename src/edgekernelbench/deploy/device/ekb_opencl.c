/* SPDX-License-Identifier: Apache-2.0
 *
 * See ekb_opencl.h. What is used of OpenCL is declared here, by its specification (1.2): a device
 * need not have its headers.
 */
#define _GNU_SOURCE
#include "ekb_opencl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cl_any *cl_object; /* platforms, devices, contexts, queues, programs, ... */
typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_bits;
enum { TYPE_GPU = 4, DEVICE_TYPE = 0x1000, DEVICE_NAME = 0x102B, PLATFORM_NAME = 0x0902 };
enum { READ_WRITE = 1, BUILD_LOG = 0x1183 };
#define ANY_TYPE 0xFFFFFFFFu

/* ---------------------------------------------------------------- the library */
static cl_int (*GetPlatformIDs)(cl_uint, cl_object *, cl_uint *);
static cl_int (*GetPlatformInfo)(cl_object, cl_uint, size_t, void *, size_t *);
static cl_int (*GetDeviceIDs)(cl_object, cl_bits, cl_uint, cl_object *, cl_uint *);
static cl_int (*GetDeviceInfo)(cl_object, cl_uint, size_t, void *, size_t *);
static cl_object (*CreateContext)(const intptr_t *, cl_uint, const cl_object *, void *, void *,
                                  cl_int *);
static cl_object (*CreateCommandQueue)(cl_object, cl_object, cl_bits, cl_int *);
static cl_object (*CreateProgramWithSource)(cl_object, cl_uint, const char **, const size_t *,
                                            cl_int *);
static cl_int (*BuildProgram)(cl_object, cl_uint, const cl_object *, const char *, void *, void *);
static cl_int (*GetProgramBuildInfo)(cl_object, cl_object, cl_uint, size_t, void *, size_t *);
static cl_object (*CreateKernel)(cl_object, const char *, cl_int *);
static cl_int (*SetKernelArg)(cl_object, cl_uint, size_t, const void *);
static cl_object (*CreateBuffer)(cl_object, cl_bits, size_t, void *, cl_int *);
static cl_int (*EnqueueWriteBuffer)(cl_object, cl_object, cl_bool, size_t, size_t, const void *,
                                    cl_uint, const cl_object *, cl_object *);
static cl_int (*EnqueueReadBuffer)(cl_object, cl_object, cl_bool, size_t, size_t, void *, cl_uint,
                                   const cl_object *, cl_object *);
static cl_int (*EnqueueNDRangeKernel)(cl_object, cl_object, cl_uint, const size_t *,
                                      const size_t *, const size_t *, cl_uint, const cl_object *,
                                      cl_object *);
static cl_int (*Finish)(cl_object);
static cl_int (*ReleaseMemObject)(cl_object);
static cl_int (*ReleaseKernel)(cl_object);
static cl_int (*ReleaseProgram)(cl_object);
static cl_int (*ReleaseCommandQueue)(cl_object);
static cl_int (*ReleaseContext)(cl_object);

#define ENTRY(name) {"cl" #name, (void **)&name}
static const struct {
  const char *name;
  void **place;
} entries[] = {
    ENTRY(GetPlatformIDs), ENTRY(GetPlatformInfo), ENTRY(GetDeviceIDs), ENTRY(GetDeviceInfo),
    ENTRY(CreateContext), ENTRY(CreateCommandQueue), ENTRY(CreateProgramWithSource),
    ENTRY(BuildProgram), ENTRY(GetProgramBuildInfo), ENTRY(CreateKernel), ENTRY(SetKernelArg),
    ENTRY(CreateBuffer), ENTRY(EnqueueWriteBuffer), ENTRY(EnqueueReadBuffer),
    ENTRY(EnqueueNDRangeKernel), ENTRY(Finish), ENTRY(ReleaseMemObject), ENTRY(ReleaseKernel),
    ENTRY(ReleaseProgram), ENTRY(ReleaseCommandQueue), ENTRY(ReleaseContext),
};

static int failed(const char *what, cl_int code) {
  char told[96];
  snprintf(told, sizeof told, "%s (OpenCL says %d)", what, (int)code);
  return ekb_fail(EKB_FAILED, told, "");
}

static int load_library(void) {
  static const char *const usual[] = {"libOpenCL.so.1", "libOpenCL.so", "/vendor/lib64/libOpenCL.so",
                                      "/system/vendor/lib64/libOpenCL.so"};
  const char *named = getenv("EKB_OPENCL_LIBRARY");
  void *library = named ? dlopen(named, RTLD_NOW) : NULL;
  if (named && !library) return ekb_fail(EKB_FAILED, "cannot be loaded", named);
  for (size_t k = 0; !library && k < sizeof usual / sizeof *usual; k++)
    library = dlopen(usual[k], RTLD_NOW);
  if (!library)
    return ekb_fail(EKB_FAILED, "there is no libOpenCL.so.1: install a driver for the device, or "
                                "name its library in EKB_OPENCL_LIBRARY", "");
  for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
    if (!(*entries[k].place = dlsym(library, entries[k].name)))
      return ekb_fail(EKB_FAILED, "is missing in the OpenCL library", entries[k].name);
  }
  return EKB_OK;
}

/* ---------------------------------------------------------------- the device */
typedef struct opened {
  const ekb_cl_kernel *kernel;
  cl_object program, *buffers, *made; /* made: a kernel for each launch, those of `once` first */
  struct opened *next;
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; one call at a time */
static cl_object device, context, queue;
static char device_name[320];
static opened *all;

#define MOST 32

static void name_of(cl_object platform, cl_object found, char *into, size_t bytes) {
  char first[128] = "", second[128] = "";
  GetPlatformInfo(platform, PLATFORM_NAME, sizeof first, first, NULL);
  GetDeviceInfo(found, DEVICE_NAME, sizeof second, second, NULL);
  snprintf(into, bytes, "%s: %s", first, second);
}

static int choose_device(void) {
  cl_object platforms[MOST], devices[MOST];
  cl_uint platform_count = 0, count = 0;
  const char *words = getenv("EKB_OPENCL_DEVICE");
  int gpu = 0;
  if (GetPlatformIDs(MOST, platforms, &platform_count)) platform_count = 0;
  for (cl_uint p = 0; p < platform_count && p < MOST; p++) {
    if (GetDeviceIDs(platforms[p], ANY_TYPE, MOST, devices, &count)) continue;
    for (cl_uint d = 0; d < count && d < MOST; d++) {
      char name[sizeof device_name];
      cl_bits type = 0;
      name_of(platforms[p], devices[d], name, sizeof name);
      GetDeviceInfo(devices[d], DEVICE_TYPE, sizeof type, &type, NULL);
      if (words && !strcasestr(name, words)) continue;
      if (device && (gpu || !(type & TYPE_GPU))) continue;
      device = devices[d];
      gpu = (type & TYPE_GPU) != 0;
      memcpy(device_name, name, sizeof name);
    }
  }
  if (device) return EKB_OK;
  return ekb_fail(EKB_FAILED, "no OpenCL device has these words in its name (EKB_OPENCL_DEVICE)",
                  words ? words : "");
}

static int open_device(void) {
  cl_int code;
  int found;
  if (queue) return EKB_OK;
  if ((found = load_library()) || (found = choose_device())) return found;
  context = CreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (code) return failed("the device cannot be opened", code);
  queue = CreateCommandQueue(context, device, 0, &code);
  return code ? failed("the device gives no queue", code) : EKB_OK;
}

const char *ekb_opencl_device(void) {
  pthread_mutex_lock(&lock);
  int found = open_device();
  pthread_mutex_unlock(&lock);
  return found ? NULL : device_name;
}

/* ---------------------------------------------------------------- kernels */
static int build(opened *o) {
  const ekb_cl_kernel *k = o->kernel;
  const char *source = k->source;
  size_t bytes = (size_t)(k->source_end - source);
  char log[256] = "";
  cl_int code;
  o->program = CreateProgramWithSource(context, 1, &source, &bytes, &code);
  if (code) return failed("the source is not taken", code);
  if ((code = BuildProgram(o->program, 1, &device, "", NULL, NULL))) {
    char *whole = calloc(1, 65536);
    if (whole) GetProgramBuildInfo(o->program, device, BUILD_LOG, 65535, whole, NULL);
    snprintf(log, sizeof log, "the driver's compiler refuses the source: %.200s",
             whole ? whole : "");
    free(whole);
    return failed(log, code);
  }
  return EKB_OK;
}

static int make_buffers(opened *o) {
  const ekb_cl_kernel *k = o->kernel;
  cl_int code = 0;
  for (int b = 0; b < k->buffer_count; b++) {
    const ekb_cl_buffer *buffer = &k->buffers[b];
    o->buffers[b] = CreateBuffer(context, READ_WRITE, buffer->bytes, NULL, &code);
    if (!code && buffer->role == EKB_CL_CONSTANT)
      code = EnqueueWriteBuffer(queue, o->buffers[b], 1, 0, buffer->bytes,
                                k->constants + buffer->offset, 0, NULL, NULL);
    if (code) return failed("there is no memory on the device", code);
  }
  return EKB_OK;
}

static int make_launch(opened *o, const ekb_cl_launch *launch, cl_object *made) {
  cl_int code;
  *made = CreateKernel(o->program, launch->kernel, &code);
  for (int a = 0; !code && a < launch->count; a++) {
    const ekb_cl_argument *argument = &o->kernel->arguments[launch->first + a];
    code = argument->buffer < 0
               ? SetKernelArg(*made, (cl_uint)a, argument->bytes, &argument->value)
               : SetKernelArg(*made, (cl_uint)a, sizeof(cl_object), &o->buffers[argument->buffer]);
  }
  return code ? failed("a kernel cannot be made", code) : EKB_OK;
}

static int run(const ekb_cl_launch *launches, const cl_object *made, int count) {
  for (int k = 0; k < count; k++) {
    cl_int code = EnqueueNDRangeKernel(queue, made[k], 3, NULL, launches[k].items,
                                       launches[k].group, 0, NULL, NULL);
    if (code) return failed("a kernel cannot be launched", code);
  }
  return EKB_OK;
}

static void close_kernel(opened *o) {
  for (int k = 0; o->made && k < o->kernel->once_count + o->kernel->launch_count; k++)
    if (o->made[k]) ReleaseKernel(o->made[k]);
  for (int b = 0; o->buffers && b < o->kernel->buffer_count; b++)
    if (o->buffers[b]) ReleaseMemObject(o->buffers[b]);
  if (o->program) ReleaseProgram(o->program);
  free(o->made), free(o->buffers), free(o);
}

static int prepare(opened *o) {
  const ekb_cl_kernel *k = o->kernel;
  int total = k->once_count + k->launch_count, found;
  o->buffers = calloc((size_t)k->buffer_count, sizeof *o->buffers);
  o->made = calloc((size_t)total + 1, sizeof *o->made);
  if (!o->buffers || !o->made) return ekb_fail(EKB_FAILED, "there is no memory", "");
  if ((found = build(o)) || (found = make_buffers(o))) return found;
  for (int n = 0; n < total; n++) {
    const ekb_cl_launch *one = n < k->once_count ? &k->once[n] : &k->launches[n - k->once_count];
    if ((found = make_launch(o, one, &o->made[n]))) return found;
  }
  return run(k->once, o->made, k->once_count);
}

static int open_kernel(const ekb_cl_kernel *kernel, opened **into) {
  int found = open_device();
  if (found) return found;
  for (*into = all; *into; *into = (*into)->next)
    if ((*into)->kernel == kernel) return EKB_OK;
  opened *o = calloc(1, sizeof *o);
  if (!o) return ekb_fail(EKB_FAILED, "there is no memory", "");
  o->kernel = kernel;
  if ((found = prepare(o))) {
    close_kernel(o);
    return found;
  }
  o->next = all;
  *into = all = o;
  return EKB_OK;
}

void ekb_opencl_release(void) {
  pthread_mutex_lock(&lock);
  while (all) {
    opened *next = all->next;
    close_kernel(all);
    all = next;
  }
  if (queue) ReleaseCommandQueue(queue);
  if (context) ReleaseContext(context);
  device = context = queue = NULL;
  pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- calls */
static int copy(const opened *o, const void *const *data, int role) {
  const ekb_cl_kernel *k = o->kernel;
  for (int p = 0; p < k->parameter_count; p++) {
    const ekb_cl_buffer *b = &k->buffers[p];
    cl_int code = 0;
    if (b->role != role) continue;
    if (role == EKB_CL_INPUT)
      code = EnqueueWriteBuffer(queue, o->buffers[p], 0, 0, b->bytes, data[p], 0, NULL, NULL);
    else
      code = EnqueueReadBuffer(queue, o->buffers[p], 0, 0, b->bytes, (void *)data[p], 0, NULL,
                               NULL);
    if (code) return failed("an array cannot be copied", code);
  }
  return EKB_OK;
}

static int call(const ekb_cl_kernel *kernel, const void *const *data) {
  opened *o;
  cl_int code;
  int found = open_kernel(kernel, &o);
  if (found || (found = copy(o, data, EKB_CL_INPUT))) return found;
  found = run(kernel->launches, o->made + kernel->once_count, kernel->launch_count);
  if (!found) found = copy(o, data, EKB_CL_OUTPUT);
  code = Finish(queue); /* after a failure, too: copies may be under way */
  return found ? found : code ? failed("the device failed", code) : EKB_OK;
}

int ekb_cl_call(const ekb_cl_kernel *kernel, const void *const *data) {
  int found = ekb_check(kernel->parameters, data, kernel->parameter_count);
  if (found) return found;
  pthread_mutex_lock(&lock);
  found = call(kernel, data);
  pthread_mutex_unlock(&lock);
  return found;
}
