"""Work in shards: one job description, run in this process, in several processes, on Ray, or as a job array."""
