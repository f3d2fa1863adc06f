// Package einsum owns the equations of Einstein's sums, "bhsd,bhtd->bhst", as ONNX,
// TensorFlow, NumPy and PyTorch write them: the shape of the result, and the matrix
// product that a sum of two operands amounts to.
package einsum
