// Compiles kernels.cu for the host: one thread after another, in an order drawn
// from a seed, and the threads of a block as fibers where they exchange values.
// Compiled with -fsanitize=thread, the compiler calls the functions __tsan_*
// below at every access to memory: they find two threads of one launch that meet
// at an address, and accesses outside the memory that is allocated.
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define BARE __attribute__((no_sanitize_thread))
typedef unsigned long long Word;

struct Index { unsigned x; };
static struct { Index block, thread, blockSize, gridSize; } position;
#define blockIdx position.block
#define threadIdx position.thread
#define blockDim position.blockSize
#define gridDim position.gridSize
#define __global__
#define __device__

BARE static inline float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
BARE static inline double __longlong_as_double(long long x) { double f; memcpy(&f, &x, 8); return f; }

// Faults end a launch; emulate returns the first.
enum { FINE, RACE, OUTSIDE, LANES, FULL };
static int fault;
static Word faultAt;
BARE static void found(int f, Word where) {
  if (!fault) fault = f, faultAt = where;
}

// Marsaglia's xorshift.
static Word chance;
BARE static Word draw(Word n) {
  chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
  return chance % n;
}
BARE static void shuffle(unsigned *x, unsigned n) {
  for (unsigned i = 0; i < n; i++) x[i] = i;
  if (!chance) return;
  for (unsigned i = n; i > 1; i--) {
    unsigned j = (unsigned)draw(i), t = x[i - 1];
    x[i - 1] = x[j], x[j] = t;
  }
}

// What a launch has done to a word of memory: who wrote it, and who read it.
// Nobody is 0, many are ~0.
struct Seen { Word word, writer, reader; unsigned launch; };
enum { SEEN = 1 << 20 };
static Seen *seen;
static unsigned launch;
static const Word *spans; // first address and number of bytes, ascending
static Word spanCount;
static bool watching;

