"""The layers of a model folder: precedence, origins, checks, frozen keys, and edits that leave the rest as it was."""

import multiprocessing
import os
import re
import stat
import subprocess
import sys
import tomllib

import pytest

from rlvr import config, layers, presets
from rlvr.config import PRESETS, EvalConfig, TrainConfig
from rlvr.errors import RlvrError

FILES = ("model.toml", "training.toml", "eval.toml")


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "m"
    layers.create(folder, {**PRESETS["tiny"], "environment": "oeis"})
    return folder


def texts(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# ---------------------------------------------------------------------------------------------------------------------
# Making


def test_new_files_resolve_to_the_values_they_were_made_with(model):
    train, origins = layers.resolve_for(model, TrainConfig, {})
    assert (train.base_model, train.max_steps, train.learning_rate, train.seed) == ("tiny", 80, 2e-3, 0)
    assert origins["max_steps"] == "model.toml" and origins["seed"] == "default"
    assert layers.resolve_for(model, EvalConfig, {})[0].max_new_tokens == 64
    assert sorted(path.name for path in model.iterdir()) == sorted(FILES)


def test_model_toml_explains_every_key_and_uncommenting_a_line_sets_its_default(model):
    text = (model / "model.toml").read_text()
    known = {**config.keys(EvalConfig), **config.keys(TrainConfig)}
    for name, key in known.items():
        assert key.help.lower() in " ".join(text.replace("\n# ", " ").split()).lower(), name
        assert len(re.findall(rf"(?m)^(# )?{name} = ", text)) == 1, name
    everything = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", text)
    values = tomllib.loads(everything)
    assert values.keys() == known.keys()
    (model / "model.toml").write_text(everything)
    resolved, _ = layers.resolve_for(model, TrainConfig, {})
    assert resolved == TrainConfig(**{k: v for k, v in PRESETS["tiny"].items() if k in config.keys(TrainConfig)})


def test_nothing_half_made_stays_behind(tmp_path):
    with pytest.raises(RlvrError, match="m/model.toml: max_steps = 0 must be 1 to 10000000"):
        layers.create(tmp_path / "m", {"max_steps": 0})
    assert not (tmp_path / "m").exists()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model.toml").write_text("seed = 1\n")
    with pytest.raises(RlvrError, match="old/model.toml: exists already"):
        layers.create(tmp_path / "old", {})
    assert texts(tmp_path / "old") == {"model.toml": b"seed = 1\n"}


def test_a_lost_model_toml_is_made_again_and_the_rest_stays(model):
    layers.set_keys(model, "permanent", {"max_steps": "9"})
    before = texts(model)
    (model / "model.toml").unlink()
    with pytest.raises(RlvrError, match="make the model with rlvrctl.py init --model m"):
        layers.resolve_for(model, TrainConfig)
    assert layers.create(model, {**PRESETS["tiny"], "environment": "oeis"}) == ["model.toml"]
    assert texts(model) == before


# ---------------------------------------------------------------------------------------------------------------------
# Resolving


def test_every_layer_wins_over_the_ones_below_it(model):
    def resolved(**flags):
        train, origins = layers.resolve_for(model, TrainConfig, flags)
        return train.max_steps, origins["max_steps"]

    assert resolved() == (80, "model.toml")
    layers.unset_keys(model, "global", ["max_steps"])
    assert resolved() == (250, "default")
    layers.set_keys(model, "global", {"max_steps": "1"})
    assert resolved() == (1, "model.toml")
    layers.set_keys(model, "permanent", {"max_steps": "2"})
    assert resolved() == (2, "training.toml")
    layers.set_keys(model, "ephemeral", {"max_steps": "3"})
    assert resolved() == (3, "training.toml [ephemeral]")
    assert resolved(max_steps="4") == (4, "command line")  # as it was typed
    assert resolved(max_steps=5) == (5, "command line")  # or a value
    (setting,) = [each for each in layers.effective(model) if each.key == "max_steps"]
    assert setting == layers.Setting(
        "max_steps", "train", 3, 250, "training.toml [ephemeral]", (("training.toml", 2), ("model.toml", 1))
    )


def test_training_and_evaluation_have_files_of_their_own(model):
    layers.set_keys(model, "permanent", {"temperature": "0.5", "num_tasks": "7"})
    layers.set_keys(model, "ephemeral", {"temperature": "0.7"}, target="eval")
    layers.set_keys(model, "global", {"temperature": "0.9", "seed": "3"})
    train, train_origins = layers.resolve_for(model, TrainConfig, {})
    evaluation, eval_origins = layers.resolve_for(model, EvalConfig, {})
    assert (train.temperature, train_origins["temperature"]) == (0.5, "training.toml")
    assert (evaluation.temperature, eval_origins["temperature"]) == (0.7, "eval.toml [ephemeral]")
    assert (evaluation.num_tasks, eval_origins["num_tasks"]) == (7, "eval.toml")
    found = {(each.key, each.target): each.value for each in layers.effective(model)}
    assert found["seed", "both"] == 3
    assert found["temperature", "train"] == 0.5 and found["temperature", "eval"] == 0.7
    assert ("temperature", "both") not in found


def test_overrides_may_be_missing_but_not_the_model(model):
    (model / "training.toml").unlink()
    assert layers.resolve_for(model, TrainConfig, {})[0].max_steps == 80
    assert layers.ephemeral_values(model, TrainConfig) == {}
    (model / "model.toml").unlink()
    with pytest.raises(RlvrError, match=r"m/model.toml: no such file: make the model with .*init --model m"):
        layers.resolve_for(model, TrainConfig, {})


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("model.toml", "learning_rat = 1", "m/model.toml: unknown key 'learning_rat': did you mean 'learning_rate'?"),
        ("model.toml", "[ephemeral]\nseed = 1", "m/model.toml: [ephemeral] has no meaning here"),
        ("model.toml", "num_tasks = 0", "m/model.toml: num_tasks = 0 must be 1 to 1000000"),
        ("training.toml", "num_task = 3", "m/training.toml: unknown key 'num_task': did you mean 'num_tasks'?"),
        (
            "training.toml",
            "num_tasks = 3",
            "m/training.toml: num_tasks is a key of evaluation, not of training: put it into eval.toml",
        ),
        (
            "training.toml",
            "[ephemeral]\nmax_steps = '3'",
            "m/training.toml [ephemeral]: max_steps = '3' must be an integer",
        ),
        ("training.toml", "ephemeral = 3", "m/training.toml: ephemeral = 3 must be a table"),
        (
            "training.toml",
            "[xyzzy]\nseed = 1",
            "m/training.toml: unknown key 'xyzzy': rlvrctl.py train --help and eval --help list them",
        ),
        ("training.toml", "seed = 1\nseed = 2", "m/training.toml: not valid TOML"),
        ("training.toml", "seed = ", "m/training.toml: not valid TOML: Invalid value (at "),
    ],
)
def test_what_is_wrong_is_named_and_never_edited_over(model, file, text, expected):
    (model / file).write_text(text)
    with pytest.raises(RlvrError) as error:
        layers.resolve_for(model, TrainConfig, {})
    assert expected in str(error.value)
    before = texts(model)
    with pytest.raises(RlvrError, match=file):
        layers.set_keys(model, "global" if file == "model.toml" else "permanent", {"kl_beta": "0"})
    assert texts(model) == before


