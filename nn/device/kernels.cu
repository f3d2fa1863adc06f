// The kernels of the policy network. Every parameter is a 64-bit word: a pointer,
// a count, the bits of a float in the low half, or the bits of a double.
// kernels.ptx is made from this file; see hw/gpu/kernel/gen.
//
// No kernel has shared memory or atomic operations: each result has one writer,
// which adds in a fixed order, so that equal inputs give equal bits. Sums over
// rows take two launches, of partial sums and of their sum.
typedef unsigned long long u64;
typedef unsigned int u32;

#define KERNEL extern "C" __global__ void
#define FIRST ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((u64)gridDim.x * blockDim.x)
#define EACH(i, n) for (u64 i = FIRST; i < (n); i += THREADS)
// A warp for each row; lane is the thread's place in it.
#define EACH_ROW(r, n) for (u64 r = FIRST >> 5; r < (n); r += THREADS >> 5)
#define LANE (threadIdx.x & 31)
#define F(x) ((float *)(x))
#define I(x) ((int *)(x))
#define D(x) ((double *)(x))

__device__ static inline float single(u64 x) { return __uint_as_float((u32)x); }
__device__ static inline double real(u64 x) { return __longlong_as_double((long long)x); }

__device__ static inline float warp_sum(float x) {
  for (int k = 16; k > 0; k >>= 1) x += __shfl_xor_sync(0xffffffffu, x, k);
  return x;
}
__device__ static inline float warp_max(float x) {
  for (int k = 16; k > 0; k >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, k));
  return x;
}
__device__ static inline void put(float *p, float x, u64 add) { *p = add ? *p + x : x; }

KERNEL zero(u64 x, u64 n) { EACH(i, n) F(x)[i] = 0; }

// bias_act: y [n/d,d] = f(y + b); act 1 is relu, 2 is sigmoid.
KERNEL bias_act(u64 y, u64 b, u64 n, u64 d, u64 act) {
  EACH(i, n) {
    float v = F(y)[i] + F(b)[(u32)i % (u32)d];
    if (act == 1) v = fmaxf(v, 0);
    if (act == 2) v = 1 / (1 + expf(-v));
    F(y)[i] = v;
  }
}

// act_back: dst = g f'(y), y being f's result.
KERNEL act_back(u64 dst, u64 y, u64 g, u64 n, u64 act) {
  EACH(i, n) {
    float v = F(y)[i], x = F(g)[i];
    F(dst)[i] = act == 1 ? (v > 0 ? x : 0) : x * v * (1 - v);
  }
}

// gather_max: out [n,d] is the maximum over the rows of z that a node's list names,
// from the row it came from, the first of equals; 0 and -1 for an empty list.
KERNEL gather_max(u64 z, u64 start, u64 index, u64 out, u64 from, u64 n, u64 d) {
  EACH(i, n * d) {
    u32 v = (u32)i / (u32)d, c = (u32)i % (u32)d;
    float best = 0;
    int who = -1;
    for (int k = I(start)[v]; k < I(start)[v + 1]; k++) {
      int u = I(index)[k];
      float x = F(z)[(u64)u * d + c];
      if (who < 0 || x > best) { best = x; who = u; }
    }
    F(out)[i] = best;
    I(from)[i] = who;
  }
}

// gather_back: dz [n,d], through the sigmoid whose results out holds. readers
// lists, for each node, the nodes whose lists name it, each once.
KERNEL gather_back(u64 dz, u64 out, u64 grad, u64 from, u64 start, u64 readers, u64 n, u64 d) {
  EACH(i, n * d) {
    u32 u = (u32)i / (u32)d, c = (u32)i % (u32)d;
    float sum = 0;
    for (int k = I(start)[u]; k < I(start)[u + 1]; k++) {
      u64 at = (u64)I(readers)[k] * d + c;
      float m = F(out)[at];
      if (I(from)[at] == (int)u) sum += F(grad)[at] * m * (1 - m);
    }
    F(dz)[i] = sum;
  }
}

