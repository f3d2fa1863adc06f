// A libcuda.so.1 and a libcublas without a GPU, for testing a binding: the same
// symbols, virtual time on each stream in nanoseconds, data up to 1 MiB really
// moved. It is stricter than CUDA: a context that is not current, a handle that is
// dead, a wait for an event that was never recorded, memory that is not there or
// on another device, and what would cross the border of a capture are errors at the
// call.
//
//	cc -shared -fPIC -O1 -o libcuda.so.1 fakecuda.c
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int Result;
typedef uint64_t Ptr;
static double larger(double a, double b) { return a > b ? a : b; }
enum { OK = 0, INVALID_VALUE = 1, OOM = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
  NO_PEER = 217, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, PEER_ENABLED = 704, MISALIGNED = 716,
  CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALID = 901, CAPTURE_MERGE = 902, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907 };
enum { MAXDEV = 16, MAXBLOCK = 65536, MOVED = 1 << 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define LOCKED(code) do { pthread_mutex_lock(&mutex); Result r_ = (code); pthread_mutex_unlock(&mutex); return r_; } while (0)

static int initialized, devices = 2;
static uint64_t memory = 16ull << 30;
static const double bandwidth = 2e12, peer = 50e9, host = 25e9, vector = 20e12, launch_ns = 3000, copy_ns = 5000, node_ns = 1500;

typedef struct { uint32_t magic; int dev, refs; uint64_t used; uint32_t peers; } Ctx;
typedef struct Capture Capture;
typedef struct { uint32_t magic; Ctx *ctx; double at; Capture *cap; double replay; } Stream;
typedef struct { uint32_t magic; Ctx *ctx; double at; int recorded, timing; Capture *cap; double replay; int covered; } Event;
typedef struct { int kind; Stream *s; Event *e; double ns; uint64_t a[15]; } Op;
struct Capture { uint32_t magic; Stream *origin; Op *ops; int n, room, invalid, ended; };
typedef struct { uint32_t magic; Ctx *ctx; char *text; } Module;
typedef struct { uint32_t magic; Ctx *ctx; char name[32]; } Func;
typedef struct { Ctx *ctx; Ptr base; uint64_t size; int host; } Block;
enum { MCTX = 0xc07e, MSTREAM = 0x57ea, MEVENT = 0xe7e7, MCAP = 0xca97, MMOD = 0x30d0, MFUNC = 0xf0f0, MHANDLE = 0xb1a5 };
enum { RECORD, WAIT, COPY, FILL, RW, NOTHING, GEMM };

static Ctx ctxs[MAXDEV];
static Block blocks[MAXBLOCK];
static int nblocks;
static __thread Ctx *current;

#define LIVE(x, m) ((x) && (x)->magic == (m))
#define CTX if (!initialized) return NOT_INITIALIZED; if (!LIVE(current, MCTX) || !current->refs) return INVALID_CONTEXT

Result cuInit(unsigned flags) {
  if (flags) return INVALID_VALUE;
  if (getenv("FAKE_CUDA_DEVICES")) devices = atoi(getenv("FAKE_CUDA_DEVICES"));
  if (getenv("FAKE_CUDA_MEMORY")) memory = strtoull(getenv("FAKE_CUDA_MEMORY"), 0, 10);
  if (devices <= 0) return NO_DEVICE;
  for (int i = 0; i < devices; i++) { ctxs[i].magic = MCTX; ctxs[i].dev = i; }
  initialized = 1;
  return OK;
}
#define DEV(d) if (!initialized) return NOT_INITIALIZED; if ((d) < 0 || (d) >= devices) return INVALID_DEVICE
Result cuDriverGetVersion(int *v) { *v = 12040; return OK; }
Result cuDeviceGetCount(int *n) { if (!initialized) return NOT_INITIALIZED; *n = devices; return OK; }
Result cuDeviceGet(int *d, int i) { DEV(i); *d = i; return OK; }
Result cuDeviceGetName(char *b, int n, int d) { DEV(d); snprintf(b, n, "Fake GPU"); return OK; }
Result cuDeviceTotalMem_v2(size_t *n, int d) { DEV(d); *n = memory; return OK; }
Result cuDeviceGetAttribute(int *v, int a, int d) {
  DEV(d);
  switch (a) {
  case 13: *v = 1500000; break;
  case 16: *v = 100; break;
  case 36: *v = 2000000; break;
  case 37: *v = 4096; break;
  case 38: *v = 32 << 20; break;
  case 40: *v = 3; break;
  case 75: *v = 8; break;
  case 76: *v = 0; break;
  default: return INVALID_VALUE;
  }
  return OK;
}
Result cuDeviceCanAccessPeer(int *v, int a, int b) { DEV(a); DEV(b); *v = a != b; return OK; }
Result cuDeviceGetUuid(unsigned char *u, int d) { DEV(d); memset(u, 0, 16); u[15] = d; return OK; }
Result cuDeviceGetUuid_v2(unsigned char *u, int d) { return cuDeviceGetUuid(u, d); }
Result cuDeviceGetPCIBusId(char *b, int n, int d) { DEV(d); snprintf(b, n, "0000:%02X:00.0", d + 1); return OK; }
Result cuDevicePrimaryCtxRetain(Ctx **c, int d) { DEV(d); ctxs[d].refs++; *c = &ctxs[d]; return OK; }
static void forget(Ctx *c);
Result cuDevicePrimaryCtxRelease_v2(int d) { DEV(d); if (!ctxs[d].refs) return INVALID_CONTEXT; if (!--ctxs[d].refs) forget(&ctxs[d]); return OK; }
Result cuCtxSetCurrent(Ctx *c) { if (c && (!LIVE(c, MCTX) || !c->refs)) return INVALID_CONTEXT; current = c; return OK; }
Result cuCtxEnablePeerAccess(Ctx *c, unsigned f) {
  CTX;
  if (!LIVE(c, MCTX) || !c->refs || f) return INVALID_CONTEXT;
  if (c == current) return NO_PEER;
  if (current->peers & 1u << c->dev) return PEER_ENABLED;
  current->peers |= 1u << c->dev;
  return OK;
}

// memory

static Block *find(Ptr p, uint64_t n, int host) {
  for (int i = 0; i < nblocks; i++)
    if (blocks[i].size && blocks[i].host == host && p >= blocks[i].base && p - blocks[i].base + n <= blocks[i].size) return &blocks[i];
  return 0;
}
// reached: n bytes of device memory that kernels of context c may touch.
static Block *reached(Ctx *c, Ptr p, uint64_t n) {
  Block *b = find(p, n, 0);
  return b && (b->ctx == c || c->peers & 1u << b->ctx->dev) ? b : 0;
}
static Result alloc(Ptr *p, uint64_t n, int host) {
  CTX;
  if (!n) return INVALID_VALUE;
  uint64_t size = (n + 511) / 512 * 512;
  if (!host && (size < n || size > memory - current->used)) return OOM;
  int i = 0;
  while (i < nblocks && blocks[i].size) i++;
  if (i == MAXBLOCK) return OOM;
  void *m = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return OOM;
  if (i == nblocks) nblocks++;
  blocks[i] = (Block){current, (Ptr)m, size, host};
  if (!host) current->used += size;
  *p = (Ptr)m;
  return OK;
}
static Result release(Ptr p, int host) {
  for (int i = 0; i < nblocks; i++)
    if (blocks[i].size && blocks[i].base == p && blocks[i].host == host) {
      if (!host) blocks[i].ctx->used -= blocks[i].size;
      munmap((void *)p, blocks[i].size);
      blocks[i].size = 0;
      return OK;
    }
  return INVALID_VALUE;
}
// forget takes with the last reference to a context what was left in it.
static void forget(Ctx *c) {
  for (int i = 0; i < nblocks; i++)
    if (blocks[i].size && blocks[i].ctx == c) release(blocks[i].base, blocks[i].host);
  c->peers = 0;
}
Result cuMemAlloc_v2(Ptr *p, size_t n) { LOCKED(alloc(p, n, 0)); }
Result cuMemFree_v2(Ptr p) { CTX; LOCKED(release(p, 0)); }
Result cuMemHostAlloc(void **p, size_t n, unsigned flags) { LOCKED(alloc((Ptr *)p, n, 1)); }
Result cuMemFreeHost(void *p) { CTX; LOCKED(release((Ptr)p, 1)); }
Result cuMemGetInfo_v2(size_t *f, size_t *t) { CTX; *t = memory; *f = memory - current->used; return OK; }

// work

static double two(int n) { double x = 1; for (; n > 0; n--) x *= 2; for (; n < 0; n++) x /= 2; return x; }
// Numbers of cudaDataType_t 1 (double), 2 (half), 14 (bfloat16) and 28 (e4m3).
static double load(int type, Ptr p, uint64_t i) {
  if (type == 1) return ((double *)p)[i];
  int e = type == 2 ? 5 : type == 14 ? 8 : 4, f = type == 2 ? 10 : type == 14 ? 7 : 3;
  unsigned bits = type == 28 ? ((uint8_t *)p)[i] : ((uint16_t *)p)[i], x = bits >> f & (1 << e) - 1;
  double part = (double)(bits & (1 << f) - 1) / (1 << f), v = (x ? 1 + part : part) * two((x ? x : 1) - (1 << e - 1) + 1);
  return bits >> e + f ? -v : v;
}
static void store(int type, Ptr p, uint64_t i, double v) { // rounds up from the middle; nothing below normal numbers
  if (type == 1) { ((double *)p)[i] = v; return; }
  int e = type == 2 ? 5 : 8, f = type == 2 ? 10 : 7, x = (1 << e - 1) - 1;
  unsigned negative = v < 0;
  if (negative) v = -v;
  while (v >= 2) { v /= 2; x++; }
  while (v < 1 && x > 0) { v *= 2; x--; }
  ((uint16_t *)p)[i] = x > 0 ? (x << f) + (unsigned)((v - 1) * (1 << f) + 0.5) | negative << e + f : 0;
}
// gemm of other types is for plain products and those of cublasLt, [k,m] transposed.
static void gemm(uint64_t *a) {
  int batch = a[0], m = a[1], n = a[2], k = a[3], ta = a[7] & 1, tb = a[7] >> 1 & 1, add = a[7] >> 2, type = a[14];
  if (2.0 * batch * m * n * k > (type ? 1 << 18 : 1 << 22)) return;
  if (type) {
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        double sum = 0;
        for (int l = 0; l < k; l++) sum += load(type, a[4], ta ? i * a[8] + l : l * a[8] + i) * load(type, a[5], tb ? l * a[9] + j : j * a[9] + l);
        store(type == 28 ? 14 : type, a[6], j * a[10] + i, sum);
      }
    return;
  }
  for (int b = 0; b < batch; b++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        const float *A = (float *)a[4] + b * a[11], *B = (float *)a[5] + b * a[12];
        float *C = (float *)a[6] + b * a[13] + j * a[10] + i;
        double sum = add ? *C : 0; // columns: A is [m,k], B is [k,n]
        for (int l = 0; l < k; l++) sum += (double)A[ta ? i * a[8] + l : l * a[8] + i] * B[tb ? l * a[9] + j : j * a[9] + l];
        *C = sum;
      }
}
static uint32_t mix(uint32_t x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16; return x; }
static void act(Op *o) {
  uint64_t *a = o->a;
  switch (o->kind) {
  case COPY: if (a[2] <= MOVED) memmove((void *)a[0], (void *)a[1], a[2]); break;
  case FILL: if (a[1] <= MOVED / 4) for (uint64_t i = 0; i < a[1]; i++) ((uint32_t *)a[0])[i] = (mix((uint32_t)i + (uint32_t)a[2]) & (uint32_t)a[3]) | (uint32_t)a[4]; break;
  case RW: if (a[1] == a[3] && !a[4] && 16 * a[1] <= MOVED) memmove((void *)a[2], (void *)a[0], 16 * a[1]); break;
  case GEMM: gemm(a); break;
  }
}
static Result push(Stream *s, Op o) {
  if (!LIVE(s, MSTREAM)) return INVALID_HANDLE;
  o.s = s;
  if (s->cap) {
    Capture *c = s->cap;
    if (c->invalid) return CAPTURE_INVALID;
    if (c->n == c->room) { c->room = c->room ? 2 * c->room : 64; c->ops = realloc(c->ops, c->room * sizeof *c->ops); }
    c->ops[c->n++] = o;
    return OK;
  }
  s->at += o.ns;
  act(&o);
  return OK;
}
static Result copy(Ptr d, int dhost, Ptr s, int shost, uint64_t n, Stream *st, double ns) {
  if (!find(d, n, dhost) || !find(s, n, shost)) return ILLEGAL_ADDRESS;
  return push(st, (Op){.kind = COPY, .ns = ns, .a = {d, s, n}});
}
Result cuMemcpyDtoDAsync_v2(Ptr d, Ptr s, size_t n, Stream *st) { LOCKED(copy(d, 0, s, 0, n, st, launch_ns + 2 * n / bandwidth * 1e9)); }
Result cuMemcpyAsync(Ptr d, Ptr s, size_t n, Stream *st) { return cuMemcpyDtoDAsync_v2(d, s, n, st); }
Result cuMemcpyHtoDAsync_v2(Ptr d, void *s, size_t n, Stream *st) { LOCKED(copy(d, 0, (Ptr)s, 1, n, st, copy_ns + n / host * 1e9)); }
Result cuMemcpyDtoHAsync_v2(void *d, Ptr s, size_t n, Stream *st) { LOCKED(copy((Ptr)d, 1, s, 0, n, st, copy_ns + n / host * 1e9)); }
static Result peer_copy(Ptr d, Ctx *dc, Ptr s, Ctx *sc, size_t n, Stream *st) {
  Block *x = find(d, n, 0), *y = find(s, n, 0);
  if (!x || !y) return ILLEGAL_ADDRESS;
  if (x->ctx != dc || y->ctx != sc) return INVALID_VALUE;
  return copy(d, 0, s, 0, n, st, copy_ns + n / peer * 1e9);
}
Result cuMemcpyPeerAsync(Ptr d, Ctx *dc, Ptr s, Ctx *sc, size_t n, Stream *st) { LOCKED(peer_copy(d, dc, s, sc, n, st)); }

