"""The Gram matrix with its diagonal filled in from the other entries."""

from ihgmm.hetero.imputation import Imputed, impute_diagonal

__all__ = ["Imputed", "impute_diagonal"]
