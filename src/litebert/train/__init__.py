"""One training loop for fine-tuning, pretraining and distillation, and what it stands on."""
