"""What all estimators share: checks of their parameters, and fits that are atomic."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial, wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from sklearn import base as sk
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm import _parameters as parameters
from ihgmm._parameters import usual_errors
from ihgmm.numerics.missing import MISSING_WAYS
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.whitening import COLUMNS
from ihgmm.statistics.noise_structures import STRUCTURES

Options = ParamSpec("Options")
ParameterCheck = Callable[[str, Any], Any]  # of a name and a value; raises

check_count_or_auto = partial(parameters.check_count, words=("auto",))

#: How each parameter is checked, whichever estimators have it.
PARAMETER_CHECKS: Mapping[str, ParameterCheck] = {
    "n_clusters": parameters.check_count,
    "noise": partial(parameters.check_choice, choices=("auto", *STRUCTURES)),
    "recipe": lambda _, value: Recipe.of(value),
    "columns": partial(parameters.check_choice, choices=COLUMNS),
    "signed": parameters.check_flag,
    "missing": partial(parameters.check_choice, choices=MISSING_WAYS),
    "max_samples": parameters.check_count,
    "n_init": check_count_or_auto,
    "max_iter": parameters.check_count,
    "tol": partial(parameters.check_number, above=0),
    "outliers": partial(
        parameters.check_number, above=0, most=0.5, words=("auto", "cells", None)
    ),
    "verbose": parameters.check_verbose,
}


class Checked(sk.BaseEstimator):
    """An estimator whose ``fit`` checks its parameters first, see :func:`atomic`."""

    _parameter_checks: ClassVar[Mapping[str, ParameterCheck]] = PARAMETER_CHECKS

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise if a parameter has a value that it cannot have."""
        for name, value in self.get_params(deep=False).items():
            if name in self._parameter_checks:
                self._parameter_checks[name](name, value)


E = TypeVar("E", bound=Checked)


def atomic(
    fit: Callable[Concatenate[E, Options], E],
) -> Callable[Concatenate[E, Options], E]:
    """Make a fit set all that it has learnt at its end, or nothing if it fails.

    A copy is fitted: until its end an earlier fit stays, also for other threads.
    """

    @wraps(fit)
    def fit_copy(self: E, /, *args: Options.args, **options: Options.kwargs) -> E:
        self._check_parameters()

        draft = copy(self)
        draft.__dict__ = {
            name: value for name, value in vars(self).items() if name[-1] != "_"
        }

        with usual_errors():
            fit(draft, *args, **options)

        self.__dict__ = draft.__dict__
        return self

    return fit_copy


class Scaler(sk.OneToOneFeatureMixin, sk.TransformerMixin, Checked):
    """A transformer that changes the cells of rows, in the place where they are."""

    @usual_errors()
    def transform(self, X: Any) -> Any:
        """Return rows, new or old, as the fit has learnt to change them."""
        check_is_fitted(self)
        data = checks.open_matrix(X, self, reset=False)
        return data.map_rows(self._change_rows, data.dtype, whole=True)

    def _change_rows(self, X: Any) -> Any:
        """Return rows in memory or on a device, changed, as an array of their kind."""
        raise NotImplementedError
