"""Embeds the lines of a file in Spark, with `TextEmbedder` as a pandas_udf: spark_embedding.py MODEL TEXTS OUT.npy

Needs pyspark and Java, which are not among the requirements of the tests; run it in an environment that has them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

import firth


def main(model: str, texts: str, output: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    embed = firth.TextEmbedder(model)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()

    @pandas_udf("array<float>")  # type: ignore[call-overload, untyped-decorator]
    def vector(batch: pd.Series) -> pd.Series:
        return embed(batch)

    lines = enumerate(Path(texts).read_text().split("\n"))
    rows = spark.createDataFrame([(number, line) for number, line in lines], ["number", "text"]).repartition(4)
    done = rows.select("number", vector("text").alias("vector")).orderBy("number").collect()
    np.save(output, np.array([row["vector"] for row in done], np.float32))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
