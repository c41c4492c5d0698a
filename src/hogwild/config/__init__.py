"""Options, defined once: one dataclass field = one flag = one TOML key = one line of help."""

from hogwild.config.classifying import ClassifierConfig, CtrConfig
from hogwild.config.datasets import ClicksConfig, SparseConfig
from hogwild.config.experiments import AsynGradConfig
from hogwild.config.fm import FMConfig
from hogwild.config.kinds import (
    Column,
    Columns,
    Directory,
    File,
    Files,
    Format,
    Mode,
    Optimizer,
    ScheduleName,
    Sharing,
)
from hogwild.config.mlp import SparseMLPConfig
from hogwild.config.models import LinearConfig, TextConfig, Word2VecConfig
from hogwild.config.output import SaveConfig, ShowConfig, WatchConfig
from hogwild.config.places import cache_home
from hogwild.config.reading import CorpusConfig, FeedConfig
from hogwild.config.recommending import MadeRatingsConfig, RatingConfig, RecommenderConfig, RecommenderTrainConfig
from hogwild.config.tagging import CRFConfig, TaggerTrainConfig, TaggingConfig
from hogwild.config.training import TrainConfig, WordTrainConfig

__all__ = [
    "AsynGradConfig", "CRFConfig", "ClassifierConfig", "ClicksConfig", "Column", "Columns", "CorpusConfig",
    "CtrConfig", "Directory", "FMConfig", "FeedConfig", "File", "Files", "Format", "LinearConfig",
    "MadeRatingsConfig", "Mode", "Optimizer", "RatingConfig", "RecommenderConfig", "RecommenderTrainConfig",
    "SaveConfig", "ScheduleName", "Sharing", "ShowConfig", "SparseConfig", "SparseMLPConfig", "TaggerTrainConfig",
    "TaggingConfig", "TextConfig", "TrainConfig", "WatchConfig", "Word2VecConfig", "WordTrainConfig", "cache_home",
]  # fmt: skip
