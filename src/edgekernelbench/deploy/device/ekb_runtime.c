/* SPDX-License-Identifier: Apache-2.0
 *
 * See ekb_runtime.h. The names that begin with TVM are those that the compiler's code asks for;
 * its weak pointers __TVMBackend... are defined here, so that nothing has to be set up first.
 */
#define _GNU_SOURCE
#include "ekb_runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- complaints */
static _Thread_local char message[512];

const char *ekb_error(void) { return message; }

int ekb_fail(int code, const char *what, const char *name) {
  snprintf(message, sizeof message, "%s%s%s", name, *name ? ": " : "", what);
  return code;
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  size_t used = (size_t)snprintf(message, sizeof message, "%s: ", kind ? kind : "error");
  for (int32_t k = 0; k < count && used < sizeof message; k++) {
    if (parts[k]) used += (size_t)snprintf(message + used, sizeof message - used, "%s", parts[k]);
  }
}

/* ---------------------------------------------------------------- halves */
/* The compiler brings routines of its own that convert f16, weak ones, which take and give the bits
 * in integer registers. Its code for RISC-V calls them with halves in floating-point registers, the
 * bits above all ones, as the platform has it: these are for that. EKB_HALVES is for tests. */
#if (defined(__riscv_float_abi_double) && !defined(__riscv_zfh)) || defined(EKB_HALVES)
static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float __extendhfsf2(float boxed);
float __extendhfsf2(float boxed) {
  uint32_t half = bits_of(boxed) & 0xFFFF, sign = half >> 15 << 31;
  uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return of_bits(sign | 0x7F800000 | fraction << 13);
  if (exponent) return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float size = (float)fraction * 0x1p-24f; /* zero or subnormal, exactly */
  return of_bits(sign | bits_of(size));
}

float __truncsfhf2(float value);
float __truncsfhf2(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 31 << 15, size = bits & 0x7FFFFFFF, half;
  if (size > 0x7F800000) {
    half = 0x7E00 | (size >> 13 & 0x1FF); /* NaN, quiet */
  } else if (size >= 0x477FF000) {
    half = 0x7C00; /* what rounds to 65536 and all above */
  } else if (size >= 0x38800000) {
    half = (size - 0x38000000 + 0xFFF + (size >> 13 & 1)) >> 13; /* nearest, ties to even */
  } else {
    float shifted = of_bits(size) + 0.5f; /* an addition rounds at the place of 2**-24 */
    half = bits_of(shifted) - 0x3F000000;
  }
  return of_bits(0xFFFF0000 | sign | half);
}
#endif

/* ---------------------------------------------------------------- memory */
/* Workspace comes in a few sizes, again and again: blocks that were given back are kept, for fresh
 * pages cost more than many a kernel. */
#define KEPT 32

typedef struct {
  size_t bytes;
} block_head;

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static block_head *kept[KEPT];
static int kept_count;

void *ekb_alloc(size_t bytes) {
  void *memory = NULL;
  return posix_memalign(&memory, EKB_ALIGNMENT, bytes ? bytes : 1) ? NULL : memory;
}

void ekb_free(void *memory) { free(memory); }

static block_head *head_of(void *data) { return (block_head *)((char *)data - EKB_ALIGNMENT); }

static block_head *take_kept(size_t bytes) {
  int best = -1;
  for (int k = 0; k < kept_count; k++) {
    size_t has = kept[k]->bytes;
    if (has >= bytes && has / 2 <= bytes && (best < 0 || has < kept[best]->bytes)) best = k;
  }
  if (best < 0) return NULL;
  block_head *found = kept[best];
  kept[best] = kept[--kept_count];
  return found;
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code_hint,
                               int bits_hint) {
  (void)device_type, (void)device_id, (void)code_hint, (void)bits_hint;
  block_head *block = NULL;
  if (bytes <= SIZE_MAX - EKB_ALIGNMENT) {
    pthread_mutex_lock(&memory_lock);
    block = take_kept((size_t)bytes);
    pthread_mutex_unlock(&memory_lock);
    if (!block && (block = ekb_alloc((size_t)bytes + EKB_ALIGNMENT))) block->bytes = (size_t)bytes;
  }
  if (!block) {
    ekb_fail(EKB_FAILED, "there is no memory for the workspace", "");
    return NULL;
  }
  return (char *)block + EKB_ALIGNMENT;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *data) {
  (void)device_type, (void)device_id;
  block_head *block = head_of(data), *dropped = block;
  pthread_mutex_lock(&memory_lock);
  if (kept_count < KEPT) {
    kept[kept_count++] = block;
    dropped = NULL;
  }
  pthread_mutex_unlock(&memory_lock);
  free(dropped);
  return 0;
}

