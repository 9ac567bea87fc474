"""A chart as a file beside its run: PNG and SVG as vectors by matplotlib, CSV as numbers. Call it from a thread."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlvr.errors import RlvrError
from rlvr.tui.figure import HEX, HUES_LIGHT, Curve, View, kinds_of
from rlvr.tui.series import ChartSpec

FORMATS = ("png", "svg", "csv")
FOLDER = "charts"
"""Where exports go, in the folder of the first run."""


def export(curves: Sequence[Curve], spec: ChartSpec, view: View, run_folder: Path, form: str) -> Path:
    """Write the chart and return where it lies; an earlier one of that name is replaced.

    Raises:
        RlvrError: when the folder cannot be written.
    """
    curves = [replace(curve, metrics=curve.metrics.frozen()) for curve in curves]
    name = "".join(character if character.isalnum() or character in "-_." else "_" for character in spec.name)
    if len(curves) > 1:
        name += "_" + "_".join(curve.name.replace("/", "-") for curve in curves)
    path = run_folder / FOLDER / f"{name}.{form}"
    try:
        path.parent.mkdir(exist_ok=True)
        if form == "csv":
            _write_csv(curves, spec, path)
        else:
            _draw(curves, spec, view, path)
    except OSError as error:
        raise RlvrError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _write_csv(curves: Sequence[Curve], spec: ChartSpec, path: Path) -> None:
    """One line a step of a run, unsmoothed; what a step does not have is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["run", "step", "seconds", *spec.columns])
        for curve in curves:
            metrics = curve.metrics
            columns = [metrics.column("step"), metrics.x(times=True), *map(metrics.column, spec.columns)]
            for step, seconds, *values in zip(*(column.tolist() for column in columns), strict=True):
                cells = ["" if value != value else f"{value:.10g}" for value in (seconds, *values)]
                lines.writerow([curve.name, f"{step:g}", *cells])


def _draw(curves: Sequence[Curve], spec: ChartSpec, view: View, path: Path) -> None:
    # Not pyplot, which keeps state for the whole process: this runs in a thread.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    scale = 100.0 if spec.share else 1.0
    if spec.stacked:
        metrics, kinds = curves[0].metrics, kinds_of(curves, spec)
        names = [kind.removeprefix("outcomes/") for kind in kinds]
        shares = [scale * metrics.smoothed(kind, view.smoothing) for kind in kinds]
        labels = [name.replace("_", " ") for name in names]
        axes.stackplot(metrics.x(view.times), shares, labels=labels, colors=[HEX[name] for name in names])
    else:
        for curve in curves:
            x, color = curve.metrics.x(view.times), HUES_LIGHT[spec.color if len(curves) == 1 else curve.hue]
            if view.smoothing:
                axes.plot(x, scale * curve.metrics.column(spec.columns[0]), color=color, alpha=0.25, linewidth=1)
            smoothed = scale * curve.metrics.smoothed(spec.columns[0], view.smoothing)
            axes.plot(x, smoothed, color=color, linewidth=2, label=curve.name)
    if spec.name in view.log and not spec.stacked:
        axes.set_yscale("log")
    if view.x_range:
        axes.set_xlim(*view.x_range)
    title = spec.name + (f" (smoothed, {view.smoothing:g})" if view.smoothing else "")
    axes.set(title=title, xlabel="seconds" if view.times else "step", ylabel="%" if spec.share else "")
    axes.legend(frameon=False, fontsize="small")
    axes.grid(alpha=0.2)
    figure.savefig(path, dpi=150)
