"""The keys: checked wherever they come from, with messages that name file, key and reason."""

import argparse
import dataclasses
import tomllib

import pytest

from rlvr import config
from rlvr.config import EvalConfig, TrainConfig
from rlvr.errors import RlvrError

CLASSES = [TrainConfig, EvalConfig]


def from_flags(*flags, config_class=TrainConfig):
    parser = argparse.ArgumentParser()
    config.add_flags(parser, config_class)
    return config.config_from_flags(parser.parse_args(flags), config_class)


@pytest.mark.parametrize("config_class", CLASSES)
def test_every_default_passes_its_own_check_and_has_help(config_class):
    for key in config.keys(config_class).values():
        assert key.check(key.default, "default") == key.default
        assert key.help and not key.help.endswith(".")
        assert key.choices or key.type in (str, bool, tuple) or (key.low is not None and key.high is not None), (
            key.name
        )


def test_every_preset_key_is_known_to_a_program_and_valid():
    known = {**config.keys(TrainConfig), **config.keys(EvalConfig)}
    for name, values in config.PRESETS.items():
        for key, value in values.items():
            assert known[key].check(value, name) == value


def test_presets_have_a_line_for_people_and_the_first_is_the_defaults():
    assert config.PRESET_SUMMARIES.keys() == config.PRESETS.keys()
    defaults = {**vars(EvalConfig()), **vars(TrainConfig())}
    assert all(defaults[key] == value for key, value in config.PRESETS["gemma4-e2b"].items())
    for name, values in config.PRESETS.items():
        train = TrainConfig(**{key: value for key, value in values.items() if key in config.keys(TrainConfig)})
        assert train.prompts_per_step * train.num_generations % train.completions_per_forward == 0, name
        assert train.max_completion_length < train.max_seq_length, name


def test_the_public_defaults_are_the_documented_ones():
    train, evaluation = TrainConfig(), EvalConfig()
    assert (train.base_model, train.lora_rank, train.lora_alpha) == ("unsloth/gemma-4-E2B-it", 32, 64)
    assert (train.learning_rate, train.num_generations, train.max_steps, train.temperature) == (5e-5, 4, 250, 1.0)
    assert (train.max_seq_length, train.min_terms, train.n_show, train.max_eval_terms) == (4096, 20, 10, 40)
    assert (train.limit, train.require_keywords) == (5000, ("easy", "nonn"))
    assert (evaluation.num_tasks, evaluation.samples, evaluation.max_new_tokens) == (40, 1, 3072)


