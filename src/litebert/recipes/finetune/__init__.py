"""Fine-tuning: a labelled source in, a trained, scored and saved model out."""
