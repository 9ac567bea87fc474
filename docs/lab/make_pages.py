"""Makes slides.html and by-hand.md from one real update and the receipts and pictures beside this file.

    python docs/lab/make_pages.py

It trains the default start (seed 0), takes the first update of the default run, and writes down what it saw: every
number on the two pages comes from there or from a receipt. It is not needed to read them.
"""

# ruff: noqa: E501
# The prose of the pages stands in lines as long as theirs.

import base64
import copy
import html
import json
import random
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import torch

from rlvr.lab.experiment import fix_threads
from rlvr.lab.model import Transformer
from rlvr.lab.rewards import verified_reward
from rlvr.lab.settings import Settings
from rlvr.lab.task import (
    PUPILS,
    SYMBOLS,
    WEIGHTS,
    Grade,
    Problem,
    encode_answer,
    encode_prompt,
    grade,
    homework,
    operand_pair,
    split_problems,
)
from rlvr.lab.training import answer_log_probabilities, chosen, reinforce, supervised_start, written

HERE = Path(__file__).resolve().parent


class Answer(NamedTuple):
    """One of the eight answers: its grade and advantage, and its probability before and after the update."""

    text: str
    grade: Grade
    advantage: float
    before: float
    after: float


class Lesson(NamedTuple):
    """One group of the first update.

    `prefix` is what the right trace and `rival`, the likeliest wrong answer of the group, have in common; `symbols` has
    (symbol, probability before, after) for what may stand next.
    """

    problem: Problem
    answers: list[Answer]
    mean: float
    rival: str
    prefix: str
    symbols: list[tuple[str, float, float]]


def probabilities(model: Transformer, problem: Problem, texts: list[str]) -> list[float]:
    """The probability that the model writes exactly this text and ends."""
    tokens_BT = torch.tensor([encode_prompt(problem) + encode_answer(text) for text in texts])
    with torch.no_grad():
        logp_BC = chosen(answer_log_probabilities(model, tokens_BT), tokens_BT)
    return (logp_BC * written(tokens_BT[:, len(encode_prompt(problem)) :])).sum(1).exp().tolist()


def next_symbols(model: Transformer, problem: Problem, prefix: str) -> list[float]:
    """The probability of every symbol after the prompt and the beginning of an answer."""
    tokens_BT = torch.tensor([encode_prompt(problem) + encode_answer(prefix)])
    with torch.no_grad():
        return answer_log_probabilities(model, tokens_BT)[0, len(prefix)].exp().tolist()


def take_lesson() -> Lesson:
    fix_threads()
    settings, train = Settings(), split_problems().train
    before = supervised_start(settings, train)
    after = copy.deepcopy(before)
    update = next(reinforce(after, settings, train, verified_reward))
    # The group with the most different rewards shows most; of several the first.
    number = max(range(len(update.rewards)), key=lambda i: (len(set(update.rewards[i])), -i))
    problem, texts = update.problems[number], update.completions[number]
    rows = zip(
        texts,
        update.advantages[number],
        probabilities(before, problem, texts),
        probabilities(after, problem, texts),
        strict=True,
    )
    answers = [Answer(text, grade(problem, text), gain, p, q) for text, gain, p, q in rows]
    rival = max((answer for answer in answers if not answer.grade.verified), key=lambda answer: answer.before).text
    same = next(i for i, (one, other) in enumerate(zip(problem.trace, rival + "\n", strict=False)) if one != other)
    prefix = rival[:same]
    pairs = zip(SYMBOLS, next_symbols(before, problem, prefix), next_symbols(after, problem, prefix), strict=True)
    symbols = sorted(pairs, key=lambda row: -row[1])[:5]
    mean = sum(update.rewards[number]) / len(texts)
    return Lesson(problem, answers, mean, rival, prefix, symbols)


# ---------------------------------------------------------------------------------------------------------------------
# by-hand.md


def share(p: float) -> str:
    """A probability in percent, with digits where they are."""
    return f"{100 * p:.3g} %"


