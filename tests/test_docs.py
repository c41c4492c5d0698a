"""The documentation tells the truth: its code runs, its links lead somewhere, its flags exist."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hogwild.cli.commands import COMMANDS
from hogwild.cli.flags import parse
from hogwild.cli.main import main
from hogwild.config.options import Option, choices_of, flags_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hogwild"
DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOREIGN = {"--logdir", "--epoch"}  # TensorBoard's; and one that is misspelt on purpose
SHELL_SIGNS = re.compile(r"[|><&$`]")
PROBLEM = ("make-dataset", "sparse", "--features", "500", "--nonzeros", "10", "--quiet")


class Block(NamedTuple):
    """A fenced block of code."""

    language: str
    text: str


def _blocks(path: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(*pair) for pair in found]


def _commands(text: str) -> Iterator[str]:
    """Lines of a shell block, without comments; a backslash at the end joins two."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"\s+#\s.*", "", line).strip()
        if line:
            yield line


LONG = (  # whose blocks start Ray or processes, or train for long
    "cluster.md", "crfsuite.md", "devices.md", "experiments.md", "feeds.md", "guide-bilstm.md", "guide-ctr.md",
    "guide-fm.md", "guide-linear.md", "guide-own.md", "guide-pytorch.md", "guide-recommender.md",
    "estimators.md", "from-fasttext.md", "from-gensim.md", "from-paddle.md", "from-pytorch.md",
    "from-scikit-learn.md", "from-tensorflow.md", "from-vowpal-wabbit.md", "guide-tagger.md",
    "guide-doc2vec.md", "guide-text-classifier.md", "guide-word2vec.md", "modes.md", "report.md", "simulation.md",
    "theory.md",
)  # fmt: skip


def _named(paths: list[Path]) -> Any:
    return [pytest.param(path, id=path.name, marks=[pytest.mark.full] * (path.name in LONG)) for path in paths]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with train.svm and test.svm, as the guides assume; no trace is left in the user's cache."""
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.chdir(tmp_path)
    assert main([*PROBLEM, "--rows", "2000", "--output", "train.svm"]) == 0
    assert main([*PROBLEM, "--rows", "500", "--part", "1", "--output", "test.svm"]) == 0
    return tmp_path


# -- code ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", _named([path for path in DOCS if _blocks(path)]))
def test_blocks_run_in_order(path: Path, workplace: Path) -> None:
    example = (ROOT / "examples" / "own_program.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": f"docs_{path.stem.replace('-', '_')}"}
    if path.name == "guide-own.md":
        exec(compile(example, "own_program.py", "exec"), names)
    for language, text in _blocks(path):
        if language == "python" and ("import gensim" in text or "from gensim" in text):
            pytest.importorskip("gensim", reason="gensim is not installed")
        if language == "python" and "import torch" in text:
            pytest.importorskip("torch", reason="PyTorch is not installed")
        if language == "python" and text not in example:  # excerpts have run already
            exec(compile(text, path.name, "exec"), names)
        elif language == "sh":
            for command in _commands(text):
                _run(command)
        elif language == "toml":
            Path("run.toml").write_text(text, encoding="utf-8")


def _run(command: str) -> None:
    command = re.sub(r"--rows (\d+)0\b", lambda rows: f"--rows {min(int(rows[1]) * 10, 2000)}", command)
    if command.startswith("hogwild ") and not SHELL_SIGNS.search(command):
        assert main(shlex.split(command)[1:]) == 0, command
        return
    here = f'python() {{ "{sys.executable}" "$@"; }}; hogwild() {{ python -m hogwild "$@"; }}'
    script = f"set -eo pipefail; {here}; {command}"
    subprocess.run(["bash", "-c", script], check=True, timeout=120)


def _shown_json(name: str) -> Any:
    (text,) = (block.text for block in _blocks(ROOT / "docs" / name) if block.language == "json")
    return json.loads(text.replace(", …", ""))


def test_json_objects_are_as_shown(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "classifier", "train.svm", "--lr", "0.2", "--threads", "2", "--trace", "--json"]) == 0
    real = json.loads(capsys.readouterr().out)
    shown = _shown_json("command-line.md")
    for part in ("throughput", "seconds", "metrics"):
        assert list(real[part]) == list(shown[part])
    assert list(real) == list(shown)
    worker, shown_worker = real["trace"]["epochs"][0]["workers"][0], _shown_json("tracing.md")
    assert list(worker) == list(shown_worker)
    assert list(worker["delay"]) == list(shown_worker["delay"])
    assert list(worker["wrong"]) == list(shown_worker["wrong"])


def test_the_guide_to_programs_shows_the_example_as_it_is() -> None:
    example = (ROOT / "examples" / "own_program.py").read_text(encoding="utf-8")
    excerpts = [block.text for block in _blocks(ROOT / "docs" / "guide-own.md") if block.text in example]
    assert len(excerpts) == 8
    assert sum("def rate_" in text for text in excerpts) == 2


