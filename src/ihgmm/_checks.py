"""Checks of data, of what goes with its rows, and warnings of what they show."""

import re
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import validation

from ihgmm._parameters import call, making_array, option
from ihgmm._warnings import (
    ClusterCountWarning,
    PreparationWarning,
    UnstableLabelsWarning,
    sklearn_filters,
    warn,
)
from ihgmm.matrix import (
    HOST,
    Filled,
    Matrix,
    Scaled,
    Tall,
    as_matrix,
    row_lengths,
    to_host,
)
from ihgmm.matrix.kinds import NA_OF_R, recognize
from ihgmm.numerics.missing import Filler
from ihgmm.policy import Small, Weighting


def check_matrix(
    X: Any, estimator: Any = None, *, reset: bool = True, missing: str | None = None
) -> Matrix:
    """Return data of any kind as a matrix whose squares neither overflow nor vanish.

    Data of extreme size are divided by a power of two, their ``unit``, and rows that
    vanish beside the longest are zero. ``missing="fit"`` allows NaN.
    """
    matrix = open_matrix(X, estimator, reset=reset)
    info = np.finfo(matrix.dtype)
    tiny, largest = float(info.tiny), float(info.max)
    # A row with a smaller square than this could not be divided by it.
    least = max(tiny, float(np.sqrt(np.finfo(np.float64).tiny)))
    known, total = matrix, _total(matrix, least)
    if missing == "fit" and np.isnan(total):
        known = Filled(matrix)
        total = _total(known, least)
    if np.sqrt(tiny) < total < np.sqrt(largest) * 1e12:
        return matrix
    count, row, column, value = known.not_finite()
    if count:
        name = column if matrix.names is None else repr(matrix.names[column])
        who = "ihgmm" if estimator is None else type(estimator).__name__
        raise ValueError(
            f"Input X contains {'NaN' if np.isnan(value) else 'infinity'} at row "
            f"{row}, column {name} (counted from 0; NaN, masked or infinite entries in "
            f"all: {count}). {who} does not accept them: drop those rows, or fill them "
            f"in (for NaN, IhSC and IhGMM do with {option('missing', 'fit')})."
        )
    peak = known.max_abs()
    if peak == 0:
        return matrix
    if peak > largest / 1e4:  # lengths and sums of rows would overflow
        raise ValueError(
            f"The largest entry of X is {peak:.3g}, and {matrix.dtype} holds numbers "
            f"up to {largest:.2g}. Divide X by a large number."
        )
    centers = None if reset else getattr(estimator, "cluster_centers_", None)
    if centers is not None and not getattr(estimator, "_centers_are_directions", False):
        size = float(np.abs(to_host(centers)).max())
        # Squares of quotients are in float64, and cubes of their roots in the type.
        far = min(largest ** (2 / 3), 1e150)
        if size > 0 and not 1 / far < peak / size < far:
            raise ValueError(
                f"The largest entry of X is {peak:.3g}, and centres of the fit have "
                f"entries up to {size:.3g}. Give new rows in the units of the fit."
            )
    scaled = matrix.rescaled(2.0 ** -float(np.clip(np.floor(np.log2(peak)), -1e3, 1e3)))
    known = scaled if known is matrix else Filled(scaled)
    faint = (known.sqnorms > 0) & (known.sqnorms < least)
    count = count_rows(known, faint)
    if count == 0:
        return scaled
    warn(
        f"{count:,} of {matrix.shape[0]:,} rows of X are shorter than "
        f"{np.sqrt(least):.0e} of its largest entry, and count as zero beside it. "
        "Check that entry, or divide each row by its length.",
        DataConversionWarning,
    )
    return Scaled(scaled, rows=~faint)


def _total(X: Matrix, least: float) -> float:
    """Return the sum of squared norms; infinity if some are positive and too small."""
    xp, sqnorms = X.ops.xp, X.sqnorms
    faint = (sqnorms > 0) & (sqnorms < least)
    return X.ops.number(xp.sum(xp.where(faint, xp.full_like(sqnorms, np.inf), sqnorms)))


def count_rows(X: Matrix, mask: Tall) -> int:
    """Return how many rows of a matrix a mask marks."""
    return int(X.ops.number(X.ops.xp.count_nonzero(mask)))


