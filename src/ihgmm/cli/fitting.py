"""The group of options that says how to cluster the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import ihgmm
from ihgmm._parameters import check_outliers
from ihgmm._text import listed
from ihgmm.cli.options import N_CLUSTERS, SEED, option
from ihgmm.estimators.base import InSteps
from ihgmm.numerics.whitening import NOISES

# By the names that they have in Python.
METHODS: dict[str, Any] = {
    name: getattr(ihgmm, name) for name in ("IhSC", "IhGMM", "PSC", "SphericalKMeans")
}
WHITEN = option(
    "Make noise alike in rows and columns first. counts: its variance grows with the "
    "mean of an entry; learned: it is learnt from what a low-rank fit leaves; auto: "
    "the first where the data look like counts.",
    words=("auto", *NOISES),
)


@dataclass(frozen=True)
class Fitting:
    """The options of the model; those that were not given are None or False."""

    n_clusters: str | None = option(
        'Number of clusters, or "auto" to let the data decide; it has to be given.',
        None,
        N_CLUSTERS,
        words=["auto"],
    )
    method: str = option(
        f"How to cluster: {', '.join(METHODS)}. The first is the package's best, and "
        "the options below are for it unless they say otherwise.",
        "IhSC",
        words=METHODS,
    )
    refine: bool = option(
        "Compare each row once more with the centres of the other rows.",
        False,
        "--refine",
    )
    whiten: str | None = WHITEN
    signed: bool = option(
        "Rows that point opposite ways are of one kind; scales have both signs.",
        False,
        "--signed",
    )
    outliers: str | None = option(
        'Give rows that fit no cluster the label -1: "auto", or a share such as 0.05. '
        "For IhSC and IhGMM.",
        None,
        "--outliers",
        words=["auto"],
    )
    paper: bool = option(
        "Use the settings of the paper's Algorithm 1.", False, "--paper"
    )
    random_state: int = SEED

    def model(self, missing: str) -> Any:
        """Return the model, to be fitted to data whose missing cells are so handled.

        What the method cannot do is refused, before any work is done.
        """
        if self.n_clusters is None:
            raise ValueError(
                "Give the number of clusters, such as -k 5, or -k auto to let the data "
                "decide."
            )
        name = parse_method(self.method)
        options: dict[str, Any] = {
            key: value
            for key, value in asdict(self).items()
            if key not in ("method", "paper") and value is not None
        }
        for flag in ("refine", "signed"):
            if not options[flag]:
                del options[flag]
        options["n_clusters"] = parse_n_clusters(self.n_clusters)
        if self.outliers is not None:
            options["outliers"] = parse_outliers(self.outliers)
        if missing == "fit":
            options["missing"] = missing
        if options["n_clusters"] == "auto" and not issubclass(METHODS[name], InSteps):
            raise ValueError(
                f"-k auto: {name} does not count clusters; ihgmm choose-k does. Give "
                "the number."
            )
        for key in options:
            able = [each for each in METHODS if key in METHODS[each]().get_params()]
            if name not in able:
                raise ValueError(
                    f"--{key}: {name} has no such option, {listed(able, 'and')} "
                    f"{'has' if len(able) == 1 else 'have'}. Take another --method, or "
                    "leave the option out."
                )
        if self.paper and name != "IhSC":
            raise ValueError(f"--paper: these are settings of IhSC, not of {name}.")
        build = METHODS[name].paper if self.paper else METHODS[name]
        return build(**options)


def parse_method(text: str) -> str:
    """Return the name of a method, in whatever case it is written."""
    names = {name.lower(): name for name in METHODS}
    if text.lower() not in names:
        raise ValueError(f"--method {text}: give one of {', '.join(METHODS)}.")
    return names[text.lower()]


def parse_n_clusters(text: str) -> Any:
    """Return the number of clusters as it is written on the command line."""
    try:
        return "auto" if text.lower() == "auto" else int(text)
    except ValueError:
        raise ValueError(f"-k {text}: give a whole number, or auto.") from None


def parse_outliers(text: str | None) -> Any:
    """Return the share of outliers as it is written on the command line."""
    try:
        value = text if text in (None, "auto") else float(text)
        check_outliers("outliers", value)
    except ValueError:
        raise ValueError(
            f"--outliers {text}: give auto, or a share above 0 and at most 0.5."
        ) from None
    return value