// streams and events

Result cuStreamCreateWithPriority(Stream **s, unsigned flags, int priority) {
  CTX;
  if (flags != 1) return INVALID_VALUE;
  *s = calloc(1, sizeof **s);
  (*s)->magic = MSTREAM; (*s)->ctx = current;
  return OK;
}
Result cuStreamCreate(Stream **s, unsigned flags) { return cuStreamCreateWithPriority(s, flags, 0); }
Result cuStreamDestroy_v2(Stream *s) { if (!LIVE(s, MSTREAM)) return INVALID_HANDLE; s->magic = 0; return OK; }
Result cuStreamSynchronize(Stream *s) { if (!LIVE(s, MSTREAM)) return INVALID_HANDLE; return s->cap ? CAPTURE_UNSUPPORTED : OK; }
Result cuEventCreate(Event **e, unsigned flags) {
  CTX;
  *e = calloc(1, sizeof **e);
  (*e)->magic = MEVENT; (*e)->ctx = current; (*e)->timing = !(flags & 2);
  return OK;
}
Result cuEventDestroy_v2(Event *e) { if (!LIVE(e, MEVENT)) return INVALID_HANDLE; e->magic = 0; return OK; }
static Result record(Event *e, Stream *s) {
  if (!LIVE(e, MEVENT) || !LIVE(s, MSTREAM) || e->ctx != s->ctx) return INVALID_HANDLE;
  e->recorded = 1; e->cap = s->cap;
  if (s->cap) return push(s, (Op){.kind = RECORD, .e = e});
  e->at = s->at;
  return OK;
}
Result cuEventRecord(Event *e, Stream *s) { LOCKED(record(e, s)); }
static Result waits(Stream *s, Event *e) {
  if (!LIVE(e, MEVENT) || !LIVE(s, MSTREAM) || !e->recorded) return INVALID_HANDLE;
  if (e->cap && e->cap->ended) return CAPTURED_EVENT;
  if (s->cap && s->cap != e->cap) { s->cap->invalid = 1; return e->cap ? CAPTURE_MERGE : CAPTURE_ISOLATION; }
  s->cap = e->cap;
  if (s->cap) return push(s, (Op){.kind = WAIT, .e = e});
  s->at = larger(s->at, e->at);
  return OK;
}
Result cuStreamWaitEvent(Stream *s, Event *e, unsigned flags) { LOCKED(waits(s, e)); }
Result cuEventSynchronize(Event *e) { return LIVE(e, MEVENT) && !e->cap ? OK : INVALID_HANDLE; }
Result cuEventElapsedTime(float *ms, Event *a, Event *b) {
  if (!LIVE(a, MEVENT) || !LIVE(b, MEVENT) || !a->recorded || !b->recorded || !a->timing || !b->timing || a->cap || b->cap) return INVALID_HANDLE;
  *ms = (b->at - a->at) / 1e6;
  return OK;
}

