"""IhSC and its markers on AnnData objects, by the conventions of scverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import false_discovery_control

from ihgmm import IhSC, __version__, top_features
from ihgmm._parameters import check_count
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.estimators.batch_factors import as_without_batches
from ihgmm.matrix import as_matrix, to_host
from ihgmm.numerics.whitening import preparation_of_counts
from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.statistics.diagnosis import Diagnosis, diagnose

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["ihsc", "rank_genes_groups"]

# A run knows the results of an earlier one by it.
METHOD = "ihgmm.anndata.ihsc"


@dataclass(frozen=True)
class Place:
    """Where a result of a run goes: a part of the AnnData object, and a name there."""

    part: str
    name: str


def _places(key: str) -> dict[str, Place]:
    """Return where the results of a run go, by what they are."""
    return {
        "clusters": Place(part="obs", name=key),
        "scales": Place(part="obs", name=f"{key}_scale"),
        "sizes": Place(part="obs", name=f"{key}_size"),
        "certainty": Place(part="obs", name=f"{key}_confidence"),
        "outlier_scores": Place(part="obs", name=f"{key}_outlier_score"),
        "embedding": Place(part="obsm", name=f"X_{key}"),
        "centers": Place(part="varm", name=f"{key}_centers"),
        "summary": Place(part="uns", name=key),
    }


def ihsc(
    adata: AnnData,
    n_clusters: int | Literal["auto"],
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    batch_key: str | None = None,
    key_added: str = "ihsc",
    random_state: Any = 0,
    copy: bool = False,
    **options: Any,
) -> AnnData | None:
    """Cluster the observations of an AnnData object that differ in scale.

    How deep a cell was sequenced is its scale, which :class:`~ihgmm.IhSC` does not
    cluster by: counts need not be normalised by depth, nor their logarithms taken.
    Give counts. The fit takes their roots by itself; of all genes, ``columns="counts"``
    shows types more clearly, as :doc:`/tutorial-single-cell` has it. ``ihsc`` warns of
    data after ``sc.pp.log1p`` or ``sc.pp.scale``.

    Parameters
    ----------
    adata : AnnData
        Observations by variables. ``X`` of a file that is opened as ``backed`` stays on
        disk, and arrays of CuPy on their GPU; results are NumPy arrays in memory.
    n_clusters : int or "auto"
        Number of clusters; "auto" counts them, see :func:`ihgmm.select_n_clusters`.
    layer : str, optional
        Cluster by this layer instead of ``X``.
    use_rep : str, optional
        Cluster by this key of ``obsm``; ``"X"``, as the default, is ``X`` itself.
        Prefer that: after PCA, rows are no longer multiples of a pattern.
    batch_key : str, optional
        Column of ``obs`` with batches, whose factors are taken out: :doc:`/batches`.
    key_added : str, default="ihsc"
        Name of the results, which replace only those of an earlier run of that name.
    random_state : int, RandomState, Generator or None, default=0
        Seed, as for :class:`~ihgmm.IhSC`.
    copy : bool, default=False
        Return a copy with the results instead of writing them to ``adata``.
    **options
        Further parameters of :class:`~ihgmm.IhSC`, such as ``columns="counts"``.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``. With ``key`` for ``key_added``, ``obs[key]`` is the
        cluster, as a string, ``"0"`` the largest; ``obs[f"{key}_scale"]`` and
        ``obs[f"{key}_size"]`` are ``scales_`` and ``sizes_`` of :class:`~ihgmm.IhSC`,
        ``obs[f"{key}_confidence"]`` the ``certainty`` of :func:`~ihgmm.diagnose`.
        ``obsm[f"X_{key}"]`` is the embedding, and ``varm[f"{key}_centers"]`` the
        pattern of each cluster, or ``uns[key]["centers"]`` where ``use_rep`` is given.
        ``uns[key]`` also has parameters, eigenvalues, what :func:`~ihgmm.diagnose`
        says, and where they apply ``selection`` and ``outlier_cells``.

    Examples
    --------
    >>> import anndata
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.anndata import ihsc
    >>> X, kinds = make_ihgmm(n_samples=300, n_features=100, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> ihsc(adata, n_clusters=4)
    >>> adata.obs["ihsc"].cat.categories.tolist()
    ['0', '1', '2', '3']
    >>> adata.varm["ihsc_centers"].shape
    (100, 4)
    >>> adata.uns["ihsc"]["verdict"]
    'well separated'
    """
    _check_object(adata, copy)
    X = _matrix(adata, layer, use_rep)
    has_variables = use_rep in (None, "X")
    if has_variables:
        _warn_of_preparation(adata, X, layer, "ihsc", options.get("columns"))

    _check_places(adata, key_added, use_rep)

    batch = None
    if batch_key is not None:
        column = _part(adata, "obs", "batch_key", batch_key)
        batch = np.asarray(column.astype(object))

    model = IhSC(n_clusters, random_state=random_state, **options).fit(X, batch=batch)
    model, X = as_without_batches(model, X, batch)
    diagnosis = diagnose(X, model)
    source = {"layer": layer, "use_rep": use_rep, "batch_key": batch_key}
    results = _results(model, diagnosis, source, has_variables=has_variables)

    if copy:
        adata = adata.copy()
    for name, place in _places(key_added).items():
        part = getattr(adata, place.part)
        if results[name] is not None:
            part[place.name] = results[name]
        elif place.name in part:  # of an earlier run: it would pass for one of this
            del part[place.name]

    return adata if copy else None


def _check_places(adata: AnnData, key_added: str, use_rep: str | None) -> None:
    """Raise where results cannot go: what is there is of no earlier run."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        raise ValueError(
            f"key_added={key_added!r} cannot name results; give a word without a slash."
        )

    earlier = adata.uns.get(key_added)
    is_ours = isinstance(earlier, Mapping) and earlier.get("method") == METHOD
    for place in _places(key_added).values():
        is_taken = place.name in getattr(adata, place.part) and not is_ours
        is_input = place.part == "obsm" and place.name == use_rep
        if is_taken or is_input:
            raise ValueError(
                f"key_added={key_added!r} would overwrite "
                f"adata.{place.part}[{place.name!r}]; give another key_added."
            )


