// Kernels with the faults that the emulation has to find.

// fault_race: all threads add to one number.
KERNEL fault_race(u64 x, u64 n) { EACH(i, n) F(x)[0] += 1; }

// fault_order: a thread reads what its neighbour writes.
KERNEL fault_order(u64 x, u64 n) { EACH(i, n - 1) F(x)[i] = F(x)[i + 1]; }

// fault_outside: a thread reads behind the end.
KERNEL fault_outside(u64 x, u64 n) { EACH(i, n) F(x)[i] = F(x)[i] + (i == n - 1 ? F(x)[i + 1] : 0); }

// fault_lanes: lanes without a number are not there when the others sum.
KERNEL fault_lanes(u64 x, u64 n) { EACH(i, n) F(x)[i] = warp_sum(F(x)[i]); }