/* ---------------------------------------------------------------- threads */
/* A launch is a number of tasks that may run in any order. Workers claim them one by one; the
 * caller is one of them. A launch that finds the pool busy (another thread's, or one within a
 * task) runs its tasks itself, so kernels may be called from any number of threads. */
typedef struct {
  void *sync_handle;
  int32_t num_task;
} task_group;
typedef int (*task_function)(int task, task_group *group, void *data);

#define SPINS 4000
#define STACK_BYTES (8u << 20)

static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER; /* one launch at a time */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_wakes = PTHREAD_COND_INITIALIZER;
static pthread_cond_t launch_ends = PTHREAD_COND_INITIALIZER;
static pthread_t workers[EKB_MOST_THREADS];
static int worker_count; /* threads of the pool, without the caller; under launch_lock */
static atomic_int wanted_threads;

static task_function launch_function;
static void *launch_data;
static task_group launch_group;
static atomic_int launch_next, launch_failed;
static atomic_int working;        /* workers that have not finished this launch */
static atomic_uint launch_number; /* changes with each launch, under pool_lock */
static atomic_int closing;

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ __volatile__("yield");
#endif
}

static int processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  return count < EKB_MOST_THREADS ? count : EKB_MOST_THREADS;
}

int ekb_threads(void) {
  int threads = atomic_load(&wanted_threads);
  if (threads) return threads;
  const char *said = getenv("EKB_THREADS");
  threads = said ? atoi(said) : 0;
  return ekb_set_threads(threads > 0 ? threads : processors());
}

int ekb_set_threads(int threads) {
  if (threads < 1) threads = 1;
  if (threads > EKB_MOST_THREADS) threads = EKB_MOST_THREADS;
  atomic_store(&wanted_threads, threads);
  return threads;
}

static void run_tasks(void) {
  int task;
  while ((task = atomic_fetch_add(&launch_next, 1)) < launch_group.num_task) {
    if (launch_function(task, &launch_group, launch_data)) atomic_store(&launch_failed, 1);
  }
}

static void *work(void *number) {
  unsigned seen = (unsigned)(uintptr_t)number;
  for (;;) {
    for (int k = 0; k < SPINS && atomic_load(&launch_number) == seen; k++) relax();
    if (atomic_load(&launch_number) == seen) {
      pthread_mutex_lock(&pool_lock);
      while (atomic_load(&launch_number) == seen) pthread_cond_wait(&pool_wakes, &pool_lock);
      pthread_mutex_unlock(&pool_lock);
    }
    seen = atomic_load(&launch_number);
    if (atomic_load(&closing)) return NULL;
    run_tasks();
    if (atomic_fetch_sub(&working, 1) == 1) {
      pthread_mutex_lock(&pool_lock);
      pthread_cond_signal(&launch_ends);
      pthread_mutex_unlock(&pool_lock);
    }
  }
}

static void next_launch(void) {
  pthread_mutex_lock(&pool_lock);
  atomic_fetch_add(&launch_number, 1);
  pthread_cond_broadcast(&pool_wakes);
  pthread_mutex_unlock(&pool_lock);
}

static void stop_workers(void) {
  atomic_store(&closing, 1);
  next_launch();
  while (worker_count) pthread_join(workers[--worker_count], NULL);
  atomic_store(&closing, 0);
}

/* A system that gives fewer threads than asked for makes kernels slower, not wrong. */
static void start_workers(int count) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes)) return;
  pthread_attr_setstacksize(&attributes, STACK_BYTES); /* kernels keep tiles there */
  void *number = (void *)(uintptr_t)atomic_load(&launch_number);
  while (worker_count < count) {
    if (pthread_create(&workers[worker_count], &attributes, work, number)) break;
    worker_count++;
  }
  pthread_attr_destroy(&attributes);
}