def complete_matrix(
    X: Any, model: Any, *, of_fit: bool = True, whitened: bool = False
) -> Matrix:
    """Return data as a fitted model fills, turns and, if asked to, whitens them."""
    # Labels are judged by what they were made from; all else is in the user's units.
    data = check_matrix(X, missing=getattr(model, "missing", None))
    for change in getattr(model, "preparation_", ()):
        data = change(data) if whitened or isinstance(change, Filler) else data
    return turned_rows(data, model) if of_fit else data


def turned_rows(data: Matrix, model: Any) -> Matrix:
    """Return rows of a fit, those that point away from their centre turned round."""
    if not getattr(model, "signed", False):
        return data
    signs = np.where(to_host(model.scales_) < 0, -1.0, 1.0)
    fits = len(signs) == data.shape[0]
    return Scaled(data, rows=data.cast(signs)) if fits else data


def open_matrix(X: Any, estimator: Any = None, *, reset: bool = True) -> Matrix:
    """Return data of any kind as a matrix; nothing is read of data on disk."""
    matrix = recognize(X)
    if matrix is not None:
        _check_features(matrix, estimator, reset)
        return matrix
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    if names is not None:
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"X is a data frame of columns {names!r:.80}; give each column a name "
                "of its own, or an array: X.to_numpy()."
            )
        # scikit-learn would take times for numbers.
        _check_numbers({repr(name): X[name] for name in names})
    options: dict[str, Any] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": (np.float64, np.float32),
        "ensure_all_finite": False,  # the row norms show it, and cost less
    }
    try:
        with sklearn_filters:
            if estimator is None:
                array = validation.check_array(X, input_name="X", **options)
            else:
                array = validation.validate_data(estimator, X, reset=reset, **options)
        matrix = as_matrix(array)
    except (TypeError, ValueError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError(
                "Rows of X have different numbers of cells; give each row as many, NaN "
                "where one is missing."
            ) from None
        if getattr(getattr(X, "dtype", None), "kind", "O") in "OUS":
            cells = np.asarray(X, dtype=object)
            _check_numbers(dict(enumerate(cells.T)) if cells.ndim == 2 else {}, error)
        raise
    if names is None or not all(isinstance(name, str) for name in names):
        return matrix
    return matrix.named(names)


def _check_numbers(columns: dict[Any, Any], error: Exception | None = None) -> None:
    """Raise if a column does not hold numbers, as scikit-learn may have found."""
    # Of a mixture of texts and numbers scikit-learn says what is no number.
    why = f" ({error})" if isinstance(error, TypeError) else ""
    bad = []
    for name, column in columns.items():
        kind = str(column.dtype).lower()
        if re.match(r"u?int\d|float|double|half|bool|decimal|sparse", kind):
            continue
        for row, value in enumerate(np.asarray(column, dtype=object)):
            with suppress(TypeError, ValueError):
                if np.ndim(np.float64(value)) == 0:
                    continue
            bad.append(f"{name} ({value!r:.40} in row {row})")
            break
    if bad:
        more = f" and {len(bad) - 3} more" * (len(bad) > 3)
        raise (TypeError if why else ValueError)(
            f"X has columns that do not hold numbers: {', '.join(bad[:3])}{more}; the "
            'first row is 0. Leave such columns out (X.select_dtypes("number") in '
            "pandas, as.matrix(X[sapply(X, is.numeric)]) in R), or turn them into "
            f"numbers, NaN where a cell is missing.{why}"
        ) from None


def _check_features(X: Matrix, estimator: Any, reset: bool) -> None:
    """Check the shape of data that scikit-learn does not know, as it does."""
    n, p = X.shape
    if n == 0 or p == 0:
        raise ValueError(f"Found array with {n} row(s) and {p} feature(s); give some.")
    if estimator is None:
        return
    validation._check_n_features(estimator, X, reset=reset)
    if X.names is None:
        return
    names = np.asarray(X.names, dtype=object)
    if reset:
        estimator.feature_names_in_ = names
    fitted: Any = getattr(estimator, "feature_names_in_", names)
    if (names != fitted).any():
        at = int((names != fitted).argmax())
        raise ValueError(
            "The feature names should match those that were passed during fit: feature "
            f"{at} is {names[at]!r} and was {fitted[at]!r}."
        )


def check_row_count(n_samples: int, n_clusters: int, live: int | None = None) -> None:
    """Raise when there are fewer rows, or fewer that are not zero, than clusters."""
    most = n_samples if live is None else live
    if n_clusters > most:
        what = f"the {most:,} rows of X that are not zero"
        if n_clusters > n_samples:
            most, what = n_samples, option("n_samples", n_samples)
        raise ValueError(
            f"{option('n_clusters', n_clusters)} is more than {what}; give at most "
            f"{most} clusters, or more rows."
        )


def label_array(name: str, labels: Any, n_samples: int | None = None) -> np.ndarray:
    """Return a one-dimensional, non-empty array of labels, whatever they are."""
    wanted = "one label for each row, as in labels_ of a model or adata.obs['ihsc']"
    with making_array(name, wanted), sklearn_filters:
        # Of AnnData, NumPy would look for an array without end.
        if hasattr(labels, "obs") or to_host(labels).ndim == 0:
            raise TypeError(f"it is of type {type(labels).__name__}")
        array = np.asarray(validation.column_or_1d(to_host(labels)))
        if len(array) == 0:
            raise ValueError("it is empty")
    if n_samples not in (None, len(array)):
        raise ValueError(
            f"{name} has {len(array)} entries and X has {n_samples} rows; give one "
            "label for each row of X."
        )
    return array


def check_labels(name: str, labels: Any, n_samples: int | None = None) -> np.ndarray:
    """Return labels of one kind that has an order, none of them missing."""
    array = label_array(name, labels, n_samples)
    with making_array(name, "every row a label of one kind, numbers or texts"):
        if array.dtype.kind == "O":
            np.sort(array)
    unknown = array == NA_OF_R if array.dtype.kind == "i" else array != array
    if unknown.any():
        raise ValueError(
            f"{name} contains {array[unknown][0]}, which stands for no label; give "
            "every row a label, or leave rows out."
        )
    if array.dtype.kind in "OU" and (absent := int(np.sum(array == "NA"))):
        warn(
            f"{name} is the text 'NA' in {absent:,} of {len(array):,} rows, which "
            "make a cluster of this name. R passes NA in text or in a factor this way: "
            "if it stands for no label, leave these rows out, keep <- !is.na(labels).",
            UserWarning,
        )
    return array


def data_and_labels(X: Any, labels: Any, *, whitened: bool = False) -> tuple[Any, Any]:
    """Return data and labels; a fitted model stands for these, and completes X."""
    refuse_model(X)
    if not is_model(labels):
        return X, labels
    X, labels, *_ = last_step(X, labels)
    if not hasattr(labels, "labels_"):
        name = type(labels).__name__
        raise ValueError(f"This {name} has no labels_; fit it first, or give labels.")
    if hasattr(labels, "preparation_"):
        X = complete_matrix(X, labels, whitened=whitened)
    has_grown = hasattr(labels, "growth_")
    if has_grown or (hasattr(labels, "scales_") and not whitened):
        _check_rows_of_fit(check_matrix(X), labels, has_grown)
    return X, labels.labels_


def _check_rows_of_fit(data: Matrix, model: Any, has_grown: bool) -> None:
    """Raise or warn where scales of a model are not those of these rows."""
    labels = to_host(model.labels_)
    shape = len(labels), model.cluster_centers_.shape[1]
    if shape != data.shape or (data.streamed and not has_grown):
        return  # which is told elsewhere, or is not worth another reading
    inside = np.flatnonzero(labels >= 0)
    rows = inside[np.unique(np.linspace(0, len(inside) - 1, 50, dtype=np.intp))]
    centers = to_host(model.cluster_centers_)[labels[rows]]
    unit, given = HOST.unit_rows(centers), to_host(data.rows(rows))
    along = np.einsum("ij,ij->i", given, unit, dtype=float)
    known = np.abs(to_host(model.scales_)[rows]) * row_lengths(centers) / data.unit
    off = np.abs(along.clip(0) - known).max(initial=0.0)
    if has_grown and off > 1e-2 * known.max(initial=0.0):
        raise ValueError(
            "X is not the rows of the last partial_fit, which labels_ and scales_ are "
            "of; give those, or labels of these rows: model.predict(X)."
        )
    ratio = float(np.abs(along) @ known / max(known @ known, Small.TINY))
    if not 0.5 < ratio < 2 and known.any():
        warn(
            f"Rows of X are {ratio:.2g} times as large as those of the fit were. Give "
            "the data of the fit: the same rows in the same units, such as one layer.",
            PreparationWarning,
        )


def last_step(
    X: Any, model: Any, names: Any = None, original: Any = None
) -> tuple[Any, Any, Any, Any]:
    """Return the last step of a pipeline, its data, names of columns, and originals."""
    # Any other model stays as it is. Originals are the data before the last steps that
    # only change cells: X, or counts of words before they are weighed.
    if not (is_model(model) and hasattr(model, "steps")):
        return X, model, names, original
    *before, (_, last) = model.steps
    if before:
        others = [not isinstance(step, OneToOneFeatureMixin) for _, step in before]
        start = max(np.flatnonzero(others) + 1, default=0)
        if original is None and start < len(before) and X is not None:
            original = model[:start].transform(X) if start else X
        with suppress(AttributeError, ValueError):  # some steps name no columns
            names = model[:-1].get_feature_names_out() if names is None else names
        X = None if X is None else model[:-1].transform(X)
    return X, last, names, original


def refuse_model(X: Any) -> None:
    """Raise if a model is given where the data belong."""
    if is_model(X):
        raise TypeError(
            f"X is of type {type(X).__name__}, which is no data; give the data first, "
            "then the model or labels."
        )


def is_model(value: Any) -> bool:
    """Tell estimators from arrays and tables, whose columns may have any name."""
    known = hasattr(value, "fit") or hasattr(value, "labels_")
    return known and not hasattr(value, "shape")


def labelled_rows(labels: Any, X: Matrix) -> tuple[np.ndarray, Tall, Tall | None]:
    """Return sorted labels of clusters, each row's number among them, and outliers."""
    # The number of outliers is 0; None says that all rows are in clusters.
    labels = check_labels("labels", labels, X.shape[0])
    classes, codes = np.unique(labels, return_inverse=True)
    codes = X.to_device(codes)
    outliers = is_outlier(classes)
    if not outliers.any():
        return classes, codes, None
    at = int(np.flatnonzero(outliers)[0])
    above = X.ops.xp.astype(codes > at, codes.dtype)
    return classes[~outliers], codes - above, codes == at


def is_outlier(labels: np.ndarray) -> np.ndarray:
    """Tell which labels stand for rows of no cluster: -1, beside numbers from 0."""
    # Where no label is 0, as with -1 and 1, -1 is the name of a cluster.
    if labels.dtype.kind not in "if" or not (labels == 0).any():
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == -1)