def by_hand(lesson: Lesson) -> str:
    problem = lesson.problem
    rows = []
    for number, answer in enumerate(lesson.answers, 1):
        parts = " + ".join(f"{WEIGHTS[n]:.2f}" for n, right in answer.grade._asdict().items() if right) or "0"
        change = 100 * (answer.after / answer.before - 1)
        rows.append(
            f"| {number} | `{answer.text}` | {parts} | {answer.grade.reward:.2f} | {answer.advantage:+.3f} | "
            f"{share(answer.before)} | {share(answer.after)} | {change:+.0f} % |"
        )
    rewards = " + ".join(f"{answer.grade.reward:.2f}" for answer in lesson.answers)
    first = lesson.answers[0]
    symbols = "\n".join(
        f"| `{symbol.replace(chr(10), 'end')}` | {share(p)} | {share(q)} |" for symbol, p, q in lesson.symbols
    )
    right, wrong = problem.trace[len(lesson.prefix)], (lesson.rival + "\n")[len(lesson.prefix)]
    return f"""# One update, by hand

Made by `python docs/lab/make_pages.py`: the first update of the default run with seed 0. It asks 16 problems and samples eight
answers to each; this is one of the 16 groups.

The problem is `Q:{problem.a}+{problem.b},*{problem.c}`, and the only answer with full marks is `{problem.trace}`.

**Eight samples, eight rewards.** The verifier adds up what is right: format {WEIGHTS["format"]:.2f}, addition \
{WEIGHTS["addition"]:.2f}, multiplication {WEIGHTS["multiplication"]:.2f}, answer {WEIGHTS["answer"]:.2f}.

| | answer | components | reward | advantage | probability before | after | change |
|---:|---|---|---:|---:|---:|---:|---:|
{chr(10).join(rows)}

**Eight advantages.** The mean reward of the group is ({rewards}) / 8 = {lesson.mean:.4f}. An advantage is the reward minus that
mean: for the first answer {first.grade.reward:.2f} - {lesson.mean:.4f} = {first.advantage:+.3f}. They sum to zero: the group is \
its own yardstick, and no other model has to say
how hard the problem was.

**What moves.** The loss is minus the mean, over all symbols that were written, of advantage times log-probability. Its gradient
pushes every symbol of an answer up when the answer was better than its group, and down when it was worse. The last columns
show the probability of the whole answer before and after this one update. The same answer can stand there twice; then both of its
samples push it. All 16 groups push at the same weights, and the optimizer (Adam) gives every weight a step of about the same
size, so an answer can also move against its own advantage: read the direction of many, not of one.

**Where right and wrong part.** The likeliest wrong answer of the group is `{lesson.rival}`. Up to `{lesson.prefix}` it is right; the
next symbol should be `{right}`, and there it writes `{wrong.strip()}`:

| symbol | before | after |
|---|---:|---:|
{symbols}

One update moves little. Thirty of them make the curves of [the lab's page](README.md).
"""


# ---------------------------------------------------------------------------------------------------------------------
# slides.html


def cells(text: str) -> str:
    shown = (symbol.replace("\n", "↵") for symbol in text)
    return "".join(f"<span class=token>{html.escape(symbol)}</span>" for symbol in shown)


def picture(name: str, alt: str) -> str:
    data = base64.b64encode((HERE / name).read_bytes()).decode()
    return f'<img alt="{alt}" src="data:image/png;base64,{data}">'


def split_grid() -> str:
    """The operand pairs as an SVG: a across, b down, a colour per part of the split."""
    split = split_problems()
    colors = {"train": "#c9d8ea", "validation": "#f2c14e", "test": "#c0392b"}
    size = 22
    squares = [
        f'<rect x="{p.a * size}" y="{p.b * size}" width="{size - 2}" height="{size - 2}" fill="{colors[name]}"/>'
        for name, part in split._asdict().items()
        for p in part
        if p.c == 2
    ]
    counts = {name: len(set(map(operand_pair, part))) for name, part in split._asdict().items()}
    legend = " ".join(
        f'<span style="background:{color}" class=key>{name}: {counts[name]} pairs</span>'
        for name, color in colors.items()
    )
    return f'<svg viewBox="0 0 {30 * size} {10 * size}" class=grid>{"".join(squares)}</svg><p>{legend}</p>'


def bars(lesson: Lesson) -> str:
    """Advantages as an SVG: a bar per answer around zero."""
    parts = []
    for number, answer in enumerate(lesson.answers):
        height = abs(answer.advantage) * 160
        y = 110 - height if answer.advantage > 0 else 110
        color = "#2a9d4a" if answer.advantage > 0 else "#c0392b"
        text_y = y - 6 if answer.advantage > 0 else y + height + 18
        parts.append(
            f'<rect x="{20 + 95 * number}" y="{y:.1f}" width="60" height="{height:.1f}" fill="{color}"/>'
            f'<text x="{50 + 95 * number}" y="{text_y:.1f}" text-anchor="middle">{answer.advantage:+.2f}</text>'
        )
    line = '<line x1="0" y1="110" x2="780" y2="110" stroke="#333"/>'
    return f'<svg viewBox="0 -25 780 255" class=bars>{line}{"".join(parts)}</svg>'


