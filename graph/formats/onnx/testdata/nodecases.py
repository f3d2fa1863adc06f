#!/usr/bin/env python3
"""Writes nodecases.tar.gz: the operator tests of the onnx package (1.23.2,
Apache-2.0) as models of one or a few nodes, with the shapes that the reference
outputs have.

Every input but the first becomes an initializer, so that shapes that depend on
inputs can be inferred; the shapes of the outputs are removed from the models;
float data of more than 16 elements is removed as well. Cases with strings,
sequences or optionals are left out, and so are those whose output shapes depend
on the data.

    pip install onnx==1.23.2 numpy pillow
    python3 nodecases.py
"""
import gzip
import io
import tarfile
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")

ALL_CONSTANT = ("ConstantOfShape", "Range", "HannWindow", "HammingWindow", "BlackmanWindow", "Trilu", "Pad")
LEFT_OUT = ("compress", "unique", "nonzero", "nonmaxsuppression", "LinearAttention", "CausalConvWithState", "DFT", "STFT", "ImageDecoder", "Optional", "TfIdf", "FlexAttention",
            "TreeEnsemble", "MelWeightMatrix", "Binarizer", "ArrayFeatureExtractor", "Sequence", "String", "scan_sum")


def tensor(data, vi):
    if isinstance(data, onnx.TensorProto):
        t = onnx.TensorProto()
        t.CopyFrom(data)
        t.name = vi.name
        return t
    data = np.asarray(data)
    if data.dtype == object or data.dtype.kind in "USO":
        return None
    return onnx.numpy_helper.from_array(data, vi.name)


def convert(case):
    m = case.model
    g = m.graph
    ins, outs = case.data_sets[0]
    everything = g.node[0].op_type in ALL_CONSTANT or "range" in case.name or "window" in case.name
    inputs = list(g.input)
    del g.input[:]
    for k, (vi, d) in enumerate(zip(inputs, ins)):
        if not vi.type.HasField("tensor_type") or vi.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return None
        t = tensor(d, vi)
        if (k or everything) and t is not None and t.data_type == vi.type.tensor_type.elem_type:
            if t.data_type in (1, 10, 11, 16) and np.prod(t.dims) > 16:
                for field in ("raw_data", "float_data", "int32_data", "double_data"):
                    t.ClearField(field)
            g.initializer.append(t)
        else:
            g.input.append(vi)
    shapes = []
    for vi, d in zip(g.output, outs):
        if not vi.type.HasField("tensor_type"):
            return None
        vi.type.tensor_type.ClearField("shape")
        dims = d.dims if isinstance(d, onnx.TensorProto) else np.asarray(d).shape
        shapes.append("x".join(str(x) for x in dims))
    return m.SerializeToString(), ";".join(shapes)


def main():
    files = []
    index = []
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        text = case.name + " " + " ".join(n.op_type for n in case.model.graph.node)
        if any(w in text for w in LEFT_OUT):
            continue
        c = convert(case)
        if c is None:
            continue
        files.append((case.name + ".onnx", c[0]))
        index.append(case.name + "\t" + c[1])
    files.append(("index.tsv", ("\n".join(index) + "\n").encode()))
    with gzip.GzipFile("nodecases.tar.gz", "wb", 9, mtime=0) as gz, tarfile.open(fileobj=gz, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
