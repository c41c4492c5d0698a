"""`hogwild experiment`: trainings of one kind that are compared, as the papers do it.

`frame.py` is what all have in common: runs that are listed, made, kept and gone on with. `comparing.py` is what they
come to. Each experiment has a module of its own; that of word vectors on several nodes is in `hogwild.cluster`.
"""
