"""TensorFlow, imported with the settings that the package needs, and its types' names.

Kernels are TensorFlow's own: oneDNN's choose their algorithm by what else runs, so that a
step's bits could depend on it.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1

__all__ = ["tf", "v1"]
