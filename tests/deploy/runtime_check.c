/* Tries the run time of bundles: launches from many threads, nested ones, other numbers of
 * threads, workspace that is kept, and what is refused. Prints the line that fails. */
#include "ekb_runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void *sync_handle;
  int32_t num_task;
} group;
extern int (*__TVMBackendParallelLaunch)(int (*)(int, group *, void *), void *, int);
extern void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
extern int (*__TVMBackendFreeWorkspace)(int, int, void *);

#define CHECK(condition) \
  if (!(condition)) return printf("line %d: %s\n", __LINE__, #condition), exit(1), 1

#define CELLS 1000

static int fill(int task, group *g, void *data) {
  int *cells = data, low = CELLS * task / g->num_task, high = CELLS * (task + 1) / g->num_task;
  for (int k = low; k < high; k++) cells[k]++;
  return 0;
}

static int nested(int task, group *g, void *data) {
  int *cells = calloc(CELLS, sizeof *cells), sum = 0;
  (void)g;
  __TVMBackendParallelLaunch(fill, cells, 0);
  for (int k = 0; k < CELLS; k++) sum += cells[k];
  free(cells);
  ((int *)data)[task] = sum;
  return 0;
}

static int fails(int task, group *g, void *data) {
  (void)g, (void)data;
  return task == 1 ? -1 : 0;
}

static void *many(void *unused) {
  (void)unused;
  for (int round = 0; round < 300; round++) {
    int cells[CELLS] = {0};
    if (__TVMBackendParallelLaunch(fill, cells, 0)) return "failed";
    for (int k = 0; k < CELLS; k++)
      if (cells[k] != 1) return "a cell was missed, or filled twice";
    char *space = __TVMBackendAllocWorkspace(1, 0, 1000 + 64 * (uint64_t)(round % 7), 2, 32);
    if (!space || (uintptr_t)space % 64) return "no workspace";
    memset(space, round, 1000);
    __TVMBackendFreeWorkspace(1, 0, space);
  }
  return NULL;
}

static int checks(void) {
  for (int threads = 1; threads <= 5; threads++) {
    CHECK(ekb_set_threads(threads) == threads && ekb_threads() == threads);
    CHECK(many(NULL) == NULL);
    int sums[3] = {0};
    CHECK(__TVMBackendParallelLaunch(nested, sums, 3) == 0);
    CHECK(sums[0] == CELLS && sums[1] == CELLS && sums[2] == CELLS);
    CHECK(__TVMBackendParallelLaunch(fails, NULL, 4) != 0);
  }
  CHECK(ekb_set_threads(0) == 1 && ekb_set_threads(1000) == EKB_MOST_THREADS);
  ekb_set_threads(3);
  pthread_t callers[4];
  for (int k = 0; k < 4; k++) pthread_create(&callers[k], NULL, many, NULL);
  for (int k = 0; k < 4; k++) {
    void *said;
    pthread_join(callers[k], &said);
    if (said) return puts(said), 1;
  }
  ekb_release();
  CHECK(many(NULL) == NULL);
  CHECK(__TVMBackendAllocWorkspace(1, 0, UINT64_MAX - 8, 2, 32) == NULL);
  CHECK(strstr(ekb_error(), "no memory"));
  ekb_release();
  return 0;
}

int main(void) { return checks(); }