def _modules_with_examples() -> list[Any]:
    one = re.compile(r">>> (?!.*doctest: \+SKIP)")
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if one.search(path.read_text(encoding="utf-8"))]
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in paths]
    compiling = ("hogwild.estimators.crf", "hogwild.estimators.mlp", "hogwild.estimators.text")
    return [pytest.param(name, marks=[pytest.mark.full] * (name in compiling)) for name in names]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_examples_in_docstrings(name: str) -> None:
    if name.startswith("hogwild.pytorch"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


EXAMPLES = ["AsyncExecutor", "HogwildClassifier", "HogwildRegressor", "Linear", "Vectors", "Watch", "feed_of", "train"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_public_names_have_an_example(name: str) -> None:
    hogwild = importlib.import_module("hogwild")
    assert ">>> " in getattr(hogwild, name).__doc__


def test_public_names_are_all_there_and_documented() -> None:
    hogwild = importlib.import_module("hogwild")
    for name in hogwild.__all__:
        assert name == "__version__" or getattr(hogwild, name).__doc__, name


# -- flags -----------------------------------------------------------------------------------------------------------


def _options(entry: Any, choice: str) -> list[Option]:
    return [option for option in flags_of(entry.load().Options, choice).values() if not option.positional]


def _known_flags() -> set[str]:
    pairs = [(entry, choice) for entry in COMMANDS for choice in choices_of(entry.load().Options)]
    return {"--help", "--version"} | {flag for pair in pairs for option in _options(*pair) for flag in option.flags}


def _ours(path: Path) -> str:
    """A document without what pages on other tools quote of them: `text` blocks, and the first column of tables."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith("# Coming from"):
        return text
    text = re.sub(r"^```text\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", _named(DOCS))
def test_flags_in_documents_exist(path: Path) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", _ours(path)))
    assert named - FOREIGN <= _known_flags()


TRAINING = [
    pytest.param(entry, choice, id=f"{entry.words[1]} {choice}".strip())
    for entry in COMMANDS if entry.words[0] == "train" for choice in choices_of(entry.load().Options)
]  # fmt: skip


@pytest.mark.parametrize(("entry", "choice"), TRAINING)
def test_help_shows_every_flag_of_training(entry: Any, choice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*entry.words, *(["--model", choice] if choice else []), "--help"]) == 0
    shown = set(re.findall(r"--[a-z][a-z0-9-]*", capsys.readouterr().out))
    assert {option.flag for option in _options(entry, choice)} <= shown


@pytest.mark.parametrize(("entry", "choice"), TRAINING)
def test_every_flag_of_training_is_documented(entry: Any, choice: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS)
    options = _options(entry, choice)
    missing = [option.flag for option in options if not re.search(rf"--(no-)?{option.flag[2:]}\b", text)]
    assert not missing


def _examples_in_help() -> list[Any]:
    found: list[Any] = []
    for entry in COMMANDS:
        lines = re.findall(r"^  .*?(hogwild .*)$", entry.load().PAGE.about, re.MULTILINE)
        if entry.words != ("completion",):  # those are for a shell
            found += [pytest.param(entry, line.partition(" > ")[0], id=line) for line in lines]
    return found


@pytest.mark.parametrize(("entry", "line"), _examples_in_help())
def test_examples_in_help_can_be_parsed(entry: Any, line: str) -> None:
    words = shlex.split(line)[1:]
    assert tuple(words[: len(entry.words)]) == entry.words
    parse(entry.load().Options, entry.load().PAGE, words[len(entry.words) :])


# -- links and names -------------------------------------------------------------------------------------------------


def _slugs(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", _named(DOCS))
def test_local_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in _slugs(target), link


def test_source_files_in_the_order_of_reading_exist() -> None:
    names = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "source.md").read_text(encoding="utf-8"))
    assert len(names) > 30
    for name in names:
        assert (ROOT / name).exists() or (SOURCE / name).exists(), name


def _named_files(path: Path) -> set[str]:
    """Source files that a text names; those in commands of shared data or of a user's own are not ours."""
    return set(re.findall(r"(?<![\w./-])((?:\w+/)*\w+\.py)\b", path.read_text(encoding="utf-8")))


def test_source_files_that_the_source_and_the_documents_name_exist() -> None:
    folders = [SOURCE, *(ROOT / name for name in ("tests", "benchmarks", "examples"))]
    known = {path.name for folder in folders for path in folder.rglob("*.py")}
    for path in [*SOURCE.rglob("*.py"), *DOCS]:
        for name in _named_files(path) - {"setup.py", "my_program.py"}:
            there = [(folder / name).exists() for folder in (ROOT, SOURCE, *SOURCE.iterdir(), ROOT / "tests")]
            assert path.name == "CHANGELOG.md" or any(there) or ("/" not in name and name in known), (path, name)


# -- races ------------------------------------------------------------------------------------------------------------


def _races() -> dict[str, set[str]]:
    """The files in which each kind of race stands."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for kind in re.findall(r"RACE\(([^)]*)\)", path.read_text(encoding="utf-8")):
            found.setdefault(kind, set()).add(path.relative_to(SOURCE).as_posix())
    return found


def test_every_kind_of_race_is_explained_with_its_files() -> None:
    text = (ROOT / "docs" / "races.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## RACE\(([^)]*)\)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(_races())
    for kind, files in _races().items():
        assert set(re.findall(r"`((?:kernels|pytorch)/[\w/]+\.py)`", sections[kind])) == files, kind


def test_races_are_where_weights_are_changed_and_point_to_the_document() -> None:
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "RACE(" in line:
                assert path.relative_to(SOURCE).parts[0] in ("kernels", "pytorch"), path
                assert "docs/races.md" in line, line