def table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def mark(right: bool) -> str:
    return "<span class=right>✓</span>" if right else "<span class=wrong>✗</span>"


def code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def range_of(numbers: list[float]) -> str:
    estimate, low, high = (100 * number for number in numbers)
    return f"{estimate:+.1f} points [{low:+.1f}, {high:+.1f}]"


def ends(numbers: list[float]) -> tuple[str, str]:
    """The means of the first five and of the last five."""
    return f"{sum(numbers[:5]) / 5:.2f}", f"{sum(numbers[-5:]) / 5:.2f}"


def slides(lesson: Lesson, five: dict, hack: dict) -> list[str]:
    rng, example = random.Random(1), Problem(2, 3, 2)
    problem, answers = lesson.problem, lesson.answers
    samples = [[str(i), code(a.text)] for i, a in enumerate(answers, 1)]
    graded = [
        [str(i), code(a.text), *(mark(right) for right in a.grade), f"{a.grade.reward:.2f}"]
        for i, a in enumerate(answers, 1)
    ]
    moved = [[code(a.text), f"{a.advantage:+.2f}", share(a.before), share(a.after)] for a in answers]
    pages = [[f"{100 * part:.0f} %", name] for name, part in PUPILS.items()]
    over = five["over_seeds"]
    results = [
        ["exact answers, sampled", range_of(over["exact_gain"]), range_of(over["random_exact_gain"])],
        ["verified traces, sampled", range_of(over["verified_gain"]), range_of(over["random_verified_gain"])],
        ["exact answers, greedy", range_of(over["greedy_gain"]), range_of(over["random_greedy_gain"])],
    ]
    training = hack["runs"][0]["training"]
    hacked = [
        [name, *ends(training[key])]
        for name, key in (("reward", "reward"), ("exact answers", "exact"), ("verified traces", "verified"))
    ]
    says = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in five["what_this_allows_you_to_say"])
    not_says = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in five["what_it_does_not"])
    parameters = five["model_parameters"]
    return [
        f"<h1>Reinforcement learning with verifiable rewards</h1><p class=big>A transformer with {parameters:,} parameters "
        "learns to show its steps, on a laptop, in seconds.</p><p>Arrow keys turn the page, F is full screen, Home and "
        "End go to the first and last.</p>",
        f"<h2>The prompt</h2><p>Add two numbers, multiply by a third, show the steps. A character is a token.</p>"
        f"<p>{cells(example.prompt)}</p><p>The one right answer:</p><p>{cells(example.trace)}</p>",
        f"<h2>What it never trains on</h2><p>Whole pairs of operands, across and down, in both orders and with every "
        f"multiplier, are on one side only.</p>{split_grid()}<p>The checkpoint is chosen on the validation pairs and "
        "reported on the test pairs.</p>",
        f"<h2>The start: imitation</h2><p>First it imitates homework, and most of it is not what we want.</p>"
        f"{table(['share', 'pupil'], pages)}<p>One page, five times: "
        + " · ".join(code(homework(example, rng)) for _ in range(5))
        + "</p>",
        f"<h2>Samples</h2><p>The same problem, {code(problem.prompt.strip())}, eight times. The model rolls dice at every "
        f"symbol, so the answers differ.</p>{table(['', 'answer'], samples)}",
        "<h2>The verifier</h2><p>No opinion and no model: every component is right, or it is not.</p>"
        + table(
            ["", "answer", "format 0.10", "addition 0.25", "multiplication 0.35", "answer 0.30", "reward"], graded
        ),
        f"<h2>The advantage</h2><p>Reward minus the mean of the group, {lesson.mean:.3f}. Better than the others is "
        f"positive, worse is negative.</p>{bars(lesson)}<p>If all eight were equal, nothing would be learned from them.</p>",
        "<h2>The update</h2><p>Push every symbol of an answer up or down by its advantage. The probability of each whole "
        f"answer, before and after this one update:</p>{table(['answer', 'advantage', 'before', 'after'], moved)}"
        "<p>And a leash, the KL penalty, holds the model near its start.</p>",
        f"<h2>Thirty updates</h2>{picture('picture.png', 'Curves, groups, accuracies and answers of a real run')}",
        "<h2>Is it real?</h2><p>Test pairs, five seeds, gain with its 95 % interval over seeds; beside it the same with a "
        f"random reward.</p>{table(['', 'verified reward', 'random reward'], results)}"
        "<p>Sampled gains more than greedy: mostly, the model became surer of what it already preferred.</p>",
        "<h2>You get what you pay for</h2><p>A reward of half for the right number and half for being brief. The model "
        f"finds that a bare guess pays.</p>{table(['while it trains', 'first five updates', 'last five'], hacked)}"
        "<p>The reward rose. What we wanted did not.</p>",
        f"<h2>What this allows you to say</h2><ul class=small>{says}</ul><p>And what not:</p><ul class=small>{not_says}</ul>",
        "<h2>Your turn</h2><pre>python rlvrctl.py lab run\npython rlvrctl.py lab compare --group-size 2 8\n"
        "python rlvrctl.py lab start\npython rlvrctl.py lab check\npython rlvrctl.py lab run --reward student\n"
        "python rlvrctl.py lab run --seeds 5\npython rlvrctl.py lab verify lab/receipt.json</pre>",
    ]


