"""The command ``ihgmm sample``."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from ihgmm import make_ihgmm
from ihgmm._files import atomic_write
from ihgmm.cli.options import OUTPUT, Seed, one_of
from ihgmm.cli.output import check_output
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables import DELIMITERS
from ihgmm.model import NOISES, STRUCTURES, IhGMMSample

TYPES = ("float64", "float32")


def sample(
    *,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Where to write: CSV, TSV, Parquet, NPY or NPZ, by the end of the "
            "name.",
        ),
    ],
    n_samples: Annotated[int, typer.Option("-n", help="Number of rows.")] = 500,
    n_features: Annotated[int, typer.Option("-p", help="Number of features.")] = 200,
    n_clusters: Annotated[
        int, typer.Option("-k", "--n-clusters", help="Number of clusters.")
    ] = 4,
    scale_ratio: Annotated[
        float, typer.Option(help="Scales are uniform between 1 and this number.")
    ] = 20.0,
    balance: Annotated[
        float, typer.Option(help="The smallest cluster over an even share, up to 1.")
    ] = 1.0,
    separation: Annotated[
        float | None, typer.Option(help="Distance between any two centres.")
    ] = None,
    separation_constant: Annotated[
        float,
        typer.Option(help="The same in units of the paper's, if it is not given."),
    ] = 3.0,
    noise: Annotated[
        str,
        typer.Option(
            autocompletion=one_of(NOISES), help=f"Noise: {', '.join(NOISES)}."
        ),
    ] = "gaussian",
    noise_levels: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH", help="Range of the noise levels, or one number."
        ),
    ] = "0.5,1.5",
    noise_structure: Annotated[
        str,
        typer.Option(
            autocompletion=one_of(STRUCTURES),
            help=f"What has a noise level of its own: {', '.join(STRUCTURES)}.",
        ),
    ] = "individual",
    dtype: Annotated[
        str,
        typer.Option(
            autocompletion=one_of(TYPES), help=f"Type of X: {', '.join(TYPES)}."
        ),
    ] = "float64",
    seed: Seed = 0,
    force: Annotated[
        bool,
        typer.Option(
            "--force", rich_help_panel=OUTPUT, help="Replace files that are there."
        ),
    ] = False,
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
    formats = (*DELIMITERS, ".parquet", ".npy", ".npz")
    check_output(output, "FILE", suffixes=formats)
    suffix = output.suffix.lower()
    files = [output]
    if suffix != ".npz":
        files.append(output.with_name(f"{output.stem}-parameters.npz"))
    for path in files:
        if path.exists() and not force:
            raise ValueError(f"{path} is there already; add --force to replace it.")
    if dtype not in TYPES:
        raise ValueError(f"--dtype {dtype}: give float64 or float32.")
    with screen.working("drawing and writing"):
        drawn = make_ihgmm(
            n_samples,
            n_features,
            n_clusters,
            scale_ratio=scale_ratio,
            balance=balance,
            separation=separation,
            separation_constant=separation_constant,
            noise=noise,  # type: ignore[arg-type]
            noise_levels=_parse_levels(noise_levels),
            noise_structure=noise_structure,  # type: ignore[arg-type]
            dtype=dtype,
            random_state=seed,
            return_params=True,
        )
        _write(drawn, files)
    n, p = drawn.X.shape
    screen.document(
        {
            "command": "sample",
            "n_samples": n,
            "n_features": p,
            "n_clusters": n_clusters,
            "sizes": np.bincount(drawn.labels, minlength=n_clusters),
            "separation": drawn.separation,
            "seed": seed,
            "files": files,
        }
    )
    clusters = f"{n_clusters} cluster{'s' * (n_clusters != 1)}"
    screen.say(f"{n:,} rows, {p:,} features, {clusters}", "bold")
    screen.say(f"distance of the centres: {drawn.separation:.4g}")
    screen.say(f"written to {' and '.join(map(str, files))}")
    labels = {".npz": " --label-column labels", ".npy": ""}
    option = labels.get(suffix, " --label-column label")
    screen.say(f"cluster it with: ihgmm fit {output} -k {n_clusters}{option}")


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
    with atomic_write(files[-1], "wb") as file:
        np.savez(file, **{name: getattr(drawn, name) for name in names})
    if len(files) > 1:
        with atomic_write(files[0], "wb") as file:
            _write_rows(drawn, files[0].suffix.lower(), file)


def _write_rows(drawn: IhGMMSample, suffix: str, file: IO[Any]) -> None:
    """Write the rows; tables have their labels in the last column."""
    if suffix == ".npy":
        np.save(file, drawn.X)
        return
    import pyarrow as pa

    columns = {f"x{i}": column for i, column in enumerate(drawn.X.T, 1)}
    table = pa.table({**columns, "label": drawn.labels})
    if suffix == ".parquet":
        import pyarrow.parquet

        pa.parquet.write_table(table, file)
    else:
        import pyarrow.csv

        delimiter = DELIMITERS[suffix]
        options = pa.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        pa.csv.write_csv(table, file, options)