def _results(
    model: IhSC,
    diagnosis: Diagnosis,
    source: dict[str, str | None],
    *,
    has_variables: bool,
) -> dict[str, Any]:
    """Return the results of a run on the host, by what they are; None: there is none.

    Centres go to the variables, or with the summary where the data were others.
    """
    import pandas as pd  # comes with anndata

    scores = getattr(model, "outlier_scores_", None)
    centers = to_host(model.cluster_centers_)
    summary = _summary(model, diagnosis, source)

    if not has_variables:
        summary["centers"] = centers

    return {
        "clusters": pd.Categorical(to_host(model.labels_)).rename_categories(str),
        "scales": to_host(model.scales_),
        "sizes": to_host(model.sizes_),
        "certainty": to_host(diagnosis.certainty),
        "outlier_scores": None if scores is None else to_host(scores),
        "embedding": to_host(model.embedding_),
        "centers": centers.T if has_variables else None,
        "summary": summary,
    }


def rank_genes_groups(
    adata: AnnData,
    groupby: str = "ihsc",
    *,
    layer: str | None = None,
    n_genes: int | None = None,
    key_added: str = "rank_genes_groups",
    copy: bool = False,
) -> AnnData | None:
    """Rank the genes of each cluster, and write them where scanpy looks for them.

    ``sc.pl.rank_genes_groups_dotplot`` and ``sc.get.rank_genes_groups_df`` read what
    it writes, as they read what ``sc.tl.rank_genes_groups`` does.

    Parameters
    ----------
    adata : AnnData
        Observations by variables: counts, since cells are compared at the same depth.
    groupby : str, default="ihsc"
        The column of ``obs`` that has the clusters, from any method. Cells without
        one, and outliers, ``"-1"``, are left out.
    layer : str, optional
        The layer that has the counts. Default: ``X``.
    n_genes : int, optional
        How many genes to keep of each cluster. Default: all.
    key_added : str, default="rank_genes_groups"
        Name of the results in ``uns``.
    copy : bool, default=False
        Return a copy with the results instead of writing them to ``adata``.

    Returns
    -------
    AnnData or None
        The copy if ``copy=True``. ``uns[key_added]`` has, by cluster, genes in the
        order of their contrast: ``names``; ``scores``, contrasts less two errors;
        ``logfoldchanges``, to base 2, over all other cells at the same depth; ``pvals``
        and, after Benjamini and Hochberg, ``pvals_adj``; and ``params``. P-values take
        clusters as given: for those found in the same cells they are too small, and
        only rank.

    See Also
    --------
    ihgmm.top_features : The same of an array, with means, errors and what is lacking.

    Examples
    --------
    >>> import anndata
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.anndata import ihsc, rank_genes_groups
    >>> X, kinds = make_ihgmm(n_samples=300, n_features=100, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> ihsc(adata, n_clusters=4)
    >>> rank_genes_groups(adata, n_genes=5)
    >>> adata.uns["rank_genes_groups"]["names"].dtype.names
    ('0', '1', '2', '3')
    """
    _check_object(adata, copy)
    column = _part(adata, "obs", "groupby", groupby).astype("category")
    X = _matrix(adata, layer, None)
    _warn_of_preparation(adata, X, layer, "rank_genes_groups")
    n_ranked = adata.n_vars
    if n_genes is not None:
        n_ranked = min(check_count("n_genes", n_genes), n_ranked)

    names = column.cat.remove_unused_categories().cat.categories
    clusters = [name for name in names if str(name) != "-1"]
    codes = column.cat.set_categories(clusters).cat.codes  # -1 for outliers and NaN
    top = top_features(X, codes.to_numpy(), names=adata.var_names)

    # What scanpy looks for.
    results = _ranked_genes(top, adata.var_names, clusters, n_ranked)
    results["params"] = {
        "groupby": groupby,
        "layer": layer,
        "reference": "rest",
        "method": "ihgmm.top_features",
        "use_raw": False,
        "corr_method": "benjamini-hochberg",
    }

    if copy:
        adata = adata.copy()
    adata.uns[key_added] = results
    return adata if copy else None


