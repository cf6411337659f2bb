"""Device profiles: YAML files that say what a device has, and where each number comes from.

`schema` is their form, `load` reads one, `places` finds one by name, `resolve` makes a target of
it, `write` writes one.
"""
