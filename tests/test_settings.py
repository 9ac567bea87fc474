"""config and preset, as a user types them: what is printed, what is in the files afterwards, exit codes."""

import json
import os
import tomllib

import pytest

from rlvr import config, layers
from rlvr.config import PRESETS, EvalConfig, TrainConfig


@pytest.fixture
def ctl(here, tmp_path):
    """Run rlvrctl.py where there is one model, `m`; returns (exit code, stdout, stderr)."""
    layers.create(tmp_path / "training" / "m", {**PRESETS["tiny"], "environment": "oeis"})
    return here


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "training" / "m"


def make_cycle(folder, number="001", **flags):
    """A cycle as the trainer leaves it, as far as config goes: its snapshot and an adapter."""
    cycle = folder / number
    (cycle / "adapter").mkdir(parents=True)
    (cycle / "adapter" / "adapter_config.json").write_text("{}")
    config.write_snapshot(cycle / "config.toml", *layers.resolve_for(folder, TrainConfig, flags), {"torch": "2"})
    return cycle


def shown(out):
    return {(row["key"], row["for"]): row for row in json.loads(out)}


def test_show_has_every_key_and_where_it_comes_from(ctl, folder):
    layers.set_keys(folder, "permanent", {"max_steps": "40", "seed": "3"})
    layers.set_keys(folder, "ephemeral", {"max_steps": "7"})
    code, out, _ = ctl("config", "show", "--json")
    rows = shown(out)
    assert code == 0 and {key for key, _ in rows} == {*config.keys(TrainConfig), *config.keys(EvalConfig)}
    assert rows["max_steps", "train"] == {
        "key": "max_steps",
        "for": "train",
        "value": 7,
        "default": 250,
        "origin": "training.toml [ephemeral]",
        "shadows": [{"origin": "training.toml", "value": 40}, {"origin": "model.toml", "value": 80}],
        "frozen": False,
    }
    assert rows["seed", "train"]["value"] == 3 and rows["seed", "eval"]["value"] == 0
    assert rows["require_keywords", "both"]["value"] == ["easy", "nonn"]
    code, out, _ = ctl("config", "show", "--origin")
    line = next(line for line in out.splitlines() if line.startswith("max_steps"))
    assert line.split()[:3] == ["max_steps", "training", "7"]
    assert "training.toml [ephemeral]  40 in training.toml, 80 in model.toml" in line
    assert "exclude_keywords" in out and "unkn" in out and "\x1b" not in out


def test_show_of_some_keys_says_what_they_mean(ctl):
    code, out, _ = ctl("config", "show", "--origin", "learning-rate", "num_tasks")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3
    assert "peak learning rate of AdamW (0 to 1)" in lines[1] and "held-out tasks (1 to 1000000)" in lines[2]
    assert ctl("config", "show", "learning_rat")[2].endswith("did you mean 'learning_rate'?\n")
    code, _, error = ctl("config", "show", "num_tasks", "--for", "train")
    assert code == 2 and "num_tasks is not a key of training" in error
    _, out, _ = ctl("config", "show", "--for", "eval", "--json")
    assert {row["for"] for row in json.loads(out)} == {"eval"} and "max_steps" not in out


def test_set_writes_one_layer_and_says_what_wins(ctl, folder):
    model = folder / "model.toml"
    (folder / "training.toml").write_text("# mine\n\nmax_steps = 40   # enough\n\n[ephemeral]\n# soon\n")
    before = model.read_text()
    code, out, error = ctl("config", "set", "--scope", "global", "max_steps=30", "kl-beta=0.5")
    assert code == 0
    assert out == "training/m/model.toml: max_steps = 30 (was 80)\ntraining/m/model.toml: kl_beta = 0.5\n"
    assert error == "note: max_steps stays 40 for training: training.toml sets it too and wins\n"
    expected = before.replace("max_steps = 80", "max_steps = 30").replace("# kl_beta = 0.001", "kl_beta = 0.5")
    assert model.read_text() == expected
    code, out, error = ctl("config", "set", "--scope", "ephemeral", "max_steps=7", "num_tasks=9")
    assert (code, error) == (0, "")
    assert out == (
        "training/m/training.toml [ephemeral]: max_steps = 7\ntraining/m/eval.toml [ephemeral]: num_tasks = 9\n"
    )
    assert (folder / "training.toml").read_text() == (
        "# mine\n\nmax_steps = 40   # enough\n\n[ephemeral]\n# soon\nmax_steps = 7\n"
    )
    code, out, error = ctl("config", "set", "max_steps=50", "--model", "m")  # the permanent scope
    assert (code, out) == (0, "training/m/training.toml: max_steps = 50 (was 40)\n")
    assert "max_steps stays 7 for training: training.toml [ephemeral] sets it too" in error
    code, out, error = ctl("config", "unset", "--scope", "ephemeral", "max_steps", "seed")
    assert code == 0 and error.startswith("note: max_steps is now 50 for training, from training.toml\n")
    assert out == (
        "training/m/training.toml [ephemeral]: max_steps removed (was 7)\n"
        "training/m/training.toml [ephemeral]: seed was not set here\n"
    )
    assert (folder / "training.toml").read_text() == ("# mine\n\nmax_steps = 50   # enough\n\n[ephemeral]\n# soon\n")


