"""Clustering of observations that share a pattern but differ in scale."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ihgmm import _display

if TYPE_CHECKING:
    from ihgmm._public import *  # noqa: F403
    from ihgmm._public import __all__ as __all__

    __version__: str

# Results show themselves, and lie below all that makes sentences, pictures and pages.
_display.shown_by(
    sentences=(
        "ihgmm.words.counts",
        "ihgmm.words.diagnoses",
        "ihgmm.words.features",
        "ihgmm.words.scales",
    ),
    pictures="ihgmm.plotting.results:plot_result",
    pages="ihgmm.report:write_report",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("ihgmm")

    # All names come at once, with the first that is asked for: NumPy, SciPy and
    # scikit-learn take a second to import, which ``ihgmm --help`` can do without.
    if name == "__all__" or not name.startswith("_"):
        public = import_module("ihgmm._public")
        public_names = ["__all__", *public.__all__]
        globals().update({name: getattr(public, name) for name in public_names})
        if name in globals():
            return globals()[name]

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), "__version__", *globals()})