def _ranked_genes(
    top: TopFeatures, genes: Any, clusters: list[Any], n_ranked: int
) -> dict[str, Any]:
    """Return figures of the first genes of each cluster, in the layout of scanpy.

    A figure is a record array with a field for each cluster. Genes rank as
    ``top_features`` ranks what a cluster has more of: by contrast less two errors.
    """
    scores = top.contrasts - 2 * top.errors  # (n_clusters, n_genes)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n_ranked]
    # A small number in both, as scanpy has it, so that no gene is without a figure.
    means = np.maximum(top.means, 0.0) + 1e-9
    means_of_others = np.maximum(top.others, 0.0) + 1e-9

    names = np.broadcast_to(genes.to_numpy(dtype=object), scores.shape)
    figures = {
        "names": (names, "O"),
        "scores": (scores, "f4"),
        "logfoldchanges": (np.log2(means / means_of_others), "f4"),
        "pvals": (top.p_values, "f8"),
        "pvals_adj": (false_discovery_control(top.p_values, axis=1), "f8"),
    }

    results = {}
    for name, (values, kind) in figures.items():
        ranked = np.take_along_axis(values, order, axis=1)
        fields = [(str(cluster), kind) for cluster in clusters]
        results[name] = np.rec.fromarrays([*ranked], dtype=fields)
    return results