def test_a_key_of_the_other_kind_of_run_is_taken_out_and_what_is_still_wrong_is_said_once(ctl, folder):
    (folder / "eval.toml").write_text("max_steps = 2\nlora_rank = 3\n")
    assert ctl("config", "show")[0] == 2
    code, out, error = ctl("config", "unset", "--for", "eval", "max_steps")
    assert (code, out) == (0, "training/m/eval.toml: max_steps removed (was 2)\n")
    assert error.count("\n") == 1 and error.startswith("note: training/m/eval.toml: lora_rank is a key of training")
    code, out, error = ctl("config", "unset", "lora_rank")
    assert (code, out, error) == (0, "training/m/eval.toml: lora_rank removed (was 3)\n", "")
    assert ctl("config", "show")[0] == 0


def test_in_a_pipe_a_row_is_one_line_without_blanks_at_its_end(ctl):
    for arguments in (("config", "show", "--origin"), ("config", "diff", "--defaults"), ("preset", "list")):
        lines = ctl(*arguments)[1].splitlines()
        assert lines == [line.rstrip() for line in lines]
    lines = ctl("config", "show", "--origin")[1].splitlines()
    assert len(lines) == len(json.loads(ctl("config", "show", "--json")[1])) + 1
    assert '"unkn", "uned", "probation"]  default' in next(line for line in lines if line.startswith("exclude_k"))


def test_a_name_that_is_taken_is_said_before_anything_else(ctl, tmp_path):
    ctl("config", "set", "seed=4")  # what a preset cannot hold is a note
    presets_dir = tmp_path / "training/presets"
    presets_dir.mkdir()
    (presets_dir / "mine.toml").write_text("seed = 1\n")
    for name, message in {"tiny": "is built in", "a b": "use letters", "mine": "exists already"}.items():
        code, out, error = ctl("preset", "save", name)
        assert (code, out) == (2, "") and message in error and error.count("\n") == 1


def test_a_model_whose_model_toml_is_lost_is_made_again(ctl, folder):
    (folder / "model.toml").unlink()
    (folder / "eval.toml").unlink()
    (folder / "001").mkdir()
    code, _, error = ctl("train", "--dry-run")
    assert code == 2 and error.endswith("make the model with rlvrctl.py init --model m\n")
    code, out, error = ctl("init", "--model", "m", "--preset", "tiny")
    assert code == 0 and out.startswith("Made training/m/ with model.toml, eval.toml: preset tiny.\n")
    assert error == "note: training/m/training.toml was there and stays as it is\n"
    assert ctl("config", "show")[0] == 0
    code, _, error = ctl("init", "--model", "m", "--preset", "tiny")
    assert code == 2 and "training/m/model.toml: exists already" in error


@pytest.mark.parametrize(("name", "hint"), [("oes", "did you mean 'oeis'?"), ("xyzzy", "known: oeis")])
def test_an_unknown_environment_gets_the_nearest(ctl, name, hint):
    for arguments in (("init", "--model", "n"), ("validate",), ("play",)):
        code, out, error = ctl(*arguments, "--environment", name)
        assert (code, out, error) == (2, "", f"error: unknown environment {name!r}: {hint}\n")
    assert "did you mean" in ctl("train", "--dry-run", "-o", "environment=oes")[2]


def test_an_unknown_key_that_is_like_no_other_is_one_short_line(ctl):
    code, _, error = ctl("config", "set", "xyzzy=1")
    assert code == 2 and error.endswith("unknown key 'xyzzy': rlvrctl.py train --help and eval --help list them\n")


