// Compiles kernels.cu for the host: one thread after another, and the threads of
// a block as fibers where they exchange values.
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim, gridDim;
#define __global__
#define __device__

static inline float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static inline double __longlong_as_double(long long x) { double f; memcpy(&f, &x, 8); return f; }

enum { STACK = 32 << 10 };
static jmp_buf main_jump, jumps[1024];
static double slots[1024];
static bool done[1024];
static unsigned exchanges[1024];
static char *stacks;
static ucontext_t main_context, contexts[1024];
typedef unsigned long long Word;
typedef void (*Kernel)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
static Kernel kernel;
static Word *words;

static void call() {
  Word *a = words;
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16]);
}

// yield lets every other thread of the block get as far.
static void yield() {
  unsigned me = threadIdx.x;
  if (!_setjmp(jumps[me])) _longjmp(main_jump, 1);
  threadIdx.x = me;
}
template <class T> static T __shfl_xor_sync(unsigned all, T x, int k) {
  unsigned me = threadIdx.x;
  slots[me] = x;
  exchanges[me]++;
  yield();
  unsigned other = me ^ k;
  if (all != 0xffffffffu || exchanges[other] != exchanges[me]) abort(); // a lane of the warp is elsewhere
  T y = (T)slots[other];
  yield();
  return y;
}

#include "../kernels.cu"

static void fiber() {
  call();
  done[threadIdx.x] = true;
  _longjmp(main_jump, 1);
}

static void fibers() {
  volatile bool running = true;
  memset(done, 0, sizeof done);
  memset(exchanges, 0, sizeof exchanges);
  for (volatile unsigned round = 0; running; round++) {
    running = false;
    for (volatile unsigned t = 0; t < blockDim.x; t++) {
      if (done[t]) continue;
      threadIdx.x = t;
      if (!_setjmp(main_jump)) {
        if (round) _longjmp(jumps[t], 1);
        getcontext(&contexts[t]);
        contexts[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
        contexts[t].uc_stack.ss_size = STACK;
        makecontext(&contexts[t], fiber, 0);
        setcontext(&contexts[t]);
      }
      if (!done[t]) running = true;
    }
  }
}

extern "C" void emulate(Kernel f, Word *args, Word grid, Word block, Word exchange) {
  kernel = f, words = args;
  gridDim.x = grid, blockDim.x = block;
  if (!stacks) stacks = (char *)malloc((size_t)1024 * STACK);
  for (unsigned b = 0; b < grid; b++) {
    blockIdx.x = b;
    if (exchange) fibers();
    else for (unsigned t = 0; t < block; t++) { threadIdx.x = t; call(); }
  }
}
