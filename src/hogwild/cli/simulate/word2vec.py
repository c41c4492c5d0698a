"""`hogwild simulate word2vec`: how the training of word vectors goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.simulate.page import page
from hogwild.cli.train import word2vec
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = page(
    "word2vec", "word vectors",
    "wiki.txt.xz --workers 1,4,16,64,256 --epochs 3",
    "wiki.txt.xz --cbow --workers 2,4 --compare 1,2,4 --output simulation.json",
)  # fmt: skip


@dataclass(frozen=True)
class Options(word2vec.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(word2vec.WordVectorsJob)
