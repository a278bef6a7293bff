"""OpenVINO: the plain ONNX graph in its own format."""
