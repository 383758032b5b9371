"""What the families share: training loops, optimizers, devices, baselines, SVD."""
