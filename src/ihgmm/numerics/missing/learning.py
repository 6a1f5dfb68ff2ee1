"""How to fill missing cells is learnt from the observed cells of some rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from ihgmm.matrix import HOST, Matrix, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics.missing.donors import Donors, root_mean_squares
from ihgmm.numerics.missing.em import (
    TrainingCells,
    improved_model,
    means_of_observed,
    model_of_complete_rows,
)
from ihgmm.numerics.missing.filler import Filler
from ihgmm.numerics.missing.low_rank import LowRankModel
from ihgmm.policy import Filling


def learn_filler(
    X: Matrix, *, ranks: tuple[int, ...] = Filling.RANKS, max_rows: int = Filling.ROWS
) -> Filler:
    """Learn to fill missing cells from the observed cells of some rows.

    The model is fitted by expectation and maximisation. The rank, and whether scales
    differ, are those that predict a tenth of the observed cells best which the fit did
    not see. The same data are always filled in the same way.
    """
    cells, rng = sampled_cells(X, max_rows)
    training, column_sizes = _normalised(cells)
    if len(training.values) == 0:
        n_features = X.shape[1]
        return Filler(
            loadings=np.zeros((n_features, 1)),
            noise_levels=np.ones(n_features),
            mean=np.zeros(1),
            sizes=np.ones(n_features),
        )

    with sized_threads(training.values.size):
        trial = _Trial.of(training, rng)
        completion = _choose_rank(trial, ranks, rng)
        start = _choose_spread(trial, completion)
        model = _improved(training, start)
        choice = _choose_donors(trial, _improved(trial.cells, start), rng)
        donors = None
        if choice.share >= Filling.LEAST_SHARE:
            donors = choice.draw_donors(training, model, rng)

    sizes = column_sizes * (np.exp(model.log_scale) * X.unit)
    return Filler(
        loadings=model.loadings * sizes[:, None],
        noise_levels=np.sqrt(model.variances) * sizes,
        mean=model.mean,
        sizes=sizes,
        spread=model.spread,
        nonnegative=bool((training.values >= 0).all()),
        donors=donors,
    )


def sampled_cells(X: Matrix, max_rows: int) -> tuple[np.ndarray, np.random.Generator]:
    """Return the cells of some rows to learn from, and the generator that drew them."""
    n_samples, n_features = X.shape
    # A seed that nobody else takes: had a test drawn its missing cells by the same
    # numbers, no cell drawn here would be an observed one.
    rng = np.random.default_rng([0x6D697373696E67, n_samples, n_features])
    most_rows = max(Filling.LEAST_ROWS, Filling.ENTRIES // n_features)
    rows = _draw_rows(n_samples, min(n_samples, max_rows, most_rows), rng)
    return to_host(X.rows(np.sort(rows))).astype(np.float64), rng


def _draw_rows(n_rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return positions of so many rows, in any order; all of them if there are less."""
    if size >= n_rows:
        return np.arange(n_rows)
    return rng.choice(n_rows, size, replace=False)


