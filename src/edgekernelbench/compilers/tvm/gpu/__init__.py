"""Loop programs for GPUs in TIR, and from there to OpenCL or CUDA source."""
