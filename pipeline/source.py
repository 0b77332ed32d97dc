"""Alias: the path by which users' programs import the data source (docs/pipeline.md).

The class is in read/data_source.py.
"""

from pipeline.read.data_source import RollcallLog

__all__ = ["RollcallLog"]
