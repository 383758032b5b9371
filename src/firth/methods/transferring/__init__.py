"""Models that were trained before learn a task."""