def test_a_key_of_training_in_the_file_of_evaluation(model):
    (model / "eval.toml").write_text("[ephemeral]\nlora_rank = 3\n")
    with pytest.raises(RlvrError, match=r"eval.toml \[ephemeral\]: lora_rank .* put it into training.toml"):
        layers.resolve_for(model, EvalConfig, {})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"max_stepss": "3"}, "command line: unknown key 'max_stepss': did you mean 'max_steps'?"),
        ({"num_tasks": "3"}, "command line: num_tasks is a key of evaluation, not of training: leave it out"),
        ({"max_steps": "many"}, "command line: max_steps = 'many' must be an integer"),
        ({"max_steps": 0}, "command line: max_steps = 0 must be 1 to 10000000"),
    ],
)
def test_flags_are_checked_too(model, flags, expected):
    with pytest.raises(RlvrError) as error:
        layers.resolve_for(model, TrainConfig, flags)
    assert expected in str(error.value)


def test_a_file_that_cannot_be_read_is_named(model):
    (model / "training.toml").write_bytes(b'corpus_dir = "\xe9"')
    with pytest.raises(RlvrError, match="training.toml: cannot be read"):
        layers.resolve_for(model, TrainConfig, {})
    (model / "training.toml").unlink()
    (model / "training.toml").mkdir()
    with pytest.raises(RlvrError, match="training.toml: cannot be read"):
        layers.resolve_for(model, TrainConfig, {})


