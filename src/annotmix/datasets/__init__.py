"""The paper's datasets by name: one table of specifications, one reader per format."""

from __future__ import annotations

from annotmix.datasets.fetch import DatasetMissingError
from annotmix.datasets.loading import Dataset, list_datasets, load_dataset
from annotmix.datasets.rows import DatasetFileError

__all__ = ["Dataset", "DatasetFileError", "DatasetMissingError", "list_datasets", "load_dataset"]
