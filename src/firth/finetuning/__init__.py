"""Fine-tuning of transformers, and linear models on vectors."""
