"""Models as other engines run them: ONNX graphs built from the weights by name, equation by equation."""
