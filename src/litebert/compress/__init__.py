"""Smaller and faster models: distillation, folding, quantization, pruning, exits."""
