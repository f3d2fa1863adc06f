"""Transformers of keras-hub and of Keras's own layers, three steps by a captured step beside plain TensorFlow."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from beside import agree, saved

from placer_tensorflow.runtime import tf

hub = pytest.importorskip("keras_hub")

K = tf.keras
L = K.layers
SIZE = dict(vocabulary_size=50, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
GROUPED = dict(vocabulary_size=50, num_layers=2, num_query_heads=2, num_key_value_heads=1, hidden_dim=16, intermediate_dim=32)
ONE, PAIR = ["token_ids", "padding_mask"], ["token_ids", "segment_ids", "padding_mask"]
TWO = ["encoder_token_ids", "encoder_padding_mask", "decoder_token_ids", "decoder_padding_mask"]

# Arguments, inputs and the output that the loss reads, by name.
MODELS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "Bert": (dict(SIZE, max_sequence_length=8), PAIR, "sequence_output"),
    "Electra": (dict(vocab_size=50, num_layers=2, num_heads=2, hidden_dim=16, embedding_dim=16, intermediate_dim=32, max_sequence_length=8), PAIR, "sequence_output"),
    "FNet": (dict(vocabulary_size=50, num_layers=2, hidden_dim=16, intermediate_dim=32, max_sequence_length=8), PAIR[:2], "sequence_output"),
    "Roberta": (dict(SIZE, max_sequence_length=8), ONE, ""),
    "DebertaV3": (dict(SIZE, max_sequence_length=8, bucket_size=4), ONE, ""),
    "GPT2": (dict(SIZE, max_sequence_length=8), ONE, ""),
    "OPT": (dict(SIZE, max_sequence_length=8), ONE, ""),
    "Llama": (GROUPED, ONE, ""),
    "Gemma": (dict(GROUPED, head_dim=8), ONE, ""),
    "Mixtral": (dict(GROUPED, num_experts=4), ONE, ""),
    "T5": (SIZE, TWO, "decoder_sequence_output"),
    "Bart": (dict(SIZE, max_sequence_length=8), TWO, "decoder_sequence_output"),
    "Whisper": (dict(SIZE, num_mels=8, max_encoder_sequence_length=16, max_decoder_sequence_length=8), ["encoder_features", *TWO[2:]], "decoder_sequence_output"),
    "ViT": (dict(image_shape=(32, 32, 3), patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32), [], ""),
}


def given(rng: np.random.RandomState, name: str) -> np.ndarray:
    """An input of two samples of eight tokens."""
    if "features" in name:
        return rng.randn(2, 16, 8).astype("f")
    return (np.ones((2, 8)) if "mask" in name else np.zeros((2, 8)) if "segment" in name else rng.randint(0, 50, (2, 8))).astype("i")


def backbone(name: str) -> Callable[[], Any]:
    arguments, inputs, output = MODELS[name]

    def build() -> Any:
        rng = np.random.RandomState(0)
        made = getattr(hub.models, name + "Backbone")(**arguments)
        x: Any = {k: given(rng, k) for k in inputs} if inputs else rng.randn(2, 32, 32, 3).astype("f")
        out = made(x)
        y = rng.randn(*(out[output] if output else out).shape).astype("f")
        square = K.losses.MeanSquaredError()
        return made, lambda y, o: square(y, o[output] if output else o), (x, y), K.optimizers.SGD(0.1)

    return build


def transformer(across: bool) -> Callable[[], Any]:
    """Of Keras's attention: a causal decoder, or an encoder and a decoder that reads it."""

    def build() -> Any:
        def block(h: Any, memory: Any = None) -> Any:
            q = L.LayerNormalization()(h)
            h = h + L.MultiHeadAttention(2, 8)(q, q, use_causal_mask=True)
            if memory is not None:
                h = h + L.MultiHeadAttention(2, 8)(L.LayerNormalization()(h), memory)
            return h + L.Dense(16)(L.Dense(32, "gelu")(L.LayerNormalization()(h)))

        tokens = np.random.RandomState(0).randint(0, 50, (4, 8)).astype("i")
        sides = [K.Input((8,), dtype="int32") for _ in range(1 + across)]
        h = None
        for side in sides:
            h = block(L.Embedding(50, 16)(side), h)
        return K.Model(sides, L.Dense(50)(h)), K.losses.SparseCategoricalCrossentropy(from_logits=True), ([tokens, tokens[::-1].copy()][: len(sides)], tokens), K.optimizers.SGD(0.1)

    return build


@pytest.mark.parametrize("name", MODELS)
def test_hub(name: str, tmp_path: Any) -> None:
    agree(backbone(name), name, tmp_path)


@pytest.mark.parametrize("across", [False, True])
def test_attention(across: bool, tmp_path: Any) -> None:
    agree(transformer(across), "transformer", tmp_path)


def test_saved(tmp_path: Any) -> None:
    saved(transformer(False), str(tmp_path))