# ---------------------------------------------------------------------------------------------------------------------
# Frozen keys


def test_what_the_first_adapter_was_made_with_cannot_change(model, tmp_path):
    resolved, origins = layers.resolve_for(model, TrainConfig, {})
    snapshot = tmp_path / "config.toml"
    config.write_snapshot(snapshot, resolved, origins, {"torch": "2"})
    frozen = layers.frozen_values(snapshot)
    assert frozen == {"base_model": "tiny", "max_seq_length": 512, "lora_rank": 16, "lora_alpha": 32}
    assert layers.resolve_for(model, TrainConfig, {"lora_rank": 16}, frozen)[0].lora_rank == 16
    with pytest.raises(RlvrError, match=r"command line: lora_rank = 8, but .* with 16 .*init --model OTHER"):
        layers.resolve_for(model, TrainConfig, {"lora_rank": "8"}, frozen)
    before = texts(model)
    for scope in layers.SCOPES:
        with pytest.raises(RlvrError, match="command line: lora_alpha = 64, but"):
            layers.set_keys(model, scope, {"seed": "3", "lora_alpha": "64"}, None, frozen)
        with pytest.raises(RlvrError, match="max_seq_length = 1024, but"):
            layers.set_values(model, scope, PRESETS["smollm2-135m"] | {"base_model": "tiny"}, None, frozen)
    assert texts(model) == before
    layers.set_keys(model, "global", {"lora_rank": "16"}, None, frozen)
    (model / "eval.toml").write_text("[ephemeral]\nbase_model = 'other'\n")
    with pytest.raises(RlvrError, match=r'm/eval.toml \[ephemeral\]: base_model = "other", but .* "tiny"'):
        layers.resolve_for(model, EvalConfig, {}, frozen)
    layers.unset_keys(model, "global", ["base_model"])
    with pytest.raises(RlvrError, match=r'default: base_model = .*: set base_model = "tiny" in model.toml'):
        layers.resolve_for(model, TrainConfig, {}, frozen)


# ---------------------------------------------------------------------------------------------------------------------
# Editing

COMMENTED = """\
# My notes:   two spaces,\ttab
learning_rate   =  1e-4     # tried 1e-3: diverged

  # indented
seed=5#no space
require_keywords = [
    "easy",  # yes
    "nonn",
]
kl_beta = 0.5


[ephemeral]   # once
# only for tonight
max_steps = 7 # few

# the end, without a newline"""


def test_an_edit_changes_its_line_and_no_other_byte(model):
    file = model / "training.toml"
    file.write_text(COMMENTED)
    layers.set_keys(model, "permanent", {"learning_rate": "2e-4"})
    layers.set_keys(model, "ephemeral", {"max_steps": "9"})
    expected = COMMENTED.replace("1e-4  ", "0.0002  ").replace("max_steps = 7", "max_steps = 9")
    assert file.read_text() == expected
    changes = layers.unset_keys(model, "permanent", ["kl_beta"])
    assert changes == [layers.Change("training.toml", "kl_beta", "0.5", None)]
    assert file.read_text() == expected.replace("kl_beta = 0.5\n", "")


def test_a_new_key_takes_the_place_of_its_commented_default_and_gives_it_back(model):
    file = model / "model.toml"
    before = file.read_text()
    changes = layers.set_keys(model, "global", {"kl_beta": "0", "require_keywords": "nonn,core"})
    assert changes == [
        layers.Change("model.toml", "kl_beta", None, "0.0"),
        layers.Change("model.toml", "require_keywords", None, '["nonn", "core"]'),
    ]
    expected = before.replace("# kl_beta = 0.001\n", "kl_beta = 0.0\n")
    expected = expected.replace('# require_keywords = ["easy", "nonn"]\n', 'require_keywords = ["nonn", "core"]\n')
    assert file.read_text() == expected != before
    layers.unset_keys(model, "global", ["kl_beta", "require_keywords"])
    assert file.read_text() == before


