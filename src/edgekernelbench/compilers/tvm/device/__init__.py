"""Kernels for devices with a driver of their own: their source, and a plan of launches.

The compiler's host code needs a run time that its wheel lacks for OpenCL. So the host side is read
and kept as data (`compilers.launch`); what runs it needs a driver and NumPy only.
"""
