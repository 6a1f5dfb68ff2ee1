"""The command ``ihgmm sample``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ihgmm import make_ihgmm
from ihgmm._tables import TEXT, TableError, check_output, write_whole
from ihgmm.cli._options import OUTPUT, AsJson, Quiet, Seed, one_of
from ihgmm.cli._screen import Screen
from ihgmm.model import NOISES, STRUCTURES, IhGMMSample

__all__ = ["sample"]

FORMATS = (*TEXT, ".parquet", ".npy", ".npz")
TYPES = ("float64", "float32")


Rows = Annotated[int, typer.Option("-n", help="Number of rows.")]
Features = Annotated[int, typer.Option("-p", help="Number of features.")]
Clusters = Annotated[
    int, typer.Option("-k", "--n-clusters", help="Number of clusters.")
]
ScaleRatio = Annotated[
    float, typer.Option(help="Scales are uniform between 1 and this number.")
]
Balance = Annotated[
    float, typer.Option(help="The smallest cluster over an even share, up to 1.")
]
Separation = Annotated[
    float | None, typer.Option(help="Distance between any two centres.")
]
SeparationConstant = Annotated[
    float, typer.Option(help="The same in units of the paper's, if it is not given.")
]
Noise = Annotated[
    str,
    typer.Option(autocompletion=one_of(NOISES), help=f"Noise: {', '.join(NOISES)}."),
]
NoiseLevels = Annotated[
    str,
    typer.Option(metavar="LOW,HIGH", help="Range of the noise levels, or one number."),
]
NoiseStructure = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(STRUCTURES),
        help=f"What has a noise level of its own: {', '.join(STRUCTURES)}.",
    ),
]
Type = Annotated[
    str,
    typer.Option(autocompletion=one_of(TYPES), help=f"Type of X: {', '.join(TYPES)}."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=OUTPUT, help="Replace files that are there."
    ),
]


def sample(
    output: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Where to write: CSV, TSV, Parquet, NPY or NPZ, by the end of the "
            "name.",
        ),
    ],
    n_samples: Rows = 500,
    n_features: Features = 200,
    n_clusters: Clusters = 4,
    scale_ratio: ScaleRatio = 20.0,
    balance: Balance = 1.0,
    separation: Separation = None,
    separation_constant: SeparationConstant = 3.0,
    noise: Noise = "gaussian",
    noise_levels: NoiseLevels = "0.5,1.5",
    noise_structure: NoiseStructure = "individual",
    dtype: Type = "float64",
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
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
    files = _files(output, force)
    if dtype not in TYPES:
        raise TableError(f"--dtype {dtype}: give float64 or float32.")
    screen = Screen(as_json=as_json, quiet=quiet)
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
            noise_levels=_levels(noise_levels),
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
    _tell(screen, drawn, n_clusters, files)


def _files(output: Path, force: bool) -> list[Path]:
    """Return the files to write: the sample, and its parameters if they go beside."""
    check_output(output, "FILE", suffixes=FORMATS)
    files = [output]
    if output.suffix.lower() != ".npz":
        files.append(output.with_name(f"{output.stem}-parameters.npz"))
    for path in files:
        if path.exists() and not force:
            raise TableError(f"{path} is there already; add --force to replace it.")
    return files


def _write(drawn: IhGMMSample, files: list[Path]) -> None:
    parameters = {
        name: getattr(drawn, name)
        for name in ("labels", "scales", "noise_levels", "centers", "separation")
    }
    output, *beside = files
    if not beside:
        write_whole(output, _archive(X=drawn.X, **parameters))
        return
    write_whole(beside[0], _archive(**parameters))
    write_whole(output, _content(drawn, output.suffix.lower()))


def _tell(
    screen: Screen, drawn: IhGMMSample, n_clusters: int, files: list[Path]
) -> None:
    """Say it to people."""
    n, p = drawn.X.shape
    k = f"{n_clusters} cluster{'s' * (n_clusters != 1)}"
    screen.say(f"{n:,} rows, {p:,} features, {k}", "bold")
    screen.say(f"distance of the centres: {drawn.separation:.4g}")
    screen.say(f"written to {' and '.join(map(str, files))}")
    label = {".npz": " --label-column labels", ".npy": ""}.get(
        files[0].suffix.lower(), " --label-column label"
    )
    screen.say(f"cluster it with: ihgmm fit {files[0]} -k {n_clusters}{label}")


def _levels(text: str) -> float | tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (1, 2):
        raise TableError(
            f"--noise-levels {text}: give one number, or two as in 0.5,1.5."
        )
    return values[0] if len(values) == 1 else values


def _archive(**arrays: Any) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _content(drawn: IhGMMSample, suffix: str) -> bytes:
    """Return the file with the rows; tables have their labels in the last column."""
    content = io.BytesIO()
    if suffix == ".npy":
        np.save(content, drawn.X)
        return content.getvalue()
    import pyarrow as pa

    columns = {f"x{i}": column for i, column in enumerate(drawn.X.T, 1)}
    table = pa.table({**columns, "label": drawn.labels})
    if suffix == ".parquet":
        import pyarrow.parquet

        pa.parquet.write_table(table, content)
    else:
        import pyarrow.csv

        options = pa.csv.WriteOptions(delimiter=TEXT[suffix], quoting_style="needed")
        pa.csv.write_csv(table, content, options)
    return content.getvalue()
