"""Options, defined once: one dataclass field = one flag = one TOML key = one line of help."""

from hogwild.config import wording as wording
from hogwild.config.classifying import ClassConfig
from hogwild.config.cluster import ClusterConfig
from hogwild.config.datasets import ClicksConfig, MadeRatingsConfig, SparseConfig
from hogwild.config.experiments import AsynGradBiLSTMConfig, AsynGradConfig
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
    TaggerModel,
    TagScheme,
)
from hogwild.config.models import (
    BiLSTMConfig,
    CRFConfig,
    Doc2VecConfig,
    FMConfig,
    LinearConfig,
    RecommenderConfig,
    SmallConfig,
    SparseMLPConfig,
    TextConfig,
    Word2VecConfig,
)
from hogwild.config.places import cache_home
from hogwild.config.reading import MISSING, CorpusConfig, DocumentConfig, FeedConfig, RatingConfig, TaggingConfig
from hogwild.config.training import (
    DocumentTrainConfig,
    RecommenderTrainConfig,
    SaveConfig,
    ShowConfig,
    TaggerTrainConfig,
    TrainConfig,
    WatchConfig,
    WordTrainConfig,
)

__all__ = [
    "MISSING", "AsynGradBiLSTMConfig", "AsynGradConfig", "BiLSTMConfig", "CRFConfig", "ClassConfig", "ClicksConfig",
    "ClusterConfig", "Column", "Columns", "CorpusConfig", "Directory", "Doc2VecConfig", "DocumentConfig",
    "DocumentTrainConfig",
    "FMConfig", "FeedConfig", "File", "Files", "Format", "LinearConfig", "MadeRatingsConfig", "Mode", "Optimizer",
    "RatingConfig", "RecommenderConfig", "RecommenderTrainConfig", "SaveConfig", "ScheduleName", "Sharing",
    "ShowConfig", "SmallConfig", "SparseConfig", "SparseMLPConfig", "TagScheme", "TaggerModel", "TaggerTrainConfig",
    "TaggingConfig", "TextConfig", "TrainConfig", "WatchConfig", "Word2VecConfig", "WordTrainConfig", "cache_home",
]  # fmt: skip