def test_a_key_of_both_kinds_of_run_goes_where_one_says(ctl, folder):
    code, _, error = ctl("config", "set", "temperature=0.5")
    assert code == 0
    assert error == (
        "note: temperature: set for training only; use --for eval for evaluation, --scope global for both\n"
    )
    assert ctl("config", "set", "--for", "eval", "temperature=0.7")[0] == 0
    assert tomllib.loads((folder / "training.toml").read_text()) == {"temperature": 0.5, "ephemeral": {}}
    assert tomllib.loads((folder / "eval.toml").read_text()) == {"temperature": 0.7, "ephemeral": {}}
    assert ctl("config", "set", "--for", "eval", "--scope", "global", "temperature=0.7")[0] == 2
    code, _, error = ctl("config", "set", "--for", "eval", "max_steps=3")
    assert code == 2 and "max_steps is not a key of evaluation" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "learning_rat=1"), "unknown key 'learning_rat': did you mean 'learning_rate'?"),
        (("set", "learning_rate"), "'learning_rate': write KEY=VALUE, such as learning_rate=1e-4"),
        (("set", "max_steps=0", "seed=3"), "max_steps = 0 must be 1 to 10000000"),
        (("set", "seed=3", "loss_type=dr-grpo"), "did you mean 'dr_grpo'?"),
        (("set", "seed=3", "seed=4"), "seed is given twice"),
        (("unset", "sed"), "unknown key 'sed': did you mean 'seed'?"),
        (("show", "--model", "n"), "training/n: no such model: make it with rlvrctl.py init --model n"),
        (("diff",), "model 'm' has no run of training to compare with: use --defaults"),
        (("diff", "007"), "model 'm' has no run '007'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(ctl, folder, arguments, message):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, error = ctl("config", *arguments)
    assert code == 2 and out == "" and error.startswith("error: ") and message in error
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_broken_file_is_named_with_its_line(ctl, folder):
    (folder / "training.toml").write_text("seed = 1\nmax_steps = = 3\n")
    for arguments in (("show",), ("set", "seed=2"), ("unset", "seed"), ("diff", "--defaults")):
        code, _, error = ctl("config", *arguments)
        assert code == 2, arguments
        assert error.startswith("error: training/m/training.toml: not valid TOML: Invalid value (at line 2")
    assert (folder / "training.toml").read_text() == "seed = 1\nmax_steps = = 3\n"
    # The other file can still be edited, and one is told of the broken one.
    code, out, error = ctl("config", "set", "num_tasks=9")
    assert code == 0 and out == "training/m/eval.toml: num_tasks = 9\n"
    assert error.startswith("note: training/m/training.toml: not valid TOML")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write into every folder")
def test_a_read_only_folder_is_named(ctl, folder):
    folder.chmod(0o555)
    try:
        code, _, error = ctl("config", "set", "seed=2")
    finally:
        folder.chmod(0o755)
    assert code == 2
    assert error == ("error: training/m/training.toml: cannot be written: Permission denied: nothing was changed\n")


def test_frozen_keys_once_there_is_an_adapter(ctl, folder):
    make_cycle(folder)
    code, _, error = ctl("config", "set", "--scope", "global", "seed=4", "lora_rank=8")
    assert code == 2 and "lora_rank = 8, but the adapters of this model were made with 16" in error
    assert "rlvrctl.py init --model OTHER" in error
    code, _, error = ctl("preset", "apply", "smollm2-135m")
    assert code == 2 and 'base_model = "HuggingFaceTB/SmolLM2-135M-Instruct", but' in error
    assert tomllib.loads((folder / "model.toml").read_text())["max_steps"] == 80
    assert ctl("config", "set", "--scope", "global", "lora_rank=16")[0] == 0
    rows = shown(ctl("config", "show", "--json")[1])
    assert [key for (key, _), row in rows.items() if row["frozen"]] == [
        "base_model", "max_seq_length", "lora_rank", "lora_alpha"
    ]  # fmt: skip
    code, _, error = ctl("config", "unset", "--scope", "global", "lora_rank")
    assert code == 0
    assert "warning: default: lora_rank = 32, but" in error and "set lora_rank = 16 in model.toml" in error


def test_diff_says_what_changed_since_the_last_run_and_where(ctl, folder):
    cycle = make_cycle(folder, kl_beta="0.5", seed="3")
    assert ctl("config", "diff", "--for", "train")[1].count("\n") == 3
    layers.set_keys(folder, "permanent", {"kl_beta": "0.5", "require_keywords": "nonn"})
    (cycle / "config.toml").write_text("old_key = 1\n" + (cycle / "config.toml").read_text())
    code, out, _ = ctl("config", "diff", "--json")
    assert code == 0
    assert json.loads(out) == {
        "against": "001",
        "keys": [
            {
                "key": "require_keywords",
                "for": "train",
                "old": ["easy", "nonn"],
                "old_origin": "default",
                "new": ["nonn"],
                "new_origin": "training.toml",
            },
            {
                "key": "seed",
                "for": "train",
                "old": 3,
                "old_origin": "command line",
                "new": 0,
                "new_origin": "default",
            },
            {"key": "old_key", "for": "both", "old": 1, "old_origin": "", "new": None, "new_origin": ""},
        ],
    }
    out = ctl("config", "diff", "001")[1]
    assert '["easy", "nonn"]  (default)' in out and '["nonn"]  (training.toml)' in out and "(no such key)" in out
    assert ctl("config", "diff", "001", "--for", "eval")[0] == 2
    _, out, _ = ctl("config", "diff", "--defaults", "--for", "eval", "--json")
    assert {row["key"]: (row["old"], row["new"]) for row in json.loads(out)["keys"]} == {
        "base_model": ("unsloth/gemma-4-E2B-it", "tiny"),
        "max_seq_length": (4096, 512),
        "max_new_tokens": (3072, 64),
    }


def test_presets_go_from_one_model_to_another(ctl, tmp_path):
    layers.create(tmp_path / "training" / "other", {"environment": "oeis"})
    assert ctl("config", "set", "--model", "m", "seed=4", "num_tasks=9")[0] == 0
    code, out, error = ctl("preset", "save", "--model", "m", "mine", "kl_beta=0.5", "--from-model")
    assert code == 0 and out.startswith("Saved training/presets/mine.toml: base_model, ")
    assert "note: seed is 4 for training and 0 for evaluation: the preset takes that of training" in error
    preset = tomllib.loads((tmp_path / "training" / "presets" / "mine.toml").read_text())
    assert preset == {**PRESETS["tiny"], "seed": 4, "num_tasks": 9, "kl_beta": 0.5, "summary": "from model m"}
    assert tomllib.loads(ctl("preset", "show", "mine")[1]) == {k: v for k, v in preset.items() if k != "summary"}
    listed = {row["name"]: row for row in json.loads(ctl("preset", "list", "--json")[1])}
    assert [*listed] == [*PRESETS, "mine"]
    assert listed["mine"]["file"] == "training/presets/mine.toml" and listed["mine"]["summary"] == "from model m"
    assert listed["tiny"]["built_in"] and listed["tiny"]["values"] == PRESETS["tiny"]

    code, out, _ = ctl("preset", "apply", "mine", "--model", "other")
    assert code == 0 and out.count("training/other/model.toml: ") == len(preset) - 1
    other = tmp_path / "training" / "other"
    assert layers.resolve_for(other, TrainConfig, {})[0].kl_beta == 0.5
    assert layers.resolve_for(other, EvalConfig, {})[0].seed == 4
    # Spelt out, the presets of the defaults lead back from any other one.
    assert ctl("preset", "apply", "gemma4-e2b", "--model", "other")[0] == 0
    assert layers.resolve_for(other, TrainConfig, {})[0].base_model == "unsloth/gemma-4-E2B-it"

    code, _, error = ctl("preset", "save", "mine", "kl_beta=0.1")
    assert code == 2 and "mine.toml: exists already: choose another name, or replace it with --force" in error
    assert ctl("preset", "save", "mine", "kl_beta=0.1", "--force", "--summary", "x")[0] == 0
    assert ctl("preset", "show", "mine")[1] == "# mine: x\nkl_beta = 0.1\n"
    assert ctl("preset", "save", "tiny", "kl_beta=0.1")[0] == 2
    code, _, error = ctl("preset", "show", "tinny")
    assert code == 2 and "did you mean 'tiny'?" in error


def test_help_of_each_action_and_its_examples(ctl):
    for command, actions in {"config": "show set unset diff", "preset": "list show save apply"}.items():
        code, out, _ = ctl(command, "--help")
        assert code == 0 and "examples:" in out
        for action in actions.split():
            assert f"rlvrctl.py {command} {action}" in out
    code, out, _ = ctl("config", "set", "--help")
    assert code == 0 and "training.toml or eval.toml" in " ".join(out.split())
    assert ctl("config", "shwo")[0] == 2
