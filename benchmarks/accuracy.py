"""How well the statistics do what they promise, over many draws.

Run ``python benchmarks/accuracy.py`` for all studies or name some: ``labels``,
``noise``, ``memberships``, ``scales``, ``test``. ``--reps`` sets the draws of a cell,
``--jobs`` the processes, ``--save`` keeps the tables in ``results/accuracy.md``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

# Processes share the cores; set before NumPy starts its threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings

import numpy as np
from measure import names_asked, save

from ihgmm import IhGMM, IhSC, estimate_parameters, make_ihgmm, scale_heterogeneity_test
from ihgmm.metrics import exact_recovery, match_labels, misclassification_rate
from ihgmm.paper.oracles import label_oracle

NOISES = ("gaussian", "rademacher")
STRUCTURES = ("individual", "class", "common")

Run = Callable[..., list[Any]]  # what to do, in which cell, how many draws


def draw(seed: int, *shape: int, C: float, **options: Any) -> Any:
    return make_ihgmm(
        *shape,
        separation_constant=C,
        noise=NOISES[seed % 2],
        random_state=seed,
        return_params=True,
        **options,
    )


# -- labels near the threshold ---------------------------------------------------------

LABELS = [
    ((300, 1000, 3), {"C": 0.1, "balance": 0.2}),
    ((300, 1000, 3), {"C": 0.2, "balance": 0.2}),
    ((300, 1000, 3), {"C": 0.5, "balance": 0.2}),
    ((200, 2000, 4), {"C": 0.1}),
    ((500, 200, 4), {"C": 0.2}),
    ((1000, 1000, 8), {"C": 0.1}),
    ((500, 500, 4), {"C": 0.3, "scale_ratio": 3.0}),
    ((500, 500, 4), {"C": 0.6, "scale_ratio": 3.0}),
    ((200, 5000, 4), {"C": 0.6, "scale_ratio": 3.0, "noise_levels": (1 / 3, 3.0)}),
]


def labels_one(cell: Any, seed: int) -> list[float]:
    shape, options = cell
    s = draw(seed, *shape, **options)
    k = shape[2]
    found = (
        IhSC.paper(k, random_state=seed).fit_predict(s.X),
        IhSC(k, random_state=seed).fit_predict(s.X),
        IhSC(k, refine=True, random_state=seed).fit_predict(s.X),
        IhGMM(k, random_state=seed).fit_predict(s.X),
        label_oracle(s),
    )
    return [misclassification_rate(s.labels, labels) for labels in found]


def labels(reps: int, run: Run) -> list[str]:
    """Compare errors with those of one who knows all other labels."""
    lines = ["### Labels near the threshold: mean error", ""]
    lines += [
        "| n, p, K, options | paper | default | refined | IhGMM | label oracle "
        "| refined / oracle | IhGMM - refined (standard error) |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for cell in LABELS:
        rates = np.array(run(labels_one, cell, 2 * reps))
        mean = rates.mean(axis=0)
        gap = rates[:, 3] - rates[:, 2]
        error = gap.std() / np.sqrt(len(gap))
        words = ", ".join(
            f"{name} {value:.2g}" if np.isscalar(value) else "ninefold noise"
            for name, value in cell[1].items()
        )
        figures = " | ".join(f"{value:.4f}" for value in mean)
        lines.append(
            f"| {', '.join(map(str, cell[0]))}, {words} | {figures} | "
            f"{mean[2] / mean[4]:.2f} | {gap.mean():+.4f} ({error:.4f}) |"
        )
    return lines


# -- the structure of the noise --------------------------------------------------------

NOISE = [
    ((300, 1000, 3), {"C": 0.5, "balance": 0.2}),
    ((200, 2000, 4), {"C": 0.3}),
    ((500, 200, 4), {"C": 0.3}),
    ((500, 200, 4), {"C": 1.0, "scale_ratio": 3.0}),
    ((200, 50, 3), {"C": 1.0, "scale_ratio": 5.0}),
    ((60, 3000, 3), {"C": 1.0, "scale_ratio": 5.0}),
]


def noise_structure_one(cell: Any, seed: int) -> bool:
    (shape, options), true = cell
    s = draw(seed, *shape, noise_structure=true, **options)
    values = {
        noise: IhGMM(shape[2], noise=noise, random_state=seed).fit(s.X).bic(s.X)
        for noise in STRUCTURES
    }
    return min(values, key=lambda noise: values[noise]) == true


def noise(reps: int, run: Run) -> list[str]:
    """Choose the noise structure by BIC."""
    lines = ["### The noise structure with the smallest BIC is the true one", ""]
    lines += ["| n, p, K, C | individual | class | common |", "|---|---:|---:|---:|"]
    for setting in NOISE:
        shares = [
            np.mean(run(noise_structure_one, (setting, true), reps))
            for true in STRUCTURES
        ]
        shape = ", ".join(map(str, setting[0]))
        figures = " | ".join(f"{share:.2f}" for share in shares)
        lines.append(f"| {shape}, {setting[1]['C']:g} | {figures} |")
    return lines


# -- intervals for scales --------------------------------------------------------------

SCALES = [
    (shape, ratio, constant)
    for shape in ((500, 200, 4), (200, 2000, 4), (300, 1000, 3), (1000, 300, 8))
    for ratio in (1, 3, 20)
    for constant in (1.0, 3.0)
]


def scales_one(cell: Any, seed: int) -> list[float] | None:
    shape, ratio, constant = cell
    s = draw(
        seed, *shape, C=constant, scale_ratio=ratio,
        noise_structure=STRUCTURES[seed % 3], balance=(0.2, 1.0)[seed // 3 % 2],
    )  # fmt: skip
    found = IhSC(shape[2], random_state=seed).fit_predict(s.X)
    if not exact_recovery(s.labels, found):
        return None
    estimates = estimate_parameters(s.X, s.labels)
    mean = np.bincount(s.labels, s.scales) / np.bincount(s.labels)
    truth = s.scales / mean[s.labels]
    lower, upper = estimates.scale_intervals(0.95).T
    inside = (lower <= truth) & (truth <= upper)
    centers = s.centers * mean[:, None]
    lower, upper = np.moveaxis(estimates.center_intervals(0.95), -1, 0)
    near = (lower <= centers) & (centers <= upper)
    return [inside.mean(), near.mean()]


def scales(reps: int, run: Run) -> list[str]:
    """Count how often intervals hold the truth, where labels were recovered."""
    lines = ["### Coverage of 95% intervals where IhSC recovers all labels", ""]
    lines += ["| n, p, K, R, C | draws | scales | centres |", "|---|---:|---:|---:|"]
    for cell in SCALES:
        draws = [rates for rates in run(scales_one, cell, reps) if rates]
        shape = ", ".join(map(str, cell[0]))
        name = f"| {shape}, {cell[1]}, {cell[2]:g} | {len(draws)} |"
        if len(draws) < 5:
            lines.append(f"{name} - | - |")
            continue
        inside, near = np.mean(draws, axis=0)
        lines.append(f"{name} {inside:.3f} | {near:.3f} |")
    return lines


# -- the test of equal scales ----------------------------------------------------------

TEST = [
    (shape, levels)
    for shape in ((100, 50, 4), (100, 5000, 4), (500, 200, 4), (200, 1000, 3))
    for levels in ((0.5, 1.5), (1 / 3, 3.0))
] + [((2000, 50, 4), (0.5, 1.5))]


def test_one(cell: Any, seed: int) -> float:
    (shape, levels), ratio = cell
    s = draw(seed, *shape, C=3.0, scale_ratio=ratio, noise_levels=levels)
    found = IhSC(shape[2], random_state=seed).fit_predict(s.X)
    return scale_heterogeneity_test(s.X, found, random_state=seed).p_value


def test(reps: int, run: Run) -> list[str]:
    """Count rejections at level 5%, with labels found by IhSC."""
    lines = ["### The test of equal scales: rejections at level 5%", ""]
    lines += [
        "| n, p, K, noise levels | equal scales (standard error) | R = 1.5 |",
        "|---|---:|---:|",
    ]
    for cell in TEST:
        shares = []
        many = 16 * reps
        for ratio, draws in ((1.0, many), (1.5, reps)):
            values = np.array(run(test_one, (cell, ratio), draws))
            shares.append(np.mean(values < 0.05))
        shape = ", ".join(map(str, cell[0]))
        levels = f"{cell[1][0]:.2g} to {cell[1][1]:.2g}"
        error = np.sqrt(0.05 * 0.95 / many)
        lines.append(
            f"| {shape}, {levels} | {shares[0]:.3f} ({error:.3f}) | {shares[1]:.3f} |"
        )
    return lines


# -- memberships -----------------------------------------------------------------------

MEMBERSHIPS = [(1, 1.0), (1.5, 0.8), (3, 0.5), (8, 0.25), (20, 0.15)]


def memberships_one(cell: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    ratio, constant = cell
    s = draw(seed, 400, 100, 4, C=constant, scale_ratio=ratio)
    model = IhGMM(4, random_state=seed).fit(s.X)
    right = match_labels(s.labels, model.labels_) == s.labels
    return model.memberships_.max(axis=1), right


def memberships(reps: int, run: Run) -> list[str]:
    """Compare the largest membership of rows with how often their label is right."""
    lines = ["### Memberships of IhGMM: share of labels that are right", ""]
    lines += [
        "| R, C | error | expected by memberships | right at 0.6 to 0.75 "
        "| 0.75 to 0.85 | 0.85 to 0.95 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for cell in MEMBERSHIPS:
        pairs = run(memberships_one, cell, reps)
        sure, right = (np.concatenate(part) for part in zip(*pairs, strict=True))
        shares = [
            f"{right[(sure >= low) & (sure < high)].mean():.2f}"
            for low, high in ((0.6, 0.75), (0.75, 0.85), (0.85, 0.95))
        ]
        lines.append(
            f"| {cell[0]}, {cell[1]:g} | {1 - right.mean():.3f} "
            f"| {1 - sure.mean():.3f} | {' | '.join(shares)} |"
        )
    return lines


STUDIES = {f.__name__: f for f in (labels, noise, memberships, scales, test)}


def call(task: tuple[Callable[[Any, int], Any], Any, int]) -> Any:
    one, cell, seed = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # near the threshold not all converges
        return one(cell, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--reps", type=int, default=50, help="draws of a cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--save", action="store_true", help="to accuracy.md")
    options = parser.parse_args()
    names = names_asked(parser, options.studies, STUDIES)
    parts = []
    with ProcessPoolExecutor(options.jobs) as pool:

        def run(one: Callable[[Any, int], Any], cell: Any, draws: int) -> list[Any]:
            tasks = [(one, cell, seed) for seed in range(draws)]
            return list(pool.map(call, tasks, chunksize=2))

        for name in names:
            parts.append("\n".join(STUDIES[name](options.reps, run)))
            print(parts[-1], end="\n\n", flush=True)
    if options.save:
        head = f"# Accuracy\n\n`python benchmarks/accuracy.py --reps {options.reps}`\n"
        save("accuracy.md", "\n\n".join([head, *parts]))


if __name__ == "__main__":
    main()
