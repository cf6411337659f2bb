"""Whole models: cut into tasks, each made fast, the winners put back together as one kernel.

`cut` finds the groups of a model's nodes, `parts` makes tasks of them, `work` measures them and
lets an agent loose on those that matter, `join` writes the one kernel, `whole` judges it.
"""