static int launch_alone(task_function function, void *data, int tasks) {
  task_group group = {NULL, tasks};
  int failed = 0;
  for (int task = 0; task < tasks; task++) failed |= function(task, &group, data) != 0;
  return failed ? -1 : 0;
}

int TVMBackendParallelLaunch(task_function function, void *data, int tasks) {
  int threads = ekb_threads();
  if (tasks < 1) tasks = threads;
  if (threads == 1 || tasks == 1 || pthread_mutex_trylock(&launch_lock))
    return launch_alone(function, data, tasks);
  if (worker_count != threads - 1) {
    stop_workers();
    start_workers(threads - 1);
  }
  launch_function = function;
  launch_data = data;
  launch_group.num_task = tasks;
  atomic_store(&launch_failed, 0);
  atomic_store(&working, worker_count);
  atomic_store(&launch_next, 0);
  next_launch();
  run_tasks();
  for (int k = 0; k < SPINS && atomic_load(&working); k++) relax();
  if (atomic_load(&working)) {
    pthread_mutex_lock(&pool_lock);
    while (atomic_load(&working)) pthread_cond_wait(&launch_ends, &pool_lock);
    pthread_mutex_unlock(&pool_lock);
  }
  int failed = atomic_load(&launch_failed);
  pthread_mutex_unlock(&launch_lock);
  return failed ? -1 : 0;
}

void ekb_release(void) {
  pthread_mutex_lock(&launch_lock);
  stop_workers();
  pthread_mutex_unlock(&launch_lock);
  pthread_mutex_lock(&memory_lock);
  while (kept_count) free(kept[--kept_count]);
  pthread_mutex_unlock(&memory_lock);
}

int (*__TVMBackendParallelLaunch)(task_function, void *, int) = TVMBackendParallelLaunch;
void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = TVMBackendAllocWorkspace;
int (*__TVMBackendFreeWorkspace)(int, int, void *) = TVMBackendFreeWorkspace;

/* ---------------------------------------------------------------- calls */
/* The compiler's calling convention: each argument a tagged pointer to a tensor's description. */
struct ekb_any {
  int32_t kind;
  uint32_t zero;
  union {
    int64_t integer;
    void *pointer;
  } value;
};

typedef struct {
  void *data;
  int32_t device_type, device_id;
  int32_t dimensions;
  uint8_t kind, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;

enum { TENSOR_POINTER = 7, HOST = 1 };

static int overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return x < y + b_bytes && y < x + a_bytes;
}

int ekb_check(const ekb_parameter *parameters, const void *const *data, int count) {
  for (int k = 0; k < count; k++) {
    if (!data[k]) return ekb_fail(EKB_NULL, "is NULL", parameters[k].name);
    if ((uintptr_t)data[k] % EKB_ALIGNMENT)
      return ekb_fail(EKB_MISALIGNED, "must begin at a multiple of 64 bytes", parameters[k].name);
  }
  for (int k = 0; k < count; k++) {
    for (int other = 0; parameters[k].output && other < count; other++) {
      if (other != k && overlap(data[k], parameters[k].bytes, data[other], parameters[other].bytes))
        return ekb_fail(EKB_OVERLAP, "shares memory with another argument", parameters[k].name);
    }
  }
  return EKB_OK;
}

int ekb_call(ekb_function function, const ekb_parameter *parameters, const void *const *data,
             int count) {
  tensor tensors[EKB_MOST_ARGUMENTS];
  struct ekb_any arguments[EKB_MOST_ARGUMENTS], result = {0, 0, {0}};
  int code = ekb_check(parameters, data, count);
  if (code) return code;
  for (int k = 0; k < count; k++) {
    const ekb_parameter *p = &parameters[k];
    tensor made = {(void *)data[k], HOST, 0, p->dimensions, p->kind, p->bits, 1, p->shape, NULL, 0};
    tensors[k] = made;
    memset(&arguments[k], 0, sizeof arguments[k]);
    arguments[k].kind = TENSOR_POINTER;
    arguments[k].value.pointer = &tensors[k];
  }
  return function(NULL, arguments, count, &result) ? EKB_FAILED : EKB_OK;
}
