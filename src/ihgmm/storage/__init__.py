"""Models on disk: plain files that hold numbers and names, and run nothing."""

from ihgmm.storage.archive import StorageError
from ihgmm.storage.models import load_model, save_model

__all__ = ["StorageError", "load_model", "save_model"]
