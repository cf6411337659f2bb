/* A CUDA driver without a device, for tests: memory is the host's, a stream does its work when it
 * is waited for, and a module is the name of one of the kernels below. What is proved with it is
 * the executor's side: order of calls, types, gates, guards, errors. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 4096, MOST = 1 << 16, ILLEGAL_ADDRESS = 700, NOT_FOUND = 500, OUT_OF_MEMORY = 2 };
enum kind { SET, COPY, CALL, RECORD, KERNEL };

struct op {
  enum kind kind;
  unsigned char *to;
  const unsigned char *from;
  size_t size;
  int byte;
  void (*call)(void *);
  double *event;
  const char *body;
  float *x, *w, *y, *t;
  int step, first, count;
};

static struct op *ops;
static int waiting, broken;

static struct op *add(enum kind kind) {
  if (!ops) ops = calloc(MOST, sizeof *ops);
  if (waiting == MOST) abort();
  struct op *made = &ops[waiting++];
  memset(made, 0, sizeof *made);
  made->kind = kind;
  return made;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int is(const struct op *o, const char *body) { return strcmp(o->body, body) == 0; }

static int run_kernel(const struct op *o) {
  for (int i = o->first; i < o->first + o->count; ++i) {
    if (is(o, "canary")) o->y[i] = 2 * o->x[i] + 1;
    else if (is(o, "wrong")) o->y[i] = o->x[i] * o->w[i] * (i == 17 ? 1.01f : 1.0f);
    else if (is(o, "half")) { if (i < N / 2) o->y[i] = o->x[i] * o->w[i]; }
    else if (is(o, "steps")) o->y[i] = o->step < 3 ? 0.0f : o->x[i] * o->w[i];
    else if (!is(o, "nothing")) o->y[i] = o->x[i] * o->w[i];
  }
  if (is(o, "behind")) o->y[N] = 1.0f;
  if (is(o, "before")) o->y[-1] = 1.0f;
  if (is(o, "input")) o->x[3] = 0.5f;
  if (is(o, "space")) o->t[N] = 1.0f;
  if (is(o, "twice")) usleep(2000);
  if (is(o, "loop")) for (;;) usleep(1000);
  if (is(o, "segfault")) raise(11);
  return is(o, "illegal") ? ILLEGAL_ADDRESS : 0;
}

static int run(const struct op *o) {
  switch (o->kind) {
    case SET: memset(o->to, o->byte, o->size); return 0;
    case COPY: memcpy(o->to, o->from, o->size); return 0;
    case CALL: o->call(o->to); return 0;
    case RECORD: *o->event = now(); return 0;
    default: return run_kernel(o);
  }
}

int cuStreamSynchronize(void *stream) {
  for (int i = 0; i < waiting && !broken; ++i) broken = run(&ops[i]);
  waiting = 0;
  return broken; /* an error stays: the context is lost */
}

int cuInit(unsigned flags) { return flags; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuGetErrorName(int code, const char **text) {
  *text = code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int code, const char **text) { *text = "the fake says no"; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, size, device ? "Fake 2" : "Fake 1");
  return 0;
}
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, 0x10 + device, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *size, int device) { *size = (size_t)1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int number, int device) {
  static const struct { int number, value; } known[] = {
    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
    {97, 232448}, {10, 32}, {13, 1980000}, {16, 8}, {18, 0}, {36, 2619000}, {38, 4 << 20},
    {75, 9}, {76, 0}};
  for (unsigned i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].number == number) { *value = known[i].value; return 0; }
  return 1;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = ops; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuModuleLoadData(void **module, const char *image) {
  *module = strdup(image);
  return strcmp(image, "refused") == 0 ? 200 : 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = module;
  return strcmp(name, "k") ? NOT_FOUND : 0;
}
static int dynamic_shared;
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != 8 || value > 232448) return 1;
  dynamic_shared = value;
  return 0;
}
int cuMemAlloc_v2(uint64_t *place, size_t size) {
  *place = size > (1u << 29) ? 0 : (uint64_t)aligned_alloc(256, (size + 255) / 256 * 256);
  return *place ? 0 : OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t place) { free((void *)place); return 0; }
int cuMemsetD8Async(uint64_t place, unsigned char byte, size_t size, void *stream) {
  struct op *o = add(SET);
  o->to = (void *)place, o->byte = byte, o->size = size;
  return broken;
}
static int copy(void *to, const void *from, size_t size) {
  struct op *o = add(COPY);
  o->to = to, o->from = from, o->size = size;
  return broken;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  return copy((void *)to, from, size);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  return copy(to, (void *)from, size);
}
int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); return 0; }
int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data) {
  struct op *o = add(CALL);
  o->call = call, o->to = data;
  return broken;
}
int cuEventCreate(void **event, unsigned flags) { *event = calloc(1, sizeof(double)); return 0; }
int cuEventRecord(void *event, void *stream) { add(RECORD)->event = event; return broken; }
int cuEventElapsedTime(float *took, void *start, void *end) {
  *took = *(double *)end - *(double *)start;
  return 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **given, void **extra) {
  if (bx * by * bz > 1024 || gy != 1 || gz != 1 || shared > (unsigned)dynamic_shared || extra)
    return 1;
  struct op *o = add(KERNEL);
  o->body = function;
  o->x = *(float **)given[0], o->w = *(float **)given[1], o->y = *(float **)given[2];
  o->t = *(float **)given[3], o->step = *(int *)given[4], o->count = gx * bx;
  return broken;
}