// graphs

Result cuStreamBeginCapture_v2(Stream *s, int mode) {
  if (!LIVE(s, MSTREAM)) return INVALID_HANDLE;
  if (s->cap) return CAPTURE_INVALID;
  s->cap = calloc(1, sizeof *s->cap);
  s->cap->magic = MCAP; s->cap->origin = s;
  return OK;
}
Result cuStreamEndCapture(Stream *s, Capture **g) {
  if (!LIVE(s, MSTREAM) || !s->cap || s->cap->origin != s) return CAPTURE_INVALID;
  Capture *c = s->cap;
  int unjoined = 0;
  for (int i = 0; i < c->n; i++) { c->ops[i].s->replay = c->ops[i].s == s; if (c->ops[i].e) c->ops[i].e->covered = 0; }
  for (int i = c->n - 1; i >= 0; i--) { // replay marks joined streams here
    Op *o = &c->ops[i];
    if (o->kind == WAIT && o->s->replay) o->e->covered = 1;
    else if (o->kind == RECORD && o->e->covered) o->s->replay = 1;
    else if (!o->s->replay) unjoined = 1;
  }
  for (int i = 0; i < c->n; i++) c->ops[i].s->cap = 0;
  s->cap = 0;
  c->ended = 1;
  *g = unjoined || c->invalid ? 0 : c;
  return c->invalid ? CAPTURE_INVALID : unjoined ? CAPTURE_UNJOINED : OK;
}
Result cuGraphInstantiateWithFlags(Capture **e, Capture *g, unsigned long long flags) {
  if (!LIVE(g, MCAP)) return INVALID_HANDLE;
  *e = calloc(1, sizeof **e);
  **e = *g;
  (*e)->ops = malloc((g->n + 1) * sizeof *g->ops);
  memcpy((*e)->ops, g->ops, g->n * sizeof *g->ops);
  return OK;
}
static Result replay(Capture *c, Stream *s) {
  if (!LIVE(c, MCAP) || !LIVE(s, MSTREAM)) return INVALID_HANDLE;
  double start = s->at + launch_ns, end = start;
  for (int i = 0; i < c->n; i++) c->ops[i].s->replay = start;
  for (int i = 0; i < c->n; i++) {
    Op *o = &c->ops[i];
    if (o->kind == RECORD) { o->e->replay = o->s->replay; o->e->at = o->e->replay; }
    else if (o->kind == WAIT) o->s->replay = larger(o->s->replay, o->e->replay);
    else { o->s->replay += larger(node_ns, o->ns - launch_ns + node_ns); act(o); }
    end = larger(end, o->s->replay);
  }
  s->at = end;
  return OK;
}
Result cuGraphLaunch(Capture *c, Stream *s) { LOCKED(replay(c, s)); }
Result cuGraphExecDestroy(Capture *c) { if (!LIVE(c, MCAP)) return INVALID_HANDLE; c->magic = 0; free(c->ops); return OK; }
Result cuGraphDestroy(Capture *c) { return cuGraphExecDestroy(c); }

