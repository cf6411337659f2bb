"""One file per family; a pattern is a reference function and, where natural, its ONNX twin.

A family file is imported when a workload of that family is first used.
"""