def test_a_commented_line_of_a_person_stays(model):
    file = model / "model.toml"
    text = file.read_text().replace("# kl_beta = 0.001\n", "# kl_beta = 0.02\n")
    file.write_text(text)
    layers.set_keys(model, "global", {"kl_beta": "0.5"})
    assert file.read_text().startswith(text)
    assert tomllib.loads(file.read_text())["kl_beta"] == 0.5


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_stay(model, mark):
    file = model / "training.toml"
    text = mark + COMMENTED.replace("\n", "\r\n")
    file.write_bytes(text.encode())
    assert layers.resolve_for(model, TrainConfig, {})[0].seed == 5
    layers.set_keys(model, "permanent", {"seed": "6", "warmup_steps": "1"})
    layers.set_keys(model, "ephemeral", {"top_p": "0.5"})
    edited = file.read_bytes().decode()
    assert edited.startswith(text[:20]) and edited.count("\ufeff") == len(mark)
    assert not re.search(r"(?<!\r)\n", edited)
    assert [line for line in text.split("\r\n") if line not in edited.split("\r\n")] == ["seed=5#no space"]
    train, origins = layers.resolve_for(model, TrainConfig, {})
    assert (train.seed, train.warmup_steps, train.top_p) == (6, 1, 0.5)
    assert origins["warmup_steps"] == "training.toml" and origins["top_p"] == "training.toml [ephemeral]"


def test_crlf_in_model_toml(model):
    file = model / "model.toml"
    text = file.read_text().replace("\n", "\r\n")
    file.write_bytes(text.encode())
    layers.set_keys(model, "global", {"kl_beta": "0.5"})
    assert file.read_bytes().decode() == text.replace("# kl_beta = 0.001\r\n", "kl_beta = 0.5\r\n")
    layers.unset_keys(model, "global", ["kl_beta"])
    assert file.read_bytes().decode() == text


@pytest.mark.parametrize(
    "text", ["", "seed = 1", "ephemeral = {seed = 1, max_steps = 2}\n", "ephemeral.seed = 1\n", "[ephemeral]", "# x"]
)
def test_unusual_files_are_edited_too(model, text):
    file = model / "training.toml"
    file.write_text(text)
    layers.set_keys(model, "ephemeral", {"seed": "4", "kl_beta": "0"})
    layers.set_keys(model, "permanent", {"top_p": "0.5"})
    resolved, origins = layers.resolve_for(model, TrainConfig, {})
    assert (resolved.seed, resolved.kl_beta, resolved.top_p) == (4, 0.0, 0.5)
    assert origins["seed"] == origins["kl_beta"] == "training.toml [ephemeral]"
    layers.unset_keys(model, "ephemeral", ["seed", "kl_beta"])
    assert layers.ephemeral_values(model, TrainConfig) == ({"max_steps": 2} if "max_steps" in text else {})


def test_a_misspelt_key_can_be_taken_out_while_another_is_still_wrong(model):
    (model / "training.toml").write_text("learning_rat = 1\nmax_steps = 0\nseed = 4\n")
    assert layers.unset_keys(model, "permanent", ["learning_rat"]) == [
        layers.Change("training.toml", "learning_rat", "1", None)
    ]
    layers.unset_keys(model, "permanent", ["max_steps"])
    assert layers.resolve_for(model, TrainConfig, {})[0].seed == 4
    with pytest.raises(RlvrError, match="unknown key 'learning_rat': did you mean 'learning_rate'"):
        layers.unset_keys(model, "permanent", ["learning_rat"])


