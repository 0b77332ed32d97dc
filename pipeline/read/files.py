"""File access: small files on local disks and on Hadoop's file systems.

Spark reads and writes the tables. The files beside them (the manifest) are ours, and must be
replaced atomically. Local paths need only Python; all others go through Hadoop's `FileSystem` in
the driver's Java, which supports the same schemes as Spark.
"""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from py4j.java_gateway import JavaObject, JVMView
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from seams.operator_error import WrongInput

_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


class UnreachablePath(WrongInput):
    """Only the driver's Java can open it, and that is not ours; the message is for people."""


def is_local(path: str) -> bool:
    """A path of this machine, with or without `file:`."""
    return path.startswith("file:") or _SCHEME.match(path) is None


def local_path(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))


def read_text(spark: SparkSession | None, path: str) -> str | None:
    """All of a small file; None when it is not there. Local paths need no session."""
    if is_local(path):
        with suppress(FileNotFoundError):
            return local_path(path).read_text()
        return None
    assert spark is not None, "only Java opens it"
    java = _java(spark)
    system, where = _hadoop(spark, path)
    if not system.exists(where):
        return None
    stream = system.open(where)
    try:
        return bytes(java.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
    finally:
        stream.close()


def replace_text(spark: SparkSession | None, path: str, content: str) -> None:
    """Write it beside, then rename: a reader finds the old file or the new one."""
    if is_local(path):
        target = local_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(target.name + ".tmp")
        with beside.open("w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        return
    assert spark is not None, "only Java opens it"
    java = _java(spark)
    configuration = spark._jsc.hadoopConfiguration()
    target_path = java.org.apache.hadoop.fs.Path(path)
    beside_path = java.org.apache.hadoop.fs.Path(path + ".tmp")
    context = java.org.apache.hadoop.fs.FileContext.getFileContext(
        target_path.toUri(), configuration
    )
    system = target_path.getFileSystem(configuration)
    stream = system.create(beside_path, True)  # noqa: FBT003  Java has no keywords
    try:
        stream.write(bytearray(content.encode()))
    finally:
        stream.close()
    rename = java.org.apache.hadoop.fs.Options.Rename
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    options = gateway.new_array(rename, 1)
    options[0] = rename.OVERWRITE
    context.rename(beside_path, target_path, options)


def folders(spark: SparkSession, path: str) -> list[str]:
    """The names of the folders in a folder, in order; none if it is not there."""
    if is_local(path):
        where = local_path(path)
        return (
            sorted(entry.name for entry in where.iterdir() if entry.is_dir())
            if where.exists()
            else []
        )
    system, found = _hadoop(spark, path)
    if not system.exists(found):
        return []
    return sorted(
        entry.getPath().getName() for entry in system.listStatus(found) if entry.isDirectory()
    )


def remove_tree(spark: SparkSession, path: str) -> None:
    """With all that is in it."""
    if is_local(path):
        shutil.rmtree(local_path(path), ignore_errors=True)
        return
    system, found = _hadoop(spark, path)
    system.delete(found, True)  # noqa: FBT003  Java has no keywords


def renames_at_once(path: str) -> bool:
    """Renaming is atomic: after a crash the folder has its old name or its new one."""
    return is_local(path) or path.startswith("hdfs:")


def sync_folder(path: str) -> None:
    """The files in it, and their names, are on the disk when this returns. (Other file systems see
    to it when a file is closed.)"""
    if not is_local(path):
        return
    where = local_path(path)
    for each in (*where.iterdir(), where):
        opened = os.open(each, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def move_folder(spark: SparkSession, old: str, new: str) -> None:
    """There must be nothing at the new place."""
    if is_local(old):
        local_path(old).rename(local_path(new))
        return
    system, found = _hadoop(spark, old)
    if not system.rename(found, _hadoop(spark, new)[1]):
        raise OSError(f"{old} could not be renamed to {new}")


def _hadoop(spark: SparkSession, path: str) -> tuple[JavaObject, JavaObject]:
    """(the file system, the path) in Java."""
    where = _java(spark).org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark._jsc.hadoopConfiguration()), where


def _java(spark: SparkSession) -> JVMView:
    """The driver's Java: the only way to Hadoop's file systems. Raises UnreachablePath."""
    try:
        java = spark._jvm
    except PySparkAttributeError:
        raise UnreachablePath(
            "through Spark Connect a path must be mounted on this machine as well"
        ) from None
    assert java is not None
    return java
