"""What every method shares: methods, models, vectors, runs, reports, errors and storage."""