// layer_norm: out = gain (x - mean) / deviation + bias, x = a + b or a if b is 0.
KERNEL layer_norm(u64 a, u64 b, u64 gain, u64 bias, u64 out, u64 mean, u64 scale, u64 n, u64 d) {
  EACH_ROW(r, n) {
    u64 o = r * d;
    float s = 0, q = 0;
    for (u64 c = LANE; c < d; c += 32) s += b ? F(a)[o + c] + F(b)[o + c] : F(a)[o + c];
    s = warp_sum(s) / (float)d;
    for (u64 c = LANE; c < d; c += 32) {
      float x = (b ? F(a)[o + c] + F(b)[o + c] : F(a)[o + c]) - s;
      q += x * x;
    }
    q = 1 / sqrtf(warp_sum(q) / (float)d + 1e-5f);
    for (u64 c = LANE; c < d; c += 32) {
      float x = b ? F(a)[o + c] + F(b)[o + c] : F(a)[o + c];
      F(out)[o + c] = (x - s) * q * F(gain)[c] + F(bias)[c];
    }
    if (LANE == 0) { F(mean)[r] = s; F(scale)[r] = q; }
  }
}

// layer_norm_back: with h the normalised row and t = g gain, dx = scale (t - mean(t) - h
// mean(t h)), into da and db (0: not wanted); gh = g h for the gain's gradient.
KERNEL layer_norm_back(u64 a, u64 b, u64 gain, u64 mean, u64 scale, u64 g, u64 da, u64 addA, u64 db, u64 addB, u64 gh, u64 n, u64 d) {
  EACH_ROW(r, n) {
    u64 o = r * d;
    float s = F(mean)[r], q = F(scale)[r], m1 = 0, m2 = 0;
    for (u64 c = LANE; c < d; c += 32) {
      float h = ((b ? F(a)[o + c] + F(b)[o + c] : F(a)[o + c]) - s) * q, t = F(g)[o + c] * F(gain)[c];
      F(gh)[o + c] = F(g)[o + c] * h;
      m1 += t;
      m2 += t * h;
    }
    m1 = warp_sum(m1) / (float)d;
    m2 = warp_sum(m2) / (float)d;
    for (u64 c = LANE; c < d; c += 32) {
      float h = ((b ? F(a)[o + c] + F(b)[o + c] : F(a)[o + c]) - s) * q, t = F(g)[o + c] * F(gain)[c];
      float x = (t - m1 - h * m2) * q;
      if (da) put(F(da) + o + c, x, addA);
      if (db) put(F(db) + o + c, x, addB);
    }
  }
}

// colsum: block k sums rows k chunk and on of x [rows,d] into row k of out, times
// scale.
KERNEL colsum(u64 x, u64 out, u64 rows, u64 d, u64 chunk, u64 scale, u64 add) {
  u64 lo = blockIdx.x * chunk, hi = lo + chunk < rows ? lo + chunk : rows;
  for (u64 c = threadIdx.x; c < d; c += blockDim.x) {
    float s = 0;
    for (u64 r = lo; r < hi; r++) s += F(x)[r * d + c];
    put(F(out) + blockIdx.x * d + c, s * single(scale), add);
  }
}

// dsum is colsum of doubles.
KERNEL dsum(u64 x, u64 out, u64 rows, u64 d, u64 chunk) {
  u64 lo = blockIdx.x * chunk, hi = lo + chunk < rows ? lo + chunk : rows;
  for (u64 c = threadIdx.x; c < d; c += blockDim.x) {
    double s = 0;
    for (u64 r = lo; r < hi; r++) s += D(x)[r * d + c];
    D(out)[blockIdx.x * d + c] = s;
  }
}

// Matrices of na elements meet stacked copies of themselves, n elements.
KERNEL mul_rep(u64 dst, u64 a, u64 b, u64 n, u64 na, u64 add) {
  EACH(i, n) put(F(dst) + i, F(a)[(u32)i % (u32)na] * F(b)[i], add);
}
KERNEL mul_sum(u64 dst, u64 g, u64 b, u64 na, u64 n, u64 add) {
  EACH(i, na) {
    float s = 0;
    for (u64 o = i; o < n; o += na) s += F(g)[o] * F(b)[o];
    put(F(dst) + i, s, add);
  }
}
KERNEL add_rep(u64 dst, u64 x, u64 a, u64 n, u64 na) {
  EACH(i, n) F(dst)[i] = F(x)[i] + F(a)[(u32)i % (u32)na];
}
KERNEL sum_rep(u64 dst, u64 src, u64 na, u64 n, u64 add) {
  EACH(i, na) {
    float s = 0;
    for (u64 o = i; o < n; o += na) s += F(src)[o];
    put(F(dst) + i, s, add);
  }
}

