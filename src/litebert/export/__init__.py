"""Export: a trained model as a file that other programs run, compared with torch before it counts."""