def test_later_layers_win_and_the_origin_says_which(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("learning_rate = 1\nmax_steps = 7\n")
    resolved, origins = from_flags("--preset", "tiny", "--config", str(file), "--max-steps", "9")
    assert resolved.base_model == "tiny" and origins["base_model"] == "preset tiny"
    assert resolved.learning_rate == 1.0 and origins["learning_rate"] == str(file)
    assert resolved.max_steps == 9 and origins["max_steps"] == "command line"
    assert resolved.seed == 0 and origins["seed"] == "default"


def test_a_snapshot_is_read_back_as_it_was(tmp_path):
    resolved, origins = from_flags("--require-keywords", "nonn, core", "--kl-beta", "0", "--show-name", "no")
    path = tmp_path / "config.toml"
    config.write_snapshot(path, resolved, origins, {"torch": "2"})
    _, layer = config.read_layer(path, TrainConfig)
    assert config.resolve(TrainConfig, [("file", layer)])[0] == resolved
    assert resolved.require_keywords == ("nonn", "core") and resolved.show_name is False
    document = tomllib.loads(path.read_text())
    assert document["origin"]["kl_beta"] == "command line" and document["provenance"] == {"torch": "2"}
    assert set(document) - {"origin", "provenance"} == {field.name for field in dataclasses.fields(TrainConfig)}


def test_a_run_started_from_a_snapshot_records_where_each_value_really_came_from(tmp_path):
    layers = [("model.toml", {"kl_beta": 0.0, "seed": 4}), ("training.toml [ephemeral]", {"max_steps": 7})]
    resolved, origins = config.resolve(TrainConfig, layers)
    path = tmp_path / "config.toml"
    config.write_snapshot(path, resolved, origins, {"torch": "2"})
    again, again_origins = from_flags("--config", str(path))
    assert (again, again_origins) == (resolved, origins)
    assert origins["max_steps"] == "training.toml [ephemeral]" and origins["top_p"] == "default"
    changed, changed_origins = from_flags("--config", str(path), "--seed", "5")
    assert changed_origins == {**origins, "seed": "command line"} and changed.seed == 5
    path.write_text(path.read_text().replace("top_p = 1.0", "top_p = 0.5"))  # by hand: no longer the default
    assert from_flags("--config", str(path))[1]["top_p"] == str(path)
    path.write_text("origin = 3\n")
    with pytest.raises(RlvrError, match="config.toml: origin must be a table"):
        from_flags("--config", str(path))


def test_a_byte_order_mark_is_not_part_of_a_file(tmp_path):
    (tmp_path / "some.toml").write_bytes(b"\xef\xbb\xbfseed = 4\r\n")
    assert config.read_layer(tmp_path / "some.toml", TrainConfig)[1] == {"seed": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning_rat = 1e-4", "unknown key 'learning_rat': did you mean 'learning_rate'"),
        ("num_tasks = 3", "unknown key 'num_tasks'"),
        ('max_steps = "7"', "max_steps = '7' must be an integer"),
        ("max_steps = true", "max_steps = True must be an integer"),
        ("max_steps = 2.5", "max_steps = 2.5 must be an integer"),
        ("max_steps = 0", "max_steps = 0 must be 1 to"),
        ("learning_rate = nan", "learning_rate = nan must be 0 to 1"),
        ("learning_rate = inf", "learning_rate = inf must be 0 to 1"),
        ('loss_type = "dr-grpo"', "loss_type = 'dr-grpo' must be one of"),
        ('require_keywords = "easy"', "require_keywords = 'easy' must be a list of strings"),
        ("require_keywords = [1]", "require_keywords = [1] must be a list of strings"),
        ("show_name = 1", "show_name = 1 must be true or false"),
        ("max_steps = ", "not valid TOML"),
        ("max_steps = 1\nmax_steps = 2", "not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, text, expected):
    file = tmp_path / "some.toml"
    file.write_text(text)
    with pytest.raises(RlvrError, match="some.toml") as error:
        config.read_layer(file, TrainConfig)
    assert expected in str(error.value)


def test_a_missing_or_undecodable_file_is_refused_by_name(tmp_path):
    with pytest.raises(RlvrError, match="absent.toml: no such file"):
        config.read_layer(tmp_path / "absent.toml", TrainConfig)
    (tmp_path / "latin.toml").write_bytes(b'corpus_dir = "\xe9"')
    with pytest.raises(RlvrError, match="latin.toml: cannot be read"):
        config.read_layer(tmp_path / "latin.toml", TrainConfig)


@pytest.mark.parametrize(
    "flags",
    [
        ("--max-steps", "many"),
        ("--seed", "-1"),
        ("--show-name", "maybe"),
        ("--lr-scheduler", "cosin"),
        ("--preset", "x"),
    ],
)
def test_a_bad_flag_is_refused(flags):
    with pytest.raises(RlvrError):
        from_flags(*flags)


@pytest.mark.parametrize(("name", "hint"), [("tinny", "did you mean 'tiny'?"), ("xyzzy", "known: gemma4-e2b, ")])
def test_an_unknown_preset_gets_the_nearest(name, hint):
    with pytest.raises(RlvrError, match=f"unknown preset {name!r}: {hint}".replace("?", r"\?")):
        from_flags("--preset", name)


def test_an_unknown_key_that_is_like_no_other_is_one_short_line(tmp_path):
    (tmp_path / "some.toml").write_text("xyzzy = 1")
    with pytest.raises(RlvrError, match=r"unknown key 'xyzzy': --help lists them$"):
        config.read_layer(tmp_path / "some.toml", TrainConfig)