BARE static bool inside(Word p, unsigned n) {
  Word lo = 0, hi = spanCount;
  while (lo < hi) {
    Word m = (lo + hi) / 2;
    if (spans[2 * m] <= p) lo = m + 1;
    else hi = m;
  }
  return lo > 0 && p + n <= spans[2 * lo - 2] + spans[2 * lo - 1];
}
BARE static void touch(const void *address, unsigned bytes, bool write) {
  Word p = (Word)address, here = (Word)__builtin_frame_address(0);
  if (!watching || (p >= (Word)&position && p < (Word)(&position + 1)) || p - (here - (1 << 16)) < 2 << 16) return; // the place of the thread, its stack
  if (!inside(p, bytes)) return found(OUTSIDE, p);
  Word me = 1 + (Word)blockIdx.x * blockDim.x + threadIdx.x;
  for (Word w = p / 4; w <= (p + bytes - 1) / 4; w++) {
    unsigned tries = 0;
    Word i = w * 0x9e3779b97f4a7c15ull >> 44;
    while (seen[i].launch == launch && seen[i].word != w) {
      i = (i + 1) % SEEN;
      if (++tries == SEEN) return found(FULL, p);
    }
    Seen *s = &seen[i];
    if (s->launch != launch) *s = Seen{w, 0, 0, launch};
    if (s->writer && s->writer != me || write && s->reader && s->reader != me) found(RACE, p);
    if (write) s->writer = me;
    else s->reader = !s->reader || s->reader == me ? me : ~0ull;
  }
}
// The names are labels: compilers know the functions, each with types of its own.
#define HOOK(name, parameters) BARE void hook_##name parameters __asm__("__tsan_" #name); BARE void hook_##name parameters
HOOK(init, ()) {}
HOOK(func_entry, (void *)) {}
HOOK(func_exit, ()) {}
HOOK(read_range, (void *p, size_t n)) { touch(p, n, false); }
HOOK(write_range, (void *p, size_t n)) { touch(p, n, true); }
#define HOOKS(n)                                              \
  HOOK(read##n, (void *p)) { touch(p, n, false); }            \
  HOOK(write##n, (void *p)) { touch(p, n, true); }            \
  HOOK(unaligned_read##n, (void *p)) { touch(p, n, false); }  \
  HOOK(unaligned_write##n, (void *p)) { touch(p, n, true); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)

enum { STACK = 32 << 10, THREADS_AT_MOST = 1024 };
static jmp_buf main_jump, jumps[THREADS_AT_MOST];
static double slots[2][THREADS_AT_MOST];
static bool started[THREADS_AT_MOST], done[THREADS_AT_MOST];
static unsigned exchanges[THREADS_AT_MOST];
static char *stacks;
static ucontext_t contexts[THREADS_AT_MOST];
typedef void (*Kernel)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
static Kernel kernel;
static Word *words;

BARE static void call() {
  Word *a = words;
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16]);
}

// yield lets other threads of the block go on.
BARE static void yield() {
  unsigned me = threadIdx.x;
  if (!_setjmp(jumps[me])) _longjmp(main_jump, 1);
  threadIdx.x = me;
}

// A lane waits until all of its warp have come as often as it has. Until then none
// can come twice more, so two slots are enough.
template <class T> BARE static T __shfl_xor_sync(unsigned all, T x, int k) {
  unsigned me = threadIdx.x, first = me & ~31u, count = ++exchanges[me];
  slots[count & 1][me] = x;
  for (unsigned lane = first; lane < first + 32; lane++) {
    while (lane < blockDim.x && exchanges[lane] < count && !done[lane] && !fault) yield();
    if (all != 0xffffffffu || lane >= blockDim.x || exchanges[lane] < count) found(LANES, me); // it has left, or never was
  }
  return (T)slots[count & 1][me ^ k];
}

#include "../kernels.cu"
#include "faults.cu"

BARE static void fiber() {
  call();
  done[threadIdx.x] = true;
  _longjmp(main_jump, 1);
}

BARE static void resume(volatile unsigned t) {
  threadIdx.x = t;
  if (_setjmp(main_jump)) return;
  if (started[t]) _longjmp(jumps[t], 1);
  started[t] = true;
  getcontext(&contexts[t]);
  contexts[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
  contexts[t].uc_stack.ss_size = STACK;
  makecontext(&contexts[t], fiber, 0);
  setcontext(&contexts[t]);
}

// fibers runs the threads of a block by turns; with a seed, threads draw whether
// they take part in a turn, and in which order.
BARE static void fibers() {
  static unsigned order[THREADS_AT_MOST];
  memset(started, 0, sizeof started);
  memset(done, 0, sizeof done);
  memset(exchanges, 0, sizeof exchanges);
  for (unsigned left = blockDim.x; left > 0 && !fault;) {
    shuffle(order, blockDim.x);
    for (unsigned i = 0; i < blockDim.x && !fault; i++) {
      unsigned t = order[i];
      if (done[t] || (chance && draw(4) == 0)) continue;
      resume(t);
      left -= done[t];
    }
  }
}

// emulate runs a launch in the order of seed, 0 being that of the numbers, and
// returns its fault. It watches the accesses if spans is not null.
extern "C" BARE int emulate(Kernel f, Word *args, Word grid, Word block, Word exchange, Word seed, const Word *known, Word count) {
  static unsigned order[THREADS_AT_MOST];
  kernel = f, words = args, chance = seed, fault = FINE;
  spans = known, spanCount = count, launch++;
  gridDim.x = grid, blockDim.x = block;
  if (!stacks) stacks = (char *)malloc((size_t)THREADS_AT_MOST * STACK);
  if (known && !seen) seen = (Seen *)calloc(SEEN, sizeof(Seen));
  unsigned *blocks = (unsigned *)malloc(grid * sizeof(unsigned));
  shuffle(blocks, grid);
  watching = known != 0;
  for (unsigned b = 0; b < grid && !fault; b++) {
    blockIdx.x = blocks[b];
    if (exchange) { fibers(); continue; }
    shuffle(order, block);
    for (unsigned t = 0; t < block && !fault; t++) { threadIdx.x = order[t]; call(); }
  }
  watching = false;
  free(blocks);
  return fault;
}
extern "C" BARE Word fault_address() { return faultAt; }
