// Runs CUDA kernels on a CPU, a fiber for each thread of a block: enough of the language for what
// the code generator writes, with the tensor cores as the PTX manual describes their fragments.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

typedef _Float16 half;
struct Dim { int x, y, z; };
static Dim threadIdx, blockIdx;
#define __shared__ static
#define __global__
#define __restrict__
#define __launch_bounds__(n)
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short
template <typename T> struct Two { T x, y; };
typedef Two<int> int2;
typedef Two<unsigned> uint2;
typedef Two<float> float2;
struct uint1 { unsigned x; };
typedef Two<half> half2;
template <typename T> struct Four { T x, y, z, w; };
typedef Four<int> int4;
typedef Four<unsigned> uint4;
typedef Four<float> float4;
static int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

struct Fiber { ucontext_t context; std::vector<char> stack; int waits = 0; bool done = false; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;

// Waits until the threads first..first+count-1 have come here as often as this one.
static void meet(std::vector<int>& arrived, int first, int count) {
  int turn = ++arrived[current];
  for (bool all = false; !all;) {
    all = true;
    for (int t = first; t < first + count; ++t) all = all && (arrived[t] >= turn);
    if (!all) swapcontext(&fibers[current].context, &scheduler), threadIdx.x = current;
  }
}
static std::vector<int> at_barrier, at_warp;
static void __syncthreads() { meet(at_barrier, 0, (int)fibers.size()); }
static int lane() { return current % 32; }
static void warp() { meet(at_warp, current / 32 * 32, 32); }

struct Post { const void* row; unsigned a[4], b[2]; };
static std::vector<Post> posts;
static Post& post(int of) { return posts[current / 32 * 32 + of]; }

static void ekb_load_rows(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, const void* row) {
  if ((uintptr_t)row % 16) abort();
  post(lane()).row = row;
  warp();
  unsigned* out[] = {&r0, &r1, &r2, &r3};
  for (int m = 0; m < 4; ++m)
    memcpy(out[m], (const char*)post(8 * m + lane() / 4).row + 4 * (lane() % 4), 4);
  warp();
}
static void ekb_load_columns(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, const void* row) {
  if ((uintptr_t)row % 16) abort();
  post(lane()).row = row;
  warp();
  unsigned* out[] = {&r0, &r1, &r2, &r3};
  for (int m = 0; m < 4; ++m)
    for (int e = 0; e < 2; ++e)
      memcpy((char*)out[m] + 2 * e,
             (const char*)post(8 * m + 2 * (lane() % 4) + e).row + 2 * (lane() / 4), 2);
  warp();
}
static void ekb_pack_2(unsigned& r, const void* e0, const void* e1) {
  memcpy(&r, e0, 2);
  memcpy((char*)&r + 2, e1, 2);
}
static void ekb_pack_4(unsigned& r, const void* e0, const void* e1, const void* e2, const void* e3) {
  const void* all[] = {e0, e1, e2, e3};
  for (int k = 0; k < 4; ++k) memcpy((char*)&r + k, all[k], 1);
}
template <typename A, typename B, typename C>
static void multiply(C& c0, C& c1, C& c2, C& c3, const unsigned (&a)[4], const unsigned (&b)[2]) {
  const int n = 4 / sizeof(A), depth = 8 * n;
  memcpy(post(lane()).a, a, 16);
  memcpy(post(lane()).b, b, 8);
  warp();
  C* out[] = {&c0, &c1, &c2, &c3};
  for (int e = 0; e < 4; ++e) {
    int row = lane() / 4 + 8 * (e / 2), column = 2 * (lane() % 4) + e % 2;
    for (int k = 0; k < depth; ++k) {
      int half_of_k = k / (depth / 2), within = k % (depth / 2);
      A left; B right;
      int word = 4 * (row % 8) + within / n;
      memcpy(&left, (char*)&post(word).a[row / 8 + 2 * half_of_k] + sizeof(A) * (within % n), sizeof(A));
      word = 4 * column + within / n;
      memcpy(&right, (char*)&post(word).b[half_of_k] + sizeof(B) * (within % n), sizeof(B));
      *out[e] += (C)left * (C)right;
    }
  }
  warp();
}
#define MMA(name, A, B, C)                                                              \
  static void name(C& c0, C& c1, C& c2, C& c3, unsigned a0, unsigned a1, unsigned a2,   \
                   unsigned a3, unsigned b0, unsigned b1) {                             \
    multiply<A, B, C>(c0, c1, c2, c3, {a0, a1, a2, a3}, {b0, b1});                      \
  }
MMA(ekb_mma_f16_f16, half, half, float)
MMA(ekb_mma_s8_s8, int8_t, int8_t, int)
MMA(ekb_mma_s8_u8, int8_t, uint8_t, int)
MMA(ekb_mma_u8_s8, uint8_t, int8_t, int)
MMA(ekb_mma_u8_u8, uint8_t, uint8_t, int)

typedef void (*Kernel)(void** arguments);
static Kernel running;
static void** given;
static void enter() {
  running(given);
  fibers[current].done = true;
  swapcontext(&fibers[current].context, &scheduler);
}
static void launch(Kernel kernel, void** arguments, int blocks, int threads) {
  running = kernel, given = arguments;
  for (int block = 0; block < blocks; ++block) {
    fibers = std::vector<Fiber>(threads);
    at_barrier = at_warp = std::vector<int>(threads);
    posts = std::vector<Post>((threads + 31) / 32 * 32);
    blockIdx = {block, 0, 0};
    for (Fiber& fiber : fibers) {
      fiber.stack.resize(1 << 16);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      makecontext(&fiber.context, enter, 0);
    }
    for (bool left = true; left;) {
      left = false;
      for (current = 0; current < threads; ++current) {
        if (fibers[current].done) continue;
        left = true;
        threadIdx = {current, 0, 0};
        swapcontext(&scheduler, &fibers[current].context);
      }
    }
  }
}
