"""Runs the stages that `placer export --to onnx` cuts a model into: a session a stage, each on a core of its own, pipelined (docs/onnxruntime.md)."""
