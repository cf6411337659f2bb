"""Schedule and memory layers: name resolution, checks, and what each line decides."""