@pytest.mark.parametrize(
    ("file", "table", "name", "scope", "target"),
    [
        ("eval.toml", "", "max_steps", "permanent", "eval"),
        ("eval.toml", "", "max_steps", "permanent", None),
        ("training.toml", "", "num_tasks", "permanent", "train"),
        ("training.toml", "", "num_tasks", "permanent", None),
        ("eval.toml", "[ephemeral]\n", "max_steps", "ephemeral", "eval"),
        ("eval.toml", "[ephemeral]\n", "max_steps", "ephemeral", None),
        ("model.toml", "", "learning_rat", "global", None),
    ],
)
def test_a_key_that_means_nothing_where_it_stands_can_be_taken_out(model, file, table, name, scope, target):
    (model / file).write_text(f"{table}{name} = 2\n")
    with pytest.raises(RlvrError, match=name):
        layers.effective(model)
    assert layers.unset_keys(model, scope, [name], target) == [layers.Change(file, name, "2", None)]
    layers.effective(model)


def test_what_is_set_in_the_right_place_too_goes_with_it(model):
    (model / "eval.toml").write_text("max_steps = 2\n")
    (model / "training.toml").write_text("max_steps = 3\n")
    assert [change.file for change in layers.unset_keys(model, "permanent", ["max_steps"])] == [
        "eval.toml",
        "training.toml",
    ]
    # A broken file from which nothing has to be taken out is in nobody's way.
    (model / "eval.toml").write_text("= 2\n")
    layers.unset_keys(model, "permanent", ["max_steps"])
    with pytest.raises(RlvrError, match="max_steps is not a key of evaluation: leave out --for eval"):
        (model / "eval.toml").write_text("")
        layers.unset_keys(model, "permanent", ["max_steps"], "eval")


def test_several_pairs_are_all_or_nothing(model):
    before = texts(model)
    with pytest.raises(RlvrError, match="top_p = '7' must be a number|top_p = 7.0 must be 0.01 to 1"):
        layers.set_keys(model, "permanent", {"max_steps": "9", "top_p": "7"})
    assert texts(model) == before
    (model / "eval.toml").unlink()
    (model / "eval.toml").symlink_to("absent/eval.toml")
    training = (model / "training.toml").read_bytes()
    with pytest.raises(RlvrError, match="eval.toml: cannot be written: No such file or directory: nothing was chang"):
        layers.set_keys(model, "permanent", {"max_steps": "9", "num_tasks": "7"})
    assert (model / "training.toml").read_bytes() == training
    assert sorted(path.name for path in model.iterdir()) == sorted(FILES)


def test_a_bundle_goes_to_both_kinds_of_run(model):
    layers.set_values(model, "permanent", {"seed": 4, "max_steps": 9, "num_tasks": 7})
    assert layers.resolve_for(model, TrainConfig, {})[0].seed == 4
    assert layers.resolve_for(model, EvalConfig, {})[0].seed == 4
    layers.set_values(model, "ephemeral", {"seed": 5, "max_steps": 8}, target="eval")
    assert layers.ephemeral_values(model, EvalConfig) == {"seed": 5}
    assert layers.ephemeral_values(model, TrainConfig) == {}


def test_after_a_run_only_what_it_used_is_cleared(model):
    file = model / "training.toml"
    file.write_text("seed = 1\n[ephemeral]\n# tonight\nmax_steps = 7\nkl_beta = 0\nrequire_keywords = ['nonn']\n")
    used = layers.ephemeral_values(model, TrainConfig)
    assert used == {"max_steps": 7, "kl_beta": 0.0, "require_keywords": ("nonn",)}
    layers.set_keys(model, "ephemeral", {"max_steps": "8", "top_p": "0.5"})  # while it ran
    layers.clear_ephemeral(model, TrainConfig, used)
    assert layers.ephemeral_values(model, TrainConfig) == {"max_steps": 8, "top_p": 0.5}
    assert "# tonight\n" in file.read_text() and file.read_text().startswith("seed = 1\n")
    before = file.read_bytes()
    layers.clear_ephemeral(model, EvalConfig, used)
    layers.clear_ephemeral(model, TrainConfig, {})
    assert file.read_bytes() == before


def test_mode_and_symlink_of_a_file_stay(model, tmp_path):
    file = model / "training.toml"
    real = tmp_path / "elsewhere.toml"
    file.rename(real)
    file.symlink_to(real)
    real.chmod(0o640)
    layers.set_keys(model, "permanent", {"seed": "3"})
    assert file.is_symlink() and tomllib.loads(real.read_text())["seed"] == 3
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write into every folder")
def test_a_read_only_folder_is_named(model):
    model.chmod(0o555)
    try:
        with pytest.raises(
            RlvrError, match="training.toml: cannot be written: Permission denied: nothing was changed"
        ):
            layers.set_keys(model, "permanent", {"seed": "3"})
    finally:
        model.chmod(0o755)


