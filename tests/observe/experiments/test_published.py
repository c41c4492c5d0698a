"""The numbers of the paper beside ours."""

from __future__ import annotations

from hogwild.observe.experiments.published import Here, of

CHUNKS = Here("train.txt", 8936, 2012, threads=10, cores=12)


def test_rows_of_the_tables():
    assert (of("crf", "pos", "sgd").score, of("crf", "pos", "sgd").seconds) == (0.9718, 466.08)
    assert of("crf", "segmentation", "asyngrad+sr").seconds == 6.59
    assert of("bilstm", "chunking", "asyngrad").speed_up == 3.76  # 1750.68 / 465.95
    assert of("bilstm", "pos", "asyngrad").error_rate == "over 0.9"
    assert of("crf", "noun-phrases", "asyngrad")[2:] == of("crf", "chunking", "asyngrad")[2:]


def test_what_the_paper_has_no_number_for():
    assert of("crf", "pos", "synchronous") is None
    assert of("bilstm", "pos", "asyngrad+sr") is None


def test_what_differs_stands_in_the_row():
    same = of("crf", "noun-phrases", "asyngrad").beside(CHUNKS)
    assert same["differs"].startswith("data: train.txt, 8,936 + 2,012 sentences (paper: CoNLL-2000")
    assert "cores" not in same["differs"]
    assert "threads" not in same["differs"]
    other = of("bilstm", "chunking", "asyngrad").beside(CHUNKS._replace(threads=2, cores=4, recurrence="full"))
    for told in ("chunks: of all types", "cores: 4 (paper: 12)", "threads: 2 (paper: 10)", "full matrices (paper: di"):
        assert told in other["differs"]
