"""Layers, optimizers and number formats of Keras, three steps by a captured step beside plain TensorFlow."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from beside import agree, saved

from placer_tensorflow.runtime import tf

K = tf.keras
L = K.layers
RNG = np.random.RandomState(0)
WORDS, TIMES, VIDEO, PICTURES, ROWS = RNG.randint(0, 50, (4, 8)).astype("i"), RNG.randn(4, 6, 8).astype("f"), RNG.randn(2, 4, 8, 8, 3).astype("f"), RNG.randn(4, 16, 16, 3).astype("f"), RNG.randn(8, 16).astype("f")


def entropy() -> Any:
    return K.losses.SparseCategoricalCrossentropy(from_logits=True)


def chain(x: np.ndarray, layers: Callable[[], list[Any]], optimizer: Callable[[], Any] = lambda: K.optimizers.Adam(0.01)) -> Callable[[], Any]:
    """A model of layers and a head of five classes."""

    def build() -> Any:
        model = K.Sequential([K.Input(x.shape[1:], dtype=x.dtype), *layers(), L.Dense(5, dtype="float32")])
        return model, entropy(), (x, np.arange(len(x)).astype("i") % 5), optimizer()

    return build


LAYERS: dict[str, Callable[[], Any]] = {
    "lstm": chain(TIMES, lambda: [L.LSTM(16)]),
    "lstm unrolled": chain(TIMES, lambda: [L.LSTM(16, unroll=True)]),
    "gru": chain(TIMES, lambda: [L.GRU(8, return_sequences=True), L.GRU(8)]),
    "bidirectional": chain(TIMES, lambda: [L.Bidirectional(L.LSTM(8, return_sequences=True)), L.Bidirectional(L.GRU(8))]),
    "masked": chain(WORDS, lambda: [L.Embedding(50, 8, mask_zero=True), L.LSTM(8)]),
    "convlstm": chain(VIDEO, lambda: [L.ConvLSTM2D(4, 3), L.Flatten()]),
    "conv3d": chain(VIDEO, lambda: [L.Conv3D(4, 3, padding="same", activation="relu"), L.MaxPooling3D(2), L.GlobalAveragePooling3D()]),
    "conv1d": chain(TIMES, lambda: [L.Conv1D(8, 3, padding="causal", activation="gelu"), L.SeparableConv1D(8, 3), L.GlobalMaxPooling1D()]),
    "transposed": chain(PICTURES, lambda: [L.Conv2D(8, 3, strides=2, padding="same"), L.Conv2DTranspose(4, 3, strides=2, padding="same"), L.UpSampling2D(2, interpolation="bilinear"), L.AveragePooling2D(4), L.Flatten()]),
    "groups": chain(PICTURES, lambda: [L.Conv2D(12, 3, groups=3), L.GroupNormalization(3), L.PReLU(), L.DepthwiseConv2D(3, depth_multiplier=2), L.GlobalAveragePooling2D()]),
    "dilated": chain(PICTURES, lambda: [L.Conv2D(12, 3, dilation_rate=2, padding="same", activation="swish"), L.LayerNormalization(), L.ZeroPadding2D(2), L.Cropping2D(1), L.SpatialDropout2D(0.3), L.GlobalAveragePooling2D()]),
    "dropout": chain(ROWS, lambda: [L.Dense(32, "relu"), L.Dropout(0.5), L.GaussianNoise(0.1)]),
    "batch norm": chain(ROWS, lambda: [L.Dense(32, use_bias=False), L.BatchNormalization(), L.Activation("selu")]),
    "regularized": chain(ROWS, lambda: [L.Dense(32, "relu", kernel_regularizer=K.regularizers.L2(0.01), activity_regularizer=K.regularizers.L1(0.01))]),
    "constrained": chain(ROWS, lambda: [L.Dense(32, "relu", kernel_constraint=K.constraints.MaxNorm(0.5)), L.SpectralNormalization(L.Dense(16))]),
    "augmented": chain(PICTURES, lambda: [L.RandomFlip(), L.RandomRotation(0.1), L.Rescaling(1 / 255.0), L.Resizing(8, 8), L.Flatten()]),
}

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: K.optimizers.SGD(0.1, 0.9, nesterov=True),
    "clip": lambda: K.optimizers.AdamW(0.01, weight_decay=0.1, global_clipnorm=0.5),
    "average": lambda: K.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=2),
    "cosine": lambda: K.optimizers.Adam(K.optimizers.schedules.CosineDecay(0.1, 10, warmup_target=0.2, warmup_steps=2)),
    "piecewise": lambda: K.optimizers.SGD(K.optimizers.schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2, 0.3])),
    "rmsprop": lambda: K.optimizers.RMSprop(0.01, momentum=0.5, centered=True),
    "adagrad": lambda: K.optimizers.Adagrad(0.1),
    "adadelta": lambda: K.optimizers.Adadelta(1.0),
    "adamax": lambda: K.optimizers.Adamax(0.01),
    "nadam": lambda: K.optimizers.Nadam(0.01),
    "ftrl": lambda: K.optimizers.Ftrl(0.1),
    "lion": lambda: K.optimizers.Lion(0.001),
    "adafactor": lambda: K.optimizers.Adafactor(0.01),
    "lamb": lambda: K.optimizers.Lamb(0.01),
    "muon": lambda: K.optimizers.Muon(0.01),
    "accumulating": lambda: K.optimizers.Adam(0.01, gradient_accumulation_steps=2),
    "loss scale": lambda: K.optimizers.LossScaleOptimizer(K.optimizers.Adam(0.01)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, tmp_path: Any) -> None:
    agree(LAYERS[name], name, tmp_path)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str, tmp_path: Any) -> None:
    s = agree(chain(WORDS, lambda: [L.Embedding(50, 8), L.GlobalAveragePooling1D(), L.Dense(16, "relu")], OPTIMIZERS[name]), name, tmp_path)
    assert s.updates


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy: str, tmp_path: Any) -> None:
    before = K.config.dtype_policy()
    try:
        K.config.set_dtype_policy(policy)
        s = agree(chain(PICTURES, lambda: [L.Conv2D(8, 3, use_bias=False), L.BatchNormalization(), L.ReLU(), L.Flatten(), L.Dense(16, "relu")]), policy, tmp_path, rounding=0.03)
    finally:
        K.config.set_dtype_policy(before)
    half = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}[policy].as_datatype_enum
    assert any(n.op == "Conv2D" and n.attr["T"].type == half for n in s.nodes)


def test_several_outputs(tmp_path: Any) -> None:
    def build() -> Any:
        x = K.Input((16,))
        h = L.Dense(32, "relu")(x)
        model = K.Model(x, {"class": L.Dense(5)(h), "value": L.Dense(1)(h)})
        square = K.losses.MeanSquaredError()
        return model, lambda y, o: entropy()(y["class"], o["class"]) + 0.3 * square(y["value"], o["value"]), (ROWS, {"class": np.arange(8).astype("i") % 5, "value": ROWS[:, :1]}), K.optimizers.Adam(0.01)

    agree(build, "several", tmp_path)


@pytest.mark.parametrize("name", ["lstm", "transposed", "batch norm", "masked"])
def test_saved(name: str, tmp_path: Any) -> None:
    """A SavedModel of two signatures has the model once, with its products for the batch stated."""
    saved(LAYERS[name], str(tmp_path))
