"""Models of keras.applications, three steps by a captured step beside plain TensorFlow."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from beside import agree, saved

from placer_tensorflow.runtime import tf

K = tf.keras
# Edge of the pictures by name: the least that the model takes, or 32.
EDGE = {
    "MobileNet": 32, "MobileNetV2": 32, "MobileNetV3Small": 32, "MobileNetV3Large": 32, "EfficientNetB0": 32, "EfficientNetV2B0": 32, "ConvNeXtTiny": 32,
    "DenseNet121": 32, "NASNetMobile": 32, "Xception": 71, "ResNet50": 32, "ResNet50V2": 32, "InceptionV3": 75, "InceptionResNetV2": 75, "VGG16": 32,
}  # fmt: skip


def model(name: str) -> Callable[[], Any]:
    def build() -> Any:
        rng = np.random.RandomState(0)
        edge = EDGE[name]
        made = getattr(K.applications, name)(weights=None, input_shape=(edge, edge, 3), classes=10, classifier_activation=None)
        return made, K.losses.SparseCategoricalCrossentropy(from_logits=True), (rng.randn(2, edge, edge, 3).astype("f"), rng.randint(0, 10, 2).astype("i")), K.optimizers.SGD(0.01)

    return build


@pytest.mark.parametrize("name", EDGE)
def test_applications(name: str, tmp_path: Any) -> None:
    agree(model(name), name, tmp_path)


@pytest.mark.parametrize("name", ["MobileNetV2", "VGG16"])
def test_saved(name: str, tmp_path: Any) -> None:
    saved(model(name), str(tmp_path))