// kernels

Result cuModuleLoadDataEx(Module **m, const char *image, unsigned n, int *options, void **values) {
  CTX;
  if (!strstr(image, "\n.version ") && strncmp(image, ".version ", 9)) {
    char *log = 0; size_t room = 0;
    for (unsigned i = 0; i < n; i++) { if (options[i] == 5) log = values[i]; if (options[i] == 6) room = (size_t)values[i]; }
    if (log && room) snprintf(log, room, "no .version directive");
    return INVALID_PTX;
  }
  *m = calloc(1, sizeof **m);
  (*m)->magic = MMOD; (*m)->ctx = current; (*m)->text = strdup(image);
  return OK;
}
Result cuModuleLoadData(Module **m, const char *image) { return cuModuleLoadDataEx(m, image, 0, 0, 0); }
Result cuModuleGetFunction(Func **f, Module *m, const char *name) {
  if (!LIVE(m, MMOD)) return INVALID_HANDLE;
  char entry[64];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  if (!strstr(m->text, entry)) return NOT_FOUND;
  *f = calloc(1, sizeof **f);
  (*f)->magic = MFUNC; (*f)->ctx = m->ctx; snprintf((*f)->name, sizeof (*f)->name, "%s", name);
  return OK;
}
static Result launch(Func *f, unsigned gx, unsigned bx, Stream *s, void **args) {
  if (!LIVE(f, MFUNC) || !LIVE(s, MSTREAM) || f->ctx != s->ctx) return INVALID_HANDLE;
  if (!gx || !bx || bx > 1024) return INVALID_VALUE;
  int n = !strcmp(f->name, "nop") ? 0 : !strcmp(f->name, "spin") ? 1 : 5;
  Op o = {.kind = NOTHING, .ns = launch_ns};
  for (int i = 0; i < n; i++) o.a[i] = *(uint64_t *)args[i];
  if (!strcmp(f->name, "spin")) o.ns += o.a[0];
  if (!strcmp(f->name, "fill")) {
    if (o.a[0] % 4) return MISALIGNED;
    if (!reached(s->ctx, o.a[0], 4 * o.a[1])) return ILLEGAL_ADDRESS;
    o.kind = FILL; o.ns += 4.0 * o.a[1] / bandwidth * 1e9;
  }
  if (!strcmp(f->name, "rw")) {
    if (o.a[0] % 16 || o.a[2] % 16) return MISALIGNED;
    if (!reached(s->ctx, o.a[0], 16 * o.a[1]) || !reached(s->ctx, o.a[2], 16 * o.a[3])) return ILLEGAL_ADDRESS;
    o.kind = RW; o.ns += larger(16.0 * (o.a[1] + o.a[3]) / bandwidth, 8.0 * o.a[4] * o.a[1] / vector) * 1e9;
  }
  return push(s, o);
}
Result cuLaunchKernel(Func *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, Stream *s, void **args, void **extra) {
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || sh || extra) return INVALID_VALUE;
  LOCKED(launch(f, gx, bx, s, args));
}
Result cuGetErrorName(Result r, const char **s) { *s = "fake"; return OK; }

