"""Distillation: a teacher, a student and texts in, a smaller model out."""