// embed: out = h repeated + table[index]; index -1 adds nothing. n and nh count
// elements.
KERNEL embed(u64 h, u64 table, u64 index, u64 out, u64 n, u64 nh, u64 d) {
  EACH(i, n) {
    int k = I(index)[(u32)i / (u32)d];
    float x = F(h)[(u32)i % (u32)nh];
    F(out)[i] = k < 0 ? x : x + F(table)[(u64)k * d + (u32)i % (u32)d];
  }
}
// embed_back: block k sums rows k chunk and on by index into out [a,d] number k.
KERNEL embed_back(u64 grad, u64 index, u64 out, u64 rows, u64 d, u64 chunk, u64 a) {
  u64 lo = blockIdx.x * chunk, hi = lo + chunk < rows ? lo + chunk : rows;
  for (u64 c = threadIdx.x; c < d; c += blockDim.x) {
    float *o = F(out) + (u64)blockIdx.x * a * d + c;
    for (u64 k = 0; k < a; k++) o[k * d] = 0;
    for (u64 r = lo; r < hi; r++) {
      int k = I(index)[r];
      if (k >= 0) o[k * d] += F(grad)[r * d + c];
    }
  }
}

// masked: dst = src, or value where allowed [na], read again and again, is 0. The
// assembler ends in a segmentation fault, for sm_70 to sm_89, at a kernel named
// mask behind a shuffle.
KERNEL masked(u64 dst, u64 src, u64 allowed, u64 n, u64 na, u64 value, u64 add) {
  EACH(i, n) put(F(dst) + i, na && !I(allowed)[(u32)i % (u32)na] ? single(value) : F(src)[i], add);
}

// The rows of p are those of consecutive segments of n rows from row lo on:
// [segment][head][n][m]. lse [rows,heads] is kept for the backward pass.
KERNEL softmax(u64 p, u64 lse, u64 total, u64 m, u64 n, u64 heads, u64 lo, u64 scale) {
  float k = single(scale);
  EACH_ROW(t, total) {
    float *x = F(p) + t * m, top = -3.4e38f, sum = 0;
    for (u64 c = LANE; c < m; c += 32) top = fmaxf(top, x[c] * k);
    top = warp_max(top);
    for (u64 c = LANE; c < m; c += 32) {
      float e = expf(x[c] * k - top);
      x[c] = e;
      sum += e;
    }
    sum = warp_sum(sum);
    for (u64 c = LANE; c < m; c += 32) x[c] *= 1 / sum;
    u64 s = t / (heads * n), h = t / n % heads, r = t % n;
    if (LANE == 0) F(lse)[(lo + s * n + r) * heads + h] = top + logf(sum);
  }
}
KERNEL softmax_again(u64 p, u64 lse, u64 total, u64 m, u64 n, u64 heads, u64 lo, u64 scale) {
  float k = single(scale);
  EACH_ROW(t, total) {
    u64 s = t / (heads * n), h = t / n % heads, r = t % n;
    float *x = F(p) + t * m, l = F(lse)[(lo + s * n + r) * heads + h];
    for (u64 c = LANE; c < m; c += 32) x[c] = expf(x[c] * k - l);
  }
}
// softmax_back: dp = p (dp - out.grad) scale, the product over the e columns of the
// row's head in out and grad [rows,heads e].
KERNEL softmax_back(u64 dp, u64 p, u64 grad, u64 out, u64 total, u64 m, u64 n, u64 heads, u64 e, u64 lo, u64 scale) {
  float k = single(scale);
  EACH_ROW(t, total) {
    u64 s = t / (heads * n), h = t / n % heads, r = t % n, o = (lo + s * n + r) * heads * e + h * e;
    float sum = 0;
    for (u64 c = LANE; c < e; c += 32) sum += F(grad)[o + c] * F(out)[o + c];
    sum = warp_sum(sum);
    for (u64 c = LANE; c < m; c += 32) F(dp)[t * m + c] = F(p)[t * m + c] * (F(dp)[t * m + c] - sum) * k;
  }
}
// add_memory adds mem [n,2 all] to the keys and values in d [n,3 all].
KERNEL add_memory(u64 d, u64 mem, u64 n, u64 all) {
  EACH(i, n * 2 * all) {
    u32 r = (u32)i / (u32)(2 * all), c = (u32)i % (u32)(2 * all);
    F(d)[(u64)r * 3 * all + all + c] += F(mem)[i];
  }
}