def check_fit_shape(name: str, data: Matrix, model: Any) -> None:
    """Raise unless data have the rows, and the columns, of the fit of a model."""
    (n, p), labels = data.shape, getattr(model, "labels_", model)
    rows, columns = len(to_host(labels)), getattr(model, "n_features_in_", p)
    if (n, p) != (rows, columns):
        raise ValueError(
            f"{name} has {n} rows and {p} features, and the labels of the model are of "
            f"{rows} and {columns}; give those of the fit, or of the last partial_fit."
        )


def feature_names(
    given: Any, model: Any, X: Any, p: int, what: str = "names"
) -> list[str]:
    """Return names of p features: those given, of the fit or of X, or x0, x1, ..."""
    data = X if isinstance(X, Matrix) else None  # arrays of torch have other names
    for source, name in ((model, "feature_names_in_"), (X, "columns"), (data, "names")):
        given = getattr(source, name, None) if given is None else given
    if given is None:
        given = (f"x{j}" for j in range(p))
    return names_of(what, given, p, "feature")


def names_of(what: str, given: Any, count: int = 0, of: str = "") -> list[str]:
    """Return texts, one for each row or feature, or as many as there are."""
    if isinstance(given, str | bytes):
        raise TypeError(f"{what}={given!r} is one text; give a list of them.")
    names = [text_of(name) for name in given]
    if of and len(names) != count:
        raise ValueError(
            f"{what} has {len(names)} entries and X has {count} {of}s; give one for "
            f"each {of}."
        )
    return names