// green contexts: parts of the device without limits

Result cuDeviceGetDevResource(int d, unsigned char *r, int type) { DEV(d); if (type != 1) return INVALID_VALUE; memset(r, 0, 144); *(int *)r = 1; *(unsigned *)(r + 96) = 100; return OK; }
Result cuDevSmResourceSplitByCount(unsigned char *out, unsigned *n, const unsigned char *in, unsigned char *rest, unsigned flags, unsigned min) {
  unsigned share = (min + 7) / 8 * 8, have = *(unsigned *)(in + 96); // as Hopper does, multiples of 8
  if (!min || !*n) return INVALID_VALUE;
  if (share * *n > have) *n = have / share;
  for (unsigned i = 0; i < *n; i++) { memcpy(out + 144 * i, in, 144); *(unsigned *)(out + 144 * i + 96) = share; }
  return OK;
}
Result cuDevResourceGenerateDesc(void **desc, unsigned char *r, unsigned n) { if (n != 1 || *(int *)r != 1) return INVALID_VALUE; *desc = r; return OK; }
typedef struct { Ctx *of; } Green;
static int greens;
Result cuGreenCtxCreate(Green **c, void *desc, int d, unsigned flags) {
  DEV(d);
  if (!desc || flags != 1) return INVALID_VALUE;
  if (greens == 64) return 2;
  greens++;
  *c = calloc(1, sizeof **c);
  (*c)->of = &ctxs[d];
  return OK;
}
Result cuGreenCtxDestroy(Green *c) {
  if (!c->of) return INVALID_CONTEXT;
  c->of = 0; // kept, so that its later use shows
  greens--;
  return OK;
}
// Pushing takes the place of what is current, one deep; a green context stands for
// its device's own.
static __thread Ctx *below;
Result cuCtxFromGreenCtx(Ctx **c, Green *g) { if (!g->of) return INVALID_CONTEXT; *c = g->of; return OK; }
Result cuCtxPushCurrent_v2(Ctx *c) { if (!LIVE(c, MCTX)) return INVALID_CONTEXT; below = current; current = c; return OK; }
Result cuCtxPopCurrent_v2(Ctx **c) { CTX; *c = current; current = below; below = 0; return OK; }
#ifndef CUDA_12_4
Result cuGreenCtxStreamCreate(Stream **s, Green *g, unsigned flags, int priority) {
  Ctx *c = g->of;
  if (!c || !LIVE(c, MCTX)) return INVALID_CONTEXT;
  if (flags != 1) return INVALID_VALUE;
  Ctx *was = current; current = c;
  Result r = cuStreamCreateWithPriority(s, flags, priority);
  current = was;
  return r;
}
#endif

