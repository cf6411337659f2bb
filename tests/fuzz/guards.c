/* Memory of kernels between pages that nothing may touch.

   An allocation is: a page for its head, a closed page, the pages of the buffer, a closed page.
   The buffer begins at its first byte or, with `guards_at_end`, ends as near to the last one as 64
   byte alignment lets it; the rest of its pages holds a pattern that must stay. The two functions
   in the middle stand in for TVM's workspace allocator. Linux. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGN = 64 };

struct head {
  size_t bytes, mapped;
  unsigned char *first, *start, *last; /* of the pages; of the buffer */
  unsigned char fill;
};

int guards_at_end;
unsigned char guards_fill;      /* what a buffer and the rest of its pages hold at first */
int64_t guards_surplus;         /* bytes of every workspace that are not part of the buffer */
atomic_long guards_workspaces;  /* made */
atomic_long guards_live;        /* made and not given back */
atomic_long guards_damaged;     /* given back with a changed pattern */

static struct head *head_of(void *buffer) {
  return (struct head *)(((uintptr_t)buffer & ~(uintptr_t)(PAGE - 1)) - 2 * PAGE);
}

/* A buffer of `bytes`, or NULL when there is no memory. */
void *guards_alloc(int64_t bytes) {
  size_t size = bytes > 0 ? (size_t)bytes : 1;
  size_t inner = (size + PAGE - 1) / PAGE * PAGE, mapped = inner + 3 * PAGE;
  unsigned char *all =
      mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return NULL;
  unsigned char *first = all + 2 * PAGE;
  if (mprotect(all + PAGE, PAGE, PROT_NONE) || mprotect(first + inner, PAGE, PROT_NONE)) {
    munmap(all, mapped);
    return NULL;
  }
  struct head *head = (struct head *)all;
  head->bytes = size;
  head->mapped = mapped;
  head->fill = guards_fill;
  head->first = first;
  head->last = first + inner;
  head->start = guards_at_end ? first + (inner - size) / ALIGN * ALIGN : first;
  memset(first, head->fill, inner);
  return head->start;
}

/* How many bytes beside the buffer, in its pages, are not as they were. */
int64_t guards_damage(void *buffer) {
  struct head *head = head_of(buffer);
  int64_t bad = 0;
  for (unsigned char *at = head->first; at < head->start; at++) bad += *at != head->fill;
  for (unsigned char *at = head->start + head->bytes; at < head->last; at++)
    bad += *at != head->fill;
  return bad;
}

void guards_free(void *buffer) {
  struct head *head = head_of(buffer);
  munmap(head, head->mapped);
}

/* Stands in for TVMBackendAllocWorkspace. */
void *guards_workspace(int device, int number, uint64_t bytes, int code, int bits) {
  (void)device, (void)number, (void)code, (void)bits;
  void *buffer = guards_alloc((int64_t)bytes - guards_surplus);
  if (buffer) atomic_fetch_add(&guards_workspaces, 1), atomic_fetch_add(&guards_live, 1);
  return buffer;
}

/* Stands in for TVMBackendFreeWorkspace. */
int guards_release(int device, int number, void *buffer) {
  (void)device, (void)number;
  if (guards_damage(buffer)) atomic_fetch_add(&guards_damaged, 1);
  guards_free(buffer);
  atomic_fetch_sub(&guards_live, 1);
  return 0;
}
