"""ONNX: graphs written node by node from the weights and the plan, each stored weight once."""