// cuBLAS

typedef struct { uint32_t magic; Ctx *ctx; Stream *s; uint64_t workspace; int sms; } Handle;
int cublasCreate_v2(Handle **h) { if (!LIVE(current, MCTX)) return 1; *h = calloc(1, sizeof **h); (*h)->magic = MHANDLE; (*h)->ctx = current; return 0; }
int cublasDestroy_v2(Handle *h) { if (!LIVE(h, MHANDLE)) return 1; h->magic = 0; return 0; }
int cublasGetProperty(int what, int *v) { static const int version[] = {12, 4, 0}; if (what < 0 || what > 2) return 7; *v = version[what]; return 0; }
int cublasSetStream_v2(Handle *h, Stream *s) { if (!LIVE(h, MHANDLE) || !LIVE(s, MSTREAM)) return 1; h->s = s; h->workspace = 0; return 0; }
int cublasSetWorkspace_v2(Handle *h, void *p, size_t n) { if (!LIVE(h, MHANDLE)) return 1; if ((Ptr)p % 256 || !find((Ptr)p, n, 0)) return 7; h->workspace = n; return 0; }
int cublasSetSmCountTarget(Handle *h, int n) { if (!LIVE(h, MHANDLE)) return 1; if (n < 0 || n > 100) return 7; h->sms = n; return 0; }
static uint64_t span(int batch, uint64_t step, int columns, uint64_t ld, int rows) { return (batch - 1) * step + (columns - 1) * ld + rows; }
static int multiply(Handle *h, int batch, int ta, int tb, int m, int n, int k, const float *alpha, Ptr A, int At, int lda, long long sa, Ptr B, int Bt, int ldb, long long sb, const float *beta, Ptr C, int Ct, int ldc, long long sc, int compute) {
  static const int size[] = {4, 8, 2}, computes[] = {68, 70, 68};
  if (!LIVE(h, MHANDLE)) return 1;
  int t = At == 14 ? 2 : At;
  if (At != Bt || At != Ct || t < 0 || t > 2) return 15;
  if (!(compute == computes[t] || At == 0 && compute == 77)) return 15;
  if (ta < 0 || ta > 1 || tb < 0 || tb > 1) return 7;
  int add = At == 1 ? *(double *)beta == 1 : *beta == 1;
  if (At == 1 ? *(double *)alpha != 1 || *(double *)beta != add : *alpha != 1 || *beta != add) return 7;
  if (batch < 1 || m < 1 || n < 1 || k < 1 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || batch > 1 && (sa < 0 || sb < 0 || sc < 1)) return 7;
  uint64_t s = size[t], na = s * span(batch, sa, ta ? m : k, lda, ta ? k : m), nb = s * span(batch, sb, tb ? k : n, ldb, tb ? n : k), nc = s * span(batch, sc, n, ldc, m);
  if (!h->s || h->ctx != h->s->ctx) return 13;
  if (!reached(h->ctx, A, na) || !reached(h->ctx, B, nb) || !reached(h->ctx, C, nc)) return 7;
  if (h->s->cap && !h->workspace) return 14;
  double rate[] = {compute == 77 ? 150e12 : 20e12, 10e12, 300e12};
  double flops = 2.0 * batch * m * n * k;
  Op o = {.kind = At == 0 || batch == 1 && !add ? GEMM : NOTHING, .ns = launch_ns + larger(flops / rate[t], (na + nb + nc) / bandwidth) * 1e9, .a = {batch, m, n, k, A, B, C, ta | tb << 1 | add << 2, lda, ldb, ldc, sa, sb, sc, At}};
  return push(h->s, o) ? 13 : 0;
}
int cublasGemmEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, Ptr A, int At, int lda, Ptr B, int Bt, int ldb, const void *beta, Ptr C, int Ct, int ldc, int compute, int algo) {
  if (algo != -1) return 7;
  return multiply(h, 1, ta, tb, m, n, k, alpha, A, At, lda, 0, B, Bt, ldb, 0, beta, C, Ct, ldc, 0, compute);
}
int cublasGemmStridedBatchedEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, Ptr A, int At, int lda, long long sa, Ptr B, int Bt, int ldb, long long sb,
  const void *beta, Ptr C, int Ct, int ldc, long long sc, int batch, int compute, int algo) {
  if (algo != -1) return 7;
  return multiply(h, batch, ta, tb, m, n, k, alpha, A, At, lda, sa, B, Bt, ldb, sb, beta, C, Ct, ldc, sc, compute);
}