def text_of(name: Any) -> str:
    """Return a name of any kind as text."""
    if name is None:
        return ""
    if isinstance(name, tuple):  # of an index of several levels
        return ", ".join(map(text_of, name))
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return one non-negative weight for each row, as float64."""
    if sample_weight is None or isinstance(sample_weight, Real):
        each = 1.0 if sample_weight is None else float(sample_weight)
        sample_weight = np.full(n_samples, each)
    if np.ma.isMaskedArray(sample_weight):  # NumPy would forget what is masked
        sample_weight = np.ma.filled(sample_weight.astype(np.float64), np.nan)
    wanted = f"{n_samples} numbers, one for each row, above 0, or 0 to leave it out"
    with making_array("sample_weight", wanted), sklearn_filters:
        given, like = to_host(sample_weight), np.empty(n_samples)
        kind: Any = {"dtype": np.float64, "ensure_non_negative": True}
        weights: np.ndarray = validation._check_sample_weight(given, like, **kind)
        if not weights.any():
            raise ValueError("all are 0")
    return weights


def counted_rows(X: Matrix, sample_weight: Any) -> tuple[Matrix, Tall | None]:
    """Return the rows whose weight is not 0, with weights; and a mask unless all."""
    if sample_weight is None:
        return X, None
    weights = check_weights(sample_weight, X.shape[0])
    weights = weights / weights.max()  # the sum of the largest numbers overflows
    # Rows of so little weight beside another change no digit of any sum.
    counts = weights > np.finfo(np.float64).eps ** 2
    kept = X if counts.all() else X.keep_rows(np.flatnonzero(counts))
    if (weights[counts] < 1).any():  # else all count alike
        kept = kept.weighted(weights[counts])
    return kept, None if kept.shape == X.shape else X.to_device(counts)


def warn_missing(X: Matrix, names: Any = None) -> int:
    """Name columns without an observed cell; return how many rows have none."""
    if not np.isnan(X.ops.number(X.ops.xp.sum(X.sqnorms))):
        return 0

    def missing_cells(block: Matrix) -> tuple[np.ndarray, int]:
        missing = block.missing()
        whole_rows = to_host(missing.sqnorms) == block.shape[1]
        return missing.column_sqnorms(), int(np.count_nonzero(whole_rows))

    counts = [*X.map(missing_cells)]
    columns = np.flatnonzero(sum(cells for cells, _ in counts) == X.shape[0])
    if len(columns):
        shown = [j if names is None else names[j] for j in columns[:5].tolist()]
        warn(
            f"{len(columns):,} of {X.shape[1]:,} columns of X have no observed cell: "
            f"{', '.join(map(repr, shown))}{', ...' * (len(columns) > 5)}. They are "
            "filled with zeros; leave them out.",
            DataConversionWarning,
        )
    return sum(rows for _, rows in counts)


def warn_zero_rows(X: Matrix, unobserved: int = 0) -> int:
    """Return how many rows are not zero; warn of zero ones, raise if all are."""
    live = count_rows(X, X.sqnorms)
    zero = X.shape[0] - live
    if not live:
        raise ValueError(
            f"All {zero:,} rows of X are zero: they show no pattern to cluster by. "
            "Check how X was read or preprocessed."
        )
    if zero:
        are = "are zero" if X.gaps is None else "have nothing but zeros or empty cells"
        are = are if zero > unobserved else "have no observed cell"
        warn(
            f"{zero:,} of {X.shape[0]:,} rows {are}. They show no pattern, and "
            "their labels mean nothing; drop them if they should not be labelled.",
            DataConversionWarning,
        )
    return live


def warn_few_weighty_rows(X: Matrix, n_clusters: int) -> None:
    """Warn when weights leave hardly any rows to learn the clusters from."""
    if X.weights is None:
        return
    # Rows of equal weight that would know sums as well; the mean weight is 1.
    n, rows = X.shape[0], X.shape[0] / X.ops.number(X.ops.xp.mean(X.weights**2))
    if rows < min(Weighting.ROWS_A_CLUSTER * n_clusters, n / 2):
        warn(
            f"A few rows carry nearly all of sample_weight: {n:,} rows count like "
            f"{rows:.0f} of equal weight, for {n_clusters} clusters. Labels may "
            "depend on these few. Cap the largest weights, or leave sample_weight out.",
            UnstableLabelsWarning,
        )


def warn_unstable_labels(missing: str, remedy: str = "") -> None:
    """Warn of labels that fits to other rows would change, and say what may help."""
    tree = "cluster_tree(X, missing='fit')" if missing == "fit" else "cluster_tree(X)"
    remedy = remedy or (
        "Look at diagnose(X, model), or ask for another number of clusters: "
        f"{tree} shows which are stable, if any; give it X as prepared for this fit."
    )
    text = "Labels may be unstable: fits to halves of the rows doubt many of them."
    warn(f"{text} {remedy}", UnstableLabelsWarning)


def warn_empty_clusters(X: Matrix, labels: Tall, n_clusters: int) -> bool:
    """Return whether some clusters of the rows of X have no rows, with a warning."""
    used = int(np.count_nonzero(X.ops.groups(labels, n_clusters).sizes))
    if used < n_clusters:
        warn(
            f"Rows are in {used} of {option('n_clusters', n_clusters)} clusters; the "
            f"others are empty. Ask for fewer clusters ({call('select_n_clusters')} "
            "counts them), or look for duplicates in X.",
            ClusterCountWarning,
        )
    return used < n_clusters