def test_a_full_disk_leaves_every_file_as_it_was(model, root):
    """No file may grow beyond 0 bytes: the same failure, in the same place, as with a full disk."""
    before = texts(model)
    code = (
        "import resource, sys; from pathlib import Path; from rlvr import layers\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "folder = Path(sys.argv[1])\n"
        "for act in (lambda: layers.set_keys(folder, 'permanent', {'seed': '3'}),\n"
        "            lambda: layers.create(folder.parent / 'new', {})):\n"
        "    try: act()\n"
        "    except layers.RlvrError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model)], cwd=root, capture_output=True, text=True)
    assert "m/training.toml: cannot be written: File too large: nothing was changed" in done.stdout, done.stderr
    assert "new/model.toml: cannot be written" in done.stdout
    assert texts(model) == before and not (model.parent / "new").exists()


def _set_many(folder, name, count):
    for value in range(1, count + 1):
        layers.set_keys(folder, "permanent", {name: str(value)})


def test_edits_at_the_same_time_lose_nothing(model):
    names = ("max_steps", "save_steps", "warmup_steps", "keep_checkpoints")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_set_many, args=(model, name, 8)) for name in names]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        layers.resolve_for(model, TrainConfig, {})  # a reader never meets a torn file
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    resolved, _ = layers.resolve_for(model, TrainConfig, {})
    assert [vars(resolved)[name] for name in names] == [8] * 4
    assert sorted(path.name for path in model.iterdir()) == sorted(FILES)


# ---------------------------------------------------------------------------------------------------------------------
# Presets


def test_a_preset_is_saved_found_and_guarded(tmp_path):
    folder = tmp_path / "presets"
    file = presets.save_preset(folder, "mine", {"kl_beta": 0.5, "num_tasks": 7}, 'for "me"')
    assert presets.preset_values("mine", folder) == {"kl_beta": 0.5, "num_tasks": 7}
    assert presets.find_preset("mine", folder) == presets.Preset(
        "mine", 'for "me"', {"kl_beta": 0.5, "num_tasks": 7}, file
    )
    with pytest.raises(RlvrError, match="mine.toml: exists already"):
        presets.save_preset(folder, "mine", {"kl_beta": 0.1})
    presets.save_preset(folder, "mine", {"kl_beta": 0.1}, replace=True)
    assert presets.preset_values("mine", folder) == {"kl_beta": 0.1}
    for name, message in {"tiny": "built in", "../x": "use letters", "": "use letters"}.items():
        with pytest.raises(RlvrError, match=message):
            presets.save_preset(folder, name, {"kl_beta": 0.1}, replace=True)
    with pytest.raises(RlvrError, match="unknown key 'kl_bet': did you mean 'kl_beta'"):
        presets.save_preset(folder, "other", {"kl_bet": 0.1})
    with pytest.raises(RlvrError, match="no preset 'mime', .*: did you mean 'mine'"):
        presets.preset_values("mime", folder)
    (folder / "broken.toml").write_text("kl_beta = 11\n")
    with pytest.raises(RlvrError, match="broken.toml: kl_beta = 11.0 must be 0 to 10"):
        presets.preset_values("broken", folder)
    listed = {preset.name: preset for preset in presets.list_presets(folder)}
    assert [*listed] == [*PRESETS, "broken", "mine"]
    assert "kl_beta" in listed["broken"].error and all(listed[name].summary for name in PRESETS)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    # One with the name of a built-in one would never be used.
    (folder / "tiny.toml").write_text("kl_beta = 0.1\n")
    listed = {preset.name: preset for preset in presets.list_presets(folder)}
    assert [*listed] == [*PRESETS, "broken", "mine", "tiny.toml"] and not listed["tiny"].error
    assert listed["tiny.toml"].error.endswith("tiny.toml: tiny is built in: rename this file")
