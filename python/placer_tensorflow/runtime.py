"""TensorFlow, imported with the settings that the package needs, and its types' names.

Kernels are TensorFlow's own: oneDNN's choose their algorithm by what else runs, so that a
step's bits could depend on it. Buffers come from the C library, which by its own rules may
give memory back to the system behind each large one: the next one's page faults then take
as long as the kernel, and both devices wait for one lock. So it keeps what it has.
"""

from __future__ import annotations

import ctypes
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# the first session of a process makes the pool that divides kernels, for all that follow
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
tf.config.threading.set_intra_op_parallelism_threads(1)

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of malloc.h


def _keep_memory() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # glibc
        mallopt(_MMAP_THRESHOLD, 32 << 20)
        mallopt(_TRIM_THRESHOLD, 1 << 30)
        mallopt(_TOP_PAD, 16 << 20)


_keep_memory()

__all__ = ["tf", "v1"]
