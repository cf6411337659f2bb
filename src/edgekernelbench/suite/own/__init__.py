"""Own tasks: what users add to the suite, kept outside of the package.

`manifest` says what is stored, `store` where; `code` loads it; `add` makes it, from ONNX models by
way of `graph`, from Python files by way of `python`.
"""