// columns copies w columns of n rows; rows lie ldd and lds apart.
KERNEL columns(u64 dst, u64 ldd, u64 src, u64 lds, u64 n, u64 w, u64 add) {
  EACH(i, n * w) {
    u32 r = (u32)i / (u32)w, c = (u32)i % (u32)w;
    put(F(dst) + r * ldd + c, F(src)[r * lds + c], add);
  }
}

// spread: every row of dst [n/d,d] is the row g times scale.
KERNEL spread(u64 dst, u64 g, u64 n, u64 d, u64 scale, u64 add) {
  EACH(i, n) put(F(dst) + i, F(g)[(u32)i % (u32)d] * single(scale), add);
}

// ppo: gradient dx and sums of stats [rows,5] (clipped objective, entropy, log
// ratios, ratio-1-log, clipped) of one task's logits x [rows,a]. Row r is choice
// at + r mod n of every sample if shared, of sample r / n otherwise. actions and
// logProb are [samples,all], advantage [samples,per] with per 1 or all.
KERNEL ppo(u64 x, u64 dx, u64 actions, u64 logProb, u64 advantage, u64 stats, u64 rows, u64 a, u64 samples, u64 n, u64 at, u64 all, u64 per, u64 shared, u64 eps, u64 f, u64 fe) {
  EACH(r, rows) {
    const float *row = F(x) + r * a;
    float *g = F(dx) + r * a;
    double top = row[0], sum = 0, entropy = 0, total = 0, loss = 0, kl1 = 0, kl3 = 0, clip = 0;
    for (u64 i = 1; i < a; i++) top = fmax(top, (double)row[i]);
    for (u64 i = 0; i < a; i++) sum += exp(row[i] - top);
    double lz = top + log(sum);
    for (u64 i = 0; i < a; i++) {
      double q = exp(row[i] - lz);
      if (q > 0) entropy -= q * (row[i] - lz);
    }
    for (u64 i = 0; i < a; i++) {
      double q = exp(row[i] - lz);
      g[i] = q > 0 ? (float)(real(fe) * q * (row[i] - lz + entropy)) : 0;
    }
    for (u64 j = shared ? 0 : r / n; j < (shared ? samples : r / n + 1); j++) {
      u64 v = j * all + at + r % n;
      int act = I(actions)[v];
      double l = row[act] - lz - F(logProb)[v], adv = F(advantage)[per == 1 ? j : v];
      double ratio = exp(l), objective = ratio * adv, slope = objective;
      double clipped = fmin(fmax(ratio, 1 - real(eps)), 1 + real(eps));
      if (clipped * adv < objective) { objective = clipped * adv; slope = 0; }
      loss += objective;
      kl1 -= l;
      kl3 += ratio - 1 - l;
      clip += clipped != ratio;
      g[act] -= (float)(real(f) * slope);
      total += real(f) * slope;
    }
    for (u64 i = 0; i < a; i++) g[i] += (float)(total * exp(row[i] - lz));
    double *s = D(stats) + r * 5;
    s[0] = loss; s[1] = entropy; s[2] = kl1; s[3] = kl3; s[4] = clip;
  }
}

// squares: every warp sums the squares of its share of x into its place of out.
KERNEL squares(u64 x, u64 n, u64 out) {
  double s = 0;
  EACH(i, n) s += (double)F(x)[i] * F(x)[i];
  for (int k = 16; k > 0; k >>= 1) s += __shfl_xor_sync(0xffffffffu, s, k);
  if (LANE == 0) D(out)[FIRST >> 5] = s;
}

// adam takes a step along scale g (Kingma and Ba, algorithm 1, with the bias
// corrections in rate and epsilon) and clears g.
KERNEL adam(u64 w, u64 m, u64 v, u64 g, u64 n, u64 scale, u64 beta1, u64 beta2, u64 rate, u64 epsilon) {
  float b1 = single(beta1), b2 = single(beta2);
  EACH(i, n) {
    float x = F(g)[i] * single(scale);
    F(m)[i] = b1 * F(m)[i] + (1 - b1) * x;
    F(v)[i] = b2 * F(v)[i] + (1 - b2) * x * x;
    F(w)[i] -= single(rate) * F(m)[i] / (sqrtf(F(v)[i]) + single(epsilon));
    F(g)[i] = 0;
  }
}