def _normalised(cells: np.ndarray) -> tuple[TrainingCells, np.ndarray]:
    """Return rows in units of columns, divided by their size, and these units.

    Rows without an observed cell that is not zero are left out.
    """
    is_observed = ~np.isnan(cells)
    values = np.where(is_observed, cells, 0.0)
    lengths = np.sqrt(means_of_observed(values.T**2, is_observed.T))

    # Sorted, so that what is drawn does not hang on the order of rows.
    rows = np.flatnonzero(lengths > 0)
    rows = rows[np.lexsort((values[rows] / lengths[rows, None]).T)]
    values = values[rows] / lengths[rows, None]
    is_observed = is_observed[rows]

    # Columns count alike, but for those that hardly differ from zero: they hold
    # little of what rows are compared by.
    columns = np.sqrt(means_of_observed(values**2, is_observed))
    least_column = Filling.LEAST_COLUMN * np.sqrt(np.mean(columns**2))
    columns = np.maximum(columns, least_column)
    values /= columns

    sizes = np.sqrt(means_of_observed(values.T**2, is_observed.T))
    values /= sizes[:, None]
    training = TrainingCells(
        values=values,
        is_observed=is_observed,
        log_sizes=np.log(sizes * lengths[rows]),
    )

    return training, columns


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows of which a tenth of the observed cells is hidden, to be predicted."""

    cells: TrainingCells  # in which hidden cells count as not observed
    is_hidden: np.ndarray  # (n_rows, n_features)

    @classmethod
    def of(cls, training: TrainingCells, rng: np.random.Generator) -> _Trial:
        """Draw rows, and the cells of them that are hidden."""
        n_rows, n_features = training.values.shape
        size = max(Filling.LEAST_ROWS, Filling.CHOOSING // n_features)
        cells = training.take(_draw_rows(n_rows, size, rng))
        is_drawn = rng.random(cells.values.shape) < Filling.ASKED
        is_hidden = cells.is_observed & is_drawn
        return cls(
            cells=replace(cells, is_observed=cells.is_observed & ~is_hidden),
            is_hidden=is_hidden,
        )

    def error(
        self, predictions: np.ndarray, row_weights: np.ndarray | float = 1.0
    ) -> float:
        """Return the sum of squared errors of predictions of the hidden cells."""
        errors = (predictions - self.cells.values) * row_weights
        return float(np.sum(errors[self.is_hidden] ** 2))


@dataclass(frozen=True, eq=False)
class _Completion:
    """Rows whose missing cells hold guesses by a model of some rank."""

    values: np.ndarray  # (n_rows, n_features)
    loadings: np.ndarray  # (n_features, rank), the leading ones last
    fit: np.ndarray  # (n_rows, n_features): what the model says of all cells


def _choose_rank(
    trial: _Trial, ranks: tuple[int, ...], rng: np.random.Generator
) -> _Completion:
    """Return guesses by the rank that predicts the hidden cells best.

    Guesses of a rank start from those of the rank before. Ranks end where two of them
    were worse than the best, or where they would cost too much.
    """
    cells = trial.cells
    n_features = cells.values.shape[1]
    sizes = np.exp(cells.log_sizes - np.median(cells.log_sizes))
    # A few large rows do not rule.
    row_weights = np.minimum(sizes, Filling.CLIP)[:, None]

    completion = best = _completion_by_means(cells)
    least_error = np.inf
    n_worse = 0
    for rank in ranks:
        # A round solves a system of this rank for each column.
        costs_much = rank**2 * n_features > Filling.RANK_COST
        is_large = rank >= min(cells.values.shape) or costs_much
        if n_worse == 2 or (is_large and np.isfinite(least_error)):
            break

        n_more = rank - completion.loadings.shape[1]
        more_loadings = rng.standard_normal((n_features, n_more))
        loadings = np.hstack([more_loadings, completion.loadings])
        completion = _improved_completion(cells, completion.values, loadings)

        error = trial.error(completion.fit, row_weights)
        n_worse += 1
        if error < least_error:
            best = completion
            least_error = error
            n_worse = 0

    return best


def _completion_by_means(cells: TrainingCells) -> _Completion:
    """Return rows whose missing cells hold the means of columns: of rank 0."""
    column_means = means_of_observed(cells.values, cells.is_observed)
    values = np.where(cells.is_observed, cells.values, column_means)
    return _Completion(
        values=values, loadings=np.empty((values.shape[1], 0)), fit=values
    )


def _improved_completion(
    cells: TrainingCells, values: np.ndarray, loadings: np.ndarray
) -> _Completion:
    """Return guesses by a model of so many loadings, by turns with the model.

    Guesses count as if they were observed: to leave them out would take a system for
    each row, and cost much.
    """
    for _ in range(Filling.GUESSES):
        model = model_of_complete_rows(values, cells.is_observed, loadings)
        loadings = model.loadings
        weighted_loadings = model.weighted_loadings
        precision = weighted_loadings.T @ loadings + np.eye(model.rank)
        positions = np.linalg.solve(precision, (values @ weighted_loadings).T).T
        fit = positions @ loadings.T
        values = np.where(cells.is_observed, cells.values, fit)

    return _Completion(values=values, loadings=loadings, fit=fit)


def _choose_spread(trial: _Trial, completion: _Completion) -> LowRankModel:
    """Return a model whose scales are equal or differ, as predicts hidden cells best.

    Zeros may say that a scale is small: then equal ones predict better. Small rows
    count as much as others here. A low rank is enough to tell.
    """
    cells = trial.cells
    leading_loadings = completion.loadings[:, -Filling.SCALE_RANK :]
    start = model_of_complete_rows(
        completion.values, cells.is_observed, leading_loadings
    )
    start = replace(start, log_scale=float(np.median(cells.log_sizes)))

    models = []
    for spread in (Filling.FIRST_SPREAD, Filling.LEAST_SPREAD):
        model = replace(start, spread=spread)
        for _ in range(Filling.ROUNDS):
            model = improved_model(cells, model)
        models.append(model)

    errors = [trial.error(cells.posterior(model).cell_means()) for model in models]
    best = models[np.argmin(errors)]
    if completion.loadings.shape[1] <= Filling.SCALE_RANK:
        return best

    whole = model_of_complete_rows(
        completion.values, cells.is_observed, completion.loadings
    )
    return replace(whole, log_scale=best.log_scale, spread=best.spread)


def _improved(cells: TrainingCells, model: LowRankModel) -> LowRankModel:
    """Return a model after the last rounds."""
    for _ in range(Filling.LAST_ROUNDS):
        model = improved_model(cells, model)
    return model


@dataclass(frozen=True)
class _DonorChoice:
    """How donors are used."""

    by_direction: bool  # whether they are divided by their size
    share: float  # of the way to what they say
    error: float  # sum of squared errors of hidden cells

    def draw_donors(
        self, cells: TrainingCells, model: LowRankModel, rng: np.random.Generator
    ) -> Donors:
        """Return some rows as donors, in which a model has filled what is missing."""
        n_rows, n_features = cells.values.shape
        size = min(Filling.DONORS, Filling.DONOR_ENTRIES // n_features)
        drawn = cells.take(_draw_rows(n_rows, max(size, 1), rng))

        rows = _with_guesses(drawn, model)
        if self.by_direction:
            rows /= root_mean_squares(HOST, rows)
        else:
            rows *= _sizes(drawn, model)
        return Donors(
            rows=rows,
            is_observed=drawn.is_observed.astype(np.float64),
            share=self.share,
        )


def _with_guesses(cells: TrainingCells, model: LowRankModel) -> np.ndarray:
    """Return rows over their sizes, with guesses of a model where cells are missing."""
    guesses = cells.posterior(model).cell_means()
    return np.where(cells.is_observed, cells.values, guesses)


def _sizes(cells: TrainingCells, model: LowRankModel) -> np.ndarray:
    """Return sizes of rows, as a column, in units of a row of usual scale."""
    return np.asarray(np.exp(cells.log_sizes - model.log_scale)[:, None])


def _choose_donors(
    trial: _Trial, model: LowRankModel, rng: np.random.Generator
) -> _DonorChoice:
    """Return the use of donors that predicts hidden cells best.

    Of flowers the size tells something, of customers the direction alone. The share of
    the way to what donors say is that of a regression on what they would change.
    """
    guesses = _with_guesses(trial.cells, model)
    errors = (guesses - trial.cells.values)[trial.is_hidden]

    choices = []
    for by_direction in (True, False):
        whole = _DonorChoice(by_direction=by_direction, share=1.0, error=np.inf)
        donors = whole.draw_donors(trial.cells, model, rng)
        row_sizes = _sizes(trial.cells, model)
        shifts = donors.shifts(HOST, guesses, row_sizes)[trial.is_hidden]

        share = 0.0
        square = shifts @ shifts
        if square > 0:
            share = float(np.clip(-(shifts @ errors) / square, 0.0, 1.0))
        error = float(np.sum((errors + share * shifts) ** 2))
        choices.append(replace(whole, share=share, error=error))

    return min(choices, key=attrgetter("error"))
