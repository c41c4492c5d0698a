"""The help of `hogwild simulate`, which differs by what is trained."""

from __future__ import annotations

from hogwild.cli.flags import Page


def page(name: str, what: str, *examples: str) -> Page:
    """name: of the command; what: it trains; examples: their words after the command."""
    told = (
        f"Predict how the training of {what} without locks goes on machines with more cores: gradient errors, loss and "
        "speed-up. One real worker trains first, and its visits are timed; then one thread makes the visits of many "
        "virtual workers, with delayed, torn and lost updates, the same again for the same times and seed. No model is "
        "saved."
    )
    lines = "\n".join(f"  hogwild simulate {name} {words}" for words in examples)
    return Page(f"hogwild simulate {name}", f"{told}\n\nExamples:\n{lines}")