// cublasLt: the one product that it is for, e4m3 by e4m3 into bfloat16, under the
// rules of its manual

typedef struct { uint32_t magic; Ctx *ctx; } LtHandle;
typedef struct { uint32_t magic; int compute, scale, ta, tb, sms; } Desc;
typedef struct { uint32_t magic; int type; uint64_t rows, columns; int64_t ld; } Matrix;
typedef struct { uint32_t magic; uint64_t workspace; } Pref;
typedef struct { uint64_t words[8]; size_t workspace; int state; float waves; int reserved[4]; } Found;
enum { MLT = 0x17a0, MDESC = 0xde5c, MMATRIX = 0x3a78, MPREF = 0x98ef };
int cublasLtCreate(LtHandle **h) { if (!LIVE(current, MCTX)) return 1; *h = calloc(1, sizeof **h); **h = (LtHandle){MLT, current}; return 0; }
int cublasLtDestroy(LtHandle *h) { if (!LIVE(h, MLT)) return 1; h->magic = 0; return 0; }
int cublasLtMatmulDescCreate(Desc **d, int compute, int scale) { *d = calloc(1, sizeof **d); **d = (Desc){MDESC, compute, scale}; return 0; }
int cublasLtMatmulDescDestroy(Desc *d) { if (!LIVE(d, MDESC)) return 7; d->magic = 0; return 0; }
int cublasLtMatmulDescSetAttribute(Desc *d, int what, const int *v, size_t n) {
  if (!LIVE(d, MDESC) || n != 4 || what != 3 && what != 4 && what != 15) return 7;
  *(what == 3 ? &d->ta : what == 4 ? &d->tb : &d->sms) = *v;
  return 0;
}
int cublasLtMatrixLayoutCreate(Matrix **m, int type, uint64_t rows, uint64_t columns, int64_t ld) { *m = calloc(1, sizeof **m); **m = (Matrix){MMATRIX, type, rows, columns, ld}; return 0; }
int cublasLtMatrixLayoutDestroy(Matrix *m) { if (!LIVE(m, MMATRIX)) return 7; m->magic = 0; return 0; }
int cublasLtMatmulPreferenceCreate(Pref **p) { *p = calloc(1, sizeof **p); (*p)->magic = MPREF; return 0; }
int cublasLtMatmulPreferenceDestroy(Pref *p) { if (!LIVE(p, MPREF)) return 7; p->magic = 0; return 0; }
int cublasLtMatmulPreferenceSetAttribute(Pref *p, int what, const uint64_t *v, size_t n) { if (!LIVE(p, MPREF) || what != 1 || n != 8) return 7; p->workspace = *v; return 0; }
// rules: 7 where sizes contradict each other, 15 where there is no such kernel.
static int rules(Desc *d, Matrix *a, Matrix *b, Matrix *c, Matrix *r) {
  if (!LIVE(d, MDESC) || !LIVE(a, MMATRIX) || !LIVE(b, MMATRIX) || !LIVE(c, MMATRIX) || !LIVE(r, MMATRIX)) return 7;
  if (d->ta != 1 || d->tb != 0 || d->compute != 68 || d->scale != 0 || a->type != 28 || b->type != 28 || c->type != 14 || r->type != 14) return 15;
  if (a->rows != b->rows || a->columns != r->rows || b->columns != r->columns || a->ld < a->rows || b->ld < b->rows || r->ld < r->rows || c->rows != r->rows || c->columns != r->columns || c->ld != r->ld) return 7;
  return a->ld % 16 || b->ld % 16 || r->ld % 8 || a->rows % 16 ? 15 : 0;
}
int cublasLtMatmulAlgoGetHeuristic(LtHandle *h, Desc *d, Matrix *a, Matrix *b, Matrix *c, Matrix *r, Pref *p, int wanted, Found *found, int *n) {
  if (!LIVE(h, MLT) || !LIVE(p, MPREF)) return 1;
  if (wanted != 1) return 7;
  int bad = rules(d, a, b, c, r);
  *n = !bad;
  if (bad) return bad;
  *found = (Found){{MLT, r->rows, r->columns, a->rows, p->workspace}, p->workspace / 2};
  return 0;
}
int cublasLtMatmul(LtHandle *h, Desc *d, const float *alpha, Ptr A, Matrix *a, Ptr B, Matrix *b, const float *beta, Ptr C, Matrix *c, Ptr R, Matrix *r, const uint64_t *algorithm, Ptr space, size_t room, Stream *s) {
  if (!LIVE(h, MLT)) return 1;
  int bad = rules(d, a, b, c, r);
  if (bad) return bad;
  if (*alpha != 1 || *beta != 0 || A % 16 || B % 16 || R % 16) return 7;
  if (algorithm[0] != MLT || algorithm[1] != r->rows || algorithm[2] != r->columns || algorithm[3] != a->rows || algorithm[4] / 2 > room) return 7;
  if (room && (space % 16 || !find(space, room, 0))) return 7;
  if (!LIVE(s, MSTREAM) || s->ctx != h->ctx) return 13;
  if (!reached(h->ctx, A, a->ld * a->columns) || !reached(h->ctx, B, b->ld * b->columns) || !reached(h->ctx, R, 2 * r->ld * r->columns)) return 7;
  Op o = {.kind = GEMM, .ns = launch_ns + 2.0 * r->rows * r->columns * a->rows / 600e12 * 1e9, .a = {1, r->rows, r->columns, a->rows, A, B, R, 1, a->ld, b->ld, r->ld, 0, 0, 0, 28}};
  return push(s, o) ? 13 : 0;
}
