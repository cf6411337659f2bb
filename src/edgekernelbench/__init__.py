"""EdgeKernelBench: judge and improve compute kernels for edge devices."""
