"""`hogwild train module`, and what its models are good for."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from hogwild.cli.main import main  # noqa: E402
from hogwild.errors import ModelError  # noqa: E402
from hogwild.programs.store import load_model  # noqa: E402
from places import ROOT  # noqa: E402
from pytorch import models  # noqa: E402

PROGRAM = "pytorch.models:make_program"
MADE = ("make-dataset", "sparse", "--features", "200", "--nonzeros", "8", "--quiet")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """train.tsv and test.tsv: made rows, with the labels 0 and 1."""
    place = tmp_path_factory.mktemp("rows")
    for part, name in enumerate(("train", "test")):
        file = place / f"{name}.svm"
        assert main([*MADE, "--rows", "400", "--part", str(part), "--output", str(file)]) == 0
        text = file.read_text().replace("\n-1 ", "\n0 ")
        file.write_text("0 " + text[3:] if text.startswith("-1 ") else text)
    return place


@pytest.fixture(scope="module")
def model(rows, tmp_path_factory):
    """A model of two epochs, with the JSON object of its training."""
    path = tmp_path_factory.mktemp("models") / "m"
    words = ["train", "module", PROGRAM, str(rows / "train.svm"), "--valid", str(rows / "test.svm"), "--mode", "serial"]
    assert main([*words, "--epochs", "2", "--quiet", "--checkpoint-every", "1epoch", "--output", str(path)]) == 0
    return path


def test_a_model_directory_holds_a_state_dict_and_no_code(hogwild, rows, model):
    from safetensors.torch import load_file

    assert sorted(os.listdir(model)) == ["config.json", "weights.safetensors"]
    state = load_file(model / "weights.safetensors")
    plain = models.Bags(json.loads((model / "config.json").read_text())["options"]["facts"]["features"])
    plain.load_state_dict(state)
    with pytest.raises(ModelError, match=r"PyTorch module made by 'make_bags'.*load_model\(path, program\)"):
        load_model(model)
    loaded = load_model(model, models.make_program())
    for name, tensor in plain.state_dict().items():
        assert torch.equal(loaded.program.state_dict()[name], tensor)
    said = hogwild("evaluate", model, rows / "test.svm", "--program", PROGRAM, "--json")
    assert said.json["metrics"] == pytest.approx(loaded.metrics)
    assert said.json["metrics"]["loss"] < 0.69
    lines = hogwild("predict", model, rows / "test.svm", "--program", PROGRAM).out.split()
    feed = hogwild_feed(rows / "test.svm", loaded)
    assert [float(line) for line in lines] == pytest.approx(loaded.program.predict(feed).tolist(), rel=1e-4, abs=1e-6)


def hogwild_feed(path, model):
    import hogwild

    return hogwild.open_feed([str(path)], model.feed_config, schema=model.schema)


def test_a_finished_run_has_nothing_left_to_do(hogwild, rows, model):
    words = ["train", "module", PROGRAM, rows / "train.svm", "--valid", rows / "test.svm", "--mode", "serial"]
    said = hogwild(*words, "--epochs", 2, "--output", model, "--resume", "--json")
    assert "nothing is left to do" in said.err
    assert (said.json["program"], said.json["made_by"], said.json["optimizer"]) == ("module", "make_bags", "adagrad")
    assert said.json["metrics"] == pytest.approx(load_model(model, models.make_program()).metrics)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "names no function; write package.module:function"),
        (("no_such_module_here:make",), "there is no module 'no_such_module_here'"),
        (("pytorch.models:make_progam",), "did you mean make_program"),
        (("pytorch.models:make_nothing",), "returned int"),
        ((PROGRAM, "--sharing", "hot"), "one copy of its weights"),
    ],
)
def test_mistakes_are_found_before_the_data_is_read(refused, words, message):
    assert message in refused("train", "module", words[0], "x.svm", *words[1:])


def test_a_model_without_its_program_says_what_to_give(refused, rows, model):
    assert "give --program, the function that makes its program" in refused("evaluate", model, rows / "test.svm")


def test_without_pytorch_one_line_names_the_extra():
    code = "import sys; sys.modules['torch'] = None; import hogwild.pytorch as p; p.find_spec = lambda name: None\n"
    code += "from hogwild.cli.main import main; sys.exit(main(['train', 'module', 'a:b', 'x.svm']))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [
        'hogwild: error: modules and devices need PyTorch, which is not installed: pip install "hogwild[torch]".'
    ]


@pytest.mark.full
def test_ctrl_c_saves_and_the_run_goes_on(rows, tmp_path):
    """SIGINT to the whole group, as a terminal sends it: workers do not see it."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "hogwild", "train", "module", PROGRAM, str(rows / "train.svm"), "--threads", "2",
               "--output", str(tmp_path / "m"), "--log-dir", str(tmp_path / "logs")]  # fmt: skip
    run = subprocess.Popen([*command, "--epochs", "100000"], env=environment, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)  # fmt: skip
    log, until = tmp_path / "logs" / "events.jsonl", time.monotonic() + 120
    while not (log.exists() and '"epoch"' in log.read_text()) and time.monotonic() < until:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGINT)
    said = run.communicate(timeout=120)[1]
    assert run.returncode == 130, said
    assert "run the same command again with --resume" in said
    assert "Traceback" not in said
    assert (tmp_path / "m").is_dir()
    assert (tmp_path / "m.checkpoint").is_dir()
    until = time.monotonic() + 30
    while _is_there(run.pid) and time.monotonic() < until:  # the tracker of `multiprocessing` notices a little later
        time.sleep(0.05)
    assert not _is_there(run.pid)


def _is_there(group):
    """Whether anybody of a group of processes is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.full
def test_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    made = ("make-dataset", "clicks", "--slots", "4", "--numbers", "2", "--features", "200", "--quiet")
    for part, name in enumerate(("train.txt", "test.txt")):
        assert main([*made, "--rows", "2000", "--part", str(part), "--output", name]) == 0
    clicks = ("train.txt", "test.txt")
    for words, least in (
        (["sentiment.py"], 0.3), (["deepfm.py", *clicks], 0.52), (["dcn.py", *clicks], 0.52), (["tagger.py"], 0.3),
        (["words.py"], 3.0),
    ):  # fmt: skip
        path = ROOT / "examples" / words[0]
        assert len(path.read_text().splitlines()) <= 60
        done = subprocess.run(
            [sys.executable, str(path), *words[1:]], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found = eval(done.stdout.splitlines()[-1])
        assert found["loss"] < least, found
        if words == ["words.py"]:
            assert found["same"] > found["other"] + 0.3
        else:
            assert "make_program" in runpy.run_path(str(path)) or words == ["tagger.py"]


def test_a_profile_has_the_workers_and_the_epochs(hogwild, rows, tmp_path):
    words = ["train", "module", PROGRAM, rows / "train.svm", "--valid", rows / "test.svm", "--epochs", 2]
    more = ["--threads", 2, "--json", "--output", tmp_path / "m", "--patience", 1]
    said = hogwild(*words, *more, "--profile", tmp_path / "p.json")
    report = said.json["profile"]
    assert len(report["workers"]) == 2
    assert all(worker["train"] > 0 for worker in report["workers"])
    events = json.loads((tmp_path / "p.json").read_text())
    assert events["traceEvents"]
