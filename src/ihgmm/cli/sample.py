"""The command ``ihgmm sample``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm import make_ihgmm
from ihgmm._files import atomic_write
from ihgmm.cli.options import (
    N_CLUSTERS,
    N_FEATURES,
    N_SAMPLES,
    SEED,
    argument,
    choice,
    option,
    output_option,
)
from ihgmm.cli.output import check_output
from ihgmm.cli.screen import Screen
from ihgmm.matrix.delimited import DELIMITERS
from ihgmm.statistics.model import NOISE_DISTRIBUTIONS, NOISE_STRUCTURES, IhGMMSample
from ihgmm.words.phrases import counted

TYPES = ("float64", "float32")


@dataclass(frozen=True)
class Model:
    """The options of the model, which are those of make_ihgmm."""

    n_samples: int = option("Number of rows.", 500, N_SAMPLES)
    n_features: int = option("Number of features.", 200, N_FEATURES)
    n_clusters: int = option("Number of clusters.", 4, N_CLUSTERS)
    scale_ratio: float = option("Scales are uniform between 1 and this number.", 20.0)
    balance: float = option("The smallest cluster over an even share, up to 1.", 1.0)
    separation: float | None = option("Distance between any two centres.")
    separation_constant: float = option(
        "The same in units of the paper's, if it is not given.", 3.0
    )
    noise: str = choice("Noise", NOISE_DISTRIBUTIONS)
    noise_levels: str = option(
        "Range of the noise levels, or one number.", "0.5,1.5", metavar="LOW,HIGH"
    )
    noise_structure: str = choice("What has a noise level of its own", NOISE_STRUCTURES)
    dtype: str = choice("Type of X", TYPES)
    random_state: int = SEED

    def draw(self) -> IhGMMSample:
        """Return a sample with its parameters."""
        if self.dtype not in TYPES:
            raise ValueError(f"--dtype {self.dtype}: give float64 or float32.")
        options: dict[str, Any] = asdict(self)
        options["noise_levels"] = _parse_levels(self.noise_levels)
        return make_ihgmm(**options, return_params=True)


def sample(
    *,
    output: Path = argument(
        "FILE", "Where to write: CSV, TSV, Parquet, NPY or NPZ, by the end of the name."
    ),
    model: Model,
    force: bool = output_option("Replace files that are there.", False, "--force"),
    screen: Screen,
) -> None:
    """Write a sample of the model, with its labels and parameters.

    An NPZ file holds all: X, labels, scales, noise_levels, centers, separation. Other
    files hold the rows (tables also a column "label"), and all but X goes to a second
    file whose name ends in -parameters.npz.

    [bold]Examples[/]

      ihgmm sample sample.csv -n 300 -p 50 -k 3

      ihgmm sample sample.npz -n 100000 -p 500 -k 10 --dtype float32 --balance 0.3

      ihgmm fit sample.csv -k 3 --label-column label
    """
    check_output(output, "FILE", (*DELIMITERS, ".parquet", ".npy", ".npz"))
    suffix, files = output.suffix.lower(), [output]
    if suffix != ".npz":
        files.append(output.with_name(f"{output.stem}-parameters.npz"))
    for path in files:
        if path.exists() and not force:
            raise ValueError(f"{path} is there already; add --force to replace it.")
    with screen.working("drawing and writing"):
        drawn = model.draw()
        _write(drawn, files)
    n, p, k = model.n_samples, model.n_features, model.n_clusters
    screen.document(
        "sample",
        {"n_samples": n, "n_features": p, "n_clusters": k},
        sizes=np.bincount(drawn.labels, minlength=k),
        separation=drawn.separation,
        seed=model.random_state,
        files=files,
    )
    screen.say(f"{n:,} rows, {p:,} features, {counted(k, 'cluster')}", "bold")
    screen.say(f"distance of the centres: {drawn.separation:.4g}")
    screen.say(f"written to {' and '.join(map(str, files))}")
    labels = {".npz": " --label-column labels", ".npy": ""}
    label_option = labels.get(suffix, " --label-column label")
    screen.say(f"cluster it with: ihgmm fit {output} -k {k}{label_option}")


def _parse_levels(text: str) -> float | tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (1, 2):
        raise ValueError(
            f"--noise-levels {text}: give one number, or two as in 0.5,1.5."
        )
    return values[0] if len(values) == 1 else values


def _write(drawn: IhGMMSample, files: list[Path]) -> None:
    """Write one file with all, or the rows and a second one with all but X."""
    names = ["labels", "scales", "noise_levels", "centers", "separation"]
    if len(files) == 1:
        names.insert(0, "X")
    # The archive first: a sample is whole when its rows are there.
    with atomic_write(files[-1]) as file:
        np.savez(file, **{name: getattr(drawn, name) for name in names})
    if len(files) > 1:
        with atomic_write(files[0]) as file:
            _write_rows(drawn, files[0].suffix.lower(), file)


def _write_rows(drawn: IhGMMSample, suffix: str, file: Any) -> None:
    """Write the rows; tables have their labels in the last column."""
    if suffix == ".npy":
        np.save(file, drawn.X)
        return
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    columns = {f"x{i}": column for i, column in enumerate(drawn.X.T, 1)}
    table = pa.table({**columns, "label": drawn.labels})
    if suffix == ".parquet":
        pa.parquet.write_table(table, file)
    else:
        how = {"delimiter": DELIMITERS[suffix], "quoting_style": "needed"}
        pa.csv.write_csv(table, file, pa.csv.WriteOptions(**how))