def _summary(
    model: IhSC, diagnosis: Diagnosis, source: dict[str, str | None]
) -> dict[str, Any]:
    """Return what files keep of a fit, beside its figures of rows and clusters."""
    params = {**model.get_params(), **source}
    params["recipe"] = str(params["recipe"])
    # A generator cannot be stored, and None says nothing.
    kinds = (str, bool, int, float, np.number)
    params = {name: value for name, value in params.items() if isinstance(value, kinds)}

    summary: dict[str, Any] = {
        "method": METHOD,
        "version": __version__,
        "params": params,
        "n_clusters": model.n_clusters_,
        "eigenvalues": to_host(model.eigenvalues_),
        "verdict": str(diagnosis.verdict),
        "error_range": np.array(diagnosis.error_range),
        "stability": diagnosis.stability,
        "doubt": diagnosis.doubt,
        "expected_error": diagnosis.expected_error,
    }

    if model.outliers == "cells":
        summary["outlier_cells"] = model.outlier_cells_

    if model.n_clusters == "auto":
        count = model.selection_
        summary["selection"] = {
            "lead": count.lead,
            "summary": str(count),
            "confidence": count.confidence.value,
            "plausible": np.array(count.plausible, dtype=np.int64),
        }

    return summary


def _check_object(adata: Any, copy: bool) -> None:
    """Refuse what is no AnnData object, or cannot take the results."""
    try:
        from anndata import AnnData
    except ImportError as error:
        raise ImportError(
            "ihgmm.anndata needs the package anndata: pip install anndata."
        ) from error

    if not isinstance(adata, AnnData):
        raise TypeError(
            f"adata is a {type(adata).__name__}; give an AnnData object. For arrays "
            "use ihgmm.IhSC."
        )

    if adata.isbacked and (copy or adata.is_view):
        raise ValueError(
            f"adata is on disk, and {'copy=True' if copy else 'a view'} cannot hold "
            "the results of a file; give adata.to_memory(), or the file without copy."
        )


def _warn_of_preparation(
    adata: AnnData, X: Any, layer: str | None, caller: str, columns: Any = None
) -> None:
    """Warn of a matrix in which cells of a type are no multiples of one pattern."""
    is_logged = layer is None and "log1p" in adata.uns
    preparation = preparation_of_counts(as_matrix(X), is_logged)

    if preparation == "centred":
        complaint = "was centred, as by sc.pp.scale"
    elif preparation == "logged" and columns != "counts":  # else the fit warns
        complaint = "holds logarithms, as of sc.pp.log1p"
    else:
        return

    name = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
    has_counts = layer != "counts" and "counts" in adata.layers
    arguments = f"layer={'counts' if has_counts else '...'!r}"
    if caller == "ihsc":
        arguments += ", columns='counts'"

    warn(
        f"{name} {complaint}: cells of a type are then no multiples of one "
        f"pattern, which {caller} looks for. Give the counts: {caller}(adata, ..., "
        f"{arguments}).",
        PreparationWarning,
    )


def _matrix(adata: AnnData, layer: str | None, use_rep: str | None) -> Any:
    """Return the matrix of an AnnData object that is asked for."""
    if layer is not None and use_rep is not None:
        raise ValueError(
            f"layer={layer!r} and use_rep={use_rep!r} name two matrices; give one."
        )

    if layer is not None:
        return _part(adata, "layers", "layer", layer)
    if use_rep not in (None, "X"):
        return _part(adata, "obsm", "use_rep", use_rep)

    if adata.X is None:
        raise ValueError("adata.X is None; give a layer, or a key of obsm as use_rep.")
    return adata.X


def _part(adata: AnnData, home: str, option: str, key: str | None) -> Any:
    """Return what an AnnData object has under a key that was given."""
    parts = getattr(adata, home)

    if key not in parts:
        listed = ", ".join(map(repr, parts)) or "nothing"
        raise ValueError(
            f"{option}={key!r} is not in adata.{home}, which has {listed}."
        )
    return parts[key]