STYLE = """
html,body{margin:0;height:100%;background:#fbfaf7;color:#222;font:22px/1.4 system-ui,sans-serif}
section{display:none;box-sizing:border-box;height:100%;padding:3vh 6vw;overflow:auto}
section.now{display:flex;flex-direction:column;justify-content:center;align-items:center;text-align:center}
h1{font-size:2.2em;margin:.3em}h2{font-size:1.7em;margin:.2em 0 .4em;color:#2a6fbb}.big{font-size:1.3em}
p{margin:.4em 0;max-width:60em}table{border-collapse:collapse;margin:.5em}td,th{padding:.2em .7em;
border-bottom:1px solid #ddd;text-align:left}code,pre,.token{font-family:ui-monospace,Consolas,Menlo,monospace}
code{background:#efece4;padding:.05em .3em;border-radius:3px}pre{text-align:left;background:#efece4;padding:1em}
.token{display:inline-block;border:1px solid #b8b2a4;border-radius:4px;padding:.1em .4em;margin:.1em;background:#fff}
.right{color:#2a9d4a;font-weight:bold}.wrong{color:#c0392b;font-weight:bold}
img{max-width:88vw;max-height:74vh}.grid{width:70vw;max-height:45vh}.bars{width:70vw;max-height:45vh;font-size:18px}
.key{padding:.1em .6em;border-radius:4px;margin:.3em}ul{text-align:left;max-width:56em}.small{font-size:.8em}
footer{position:fixed;right:1em;bottom:.6em;font-size:.6em;color:#888}
"""

SCRIPT = """
const pages=[...document.querySelectorAll('section')],counter=document.querySelector('footer');let now=0;
function show(n){now=Math.max(0,Math.min(pages.length-1,n));pages.forEach((p,i)=>p.classList.toggle('now',i===now));
counter.textContent=(now+1)+' / '+pages.length;history.replaceState(null,'','#'+(now+1))}
addEventListener('keydown',e=>{if(e.ctrlKey||e.metaKey||e.altKey)return;
const step={ArrowRight:1,ArrowDown:1,PageDown:1,' ':1,ArrowLeft:-1,ArrowUp:-1,PageUp:-1}[e.key];
if(step)show(now+step);else if(e.key==='Home')show(0);else if(e.key==='End')show(pages.length-1);
else if(e.key==='f'||e.key==='F'){document.fullscreenElement?document.exitFullscreen():
document.documentElement.requestFullscreen()}else return;e.preventDefault()});
addEventListener('click',e=>show(now+(e.clientX<innerWidth/3?-1:1)));
addEventListener('hashchange',()=>show((parseInt(location.hash.slice(1))||1)-1));
show((parseInt(location.hash.slice(1))||1)-1);
"""


def page(sections: list[str]) -> str:
    body = "\n".join(f"<section>{section}</section>" for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>The tiny lab</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n<footer></footer>\n<script>{SCRIPT}</script></body></html>\n"
    )


def main() -> None:
    lesson = take_lesson()
    five = json.loads((HERE / "five-seeds.json").read_text(encoding="utf-8"))
    hack = json.loads((HERE / "brief-reward.json").read_text(encoding="utf-8"))
    (HERE / "by-hand.md").write_text(by_hand(lesson), encoding="utf-8")
    (HERE / "slides.html").write_text(page(slides(lesson, five, hack)), encoding="utf-8")


if __name__ == "__main__":
    main()
