"""What ``--help`` says: what each command is for, by example."""

from __future__ import annotations

ABOUT = """\
Turn a classifier's forecasts into probabilities that can be trusted.

```
isoroc fit march.parquet --label y --probs p_cat,p_dog,p_bird -o model.json
isoroc evaluate april.parquet --label y --model model.json
isoroc apply model.json new.csv -o calibrated.csv
isoroc export model.json --sql duckdb --table forecasts
```

Files may be CSV, TSV, NDJSON (all also .gz or .zst), Parquet or Arrow, several of them, globs,
folders, or - for standard input and output, and of any size. `isoroc COMMAND --help` shows more,
`isoroc demo` shows the whole job.
"""

EPILOGUE = """\
Exit codes: 0 done; 1 a check of `evaluate --fail-if` failed; 2 bad options, files or data; 3 a
fault of isoroc; 130 interrupted; 141 the reader of the output has gone. `--debug` shows where an
error arose.
"""

COMMANDS = {
    "fit": """\
Learn a calibration map from forecasts and outcomes.

```
isoroc fit march.parquet --label y --probs p_cat,p_dog,p_bird -o model.json
isoroc fit 'days/*.csv.gz' --label clicked --probs score -o model.json
isoroc fit log.ndjson --where "y IS NOT NULL" --max-bins 20 -o model.json
zcat log.csv.gz | isoroc fit - -w weight -c irp --monotonicity global -o model.json
```

A column such as proba_cat is taken to be of the class cat if that is a label; where no name says
anything, columns stand in the order of the sorted labels. The same file gives the same model:
`--random-state` is 0 unless you say otherwise.
""",
    "apply": """\
Add calibrated forecasts to a file, in the same order.

```
isoroc apply model.json new.parquet -o calibrated.parquet
isoroc apply model.json 'days/*.csv.gz' -o all.parquet --names cat,dog,bird
isoroc apply model.json new.csv -o new.csv --replace
cat new.ndjson | isoroc apply model.json - -o - | head
```

Rows are read and written in batches, so files of any size need little memory. The output appears
whole or not at all. Other columns are passed on as they are.
""",
    "evaluate": """\
Judge forecasts, before and after calibration, and guard a pipeline.

```
isoroc evaluate april.parquet --label y
isoroc evaluate april.parquet --label y --model model.json
isoroc evaluate april.parquet -l y -m model.json --compare older.json --markdown
isoroc evaluate april.parquet -l y -m model.json --fail-if "calibration_error > 0.02"
isoroc evaluate april.parquet -m model.json --fail-if "after.log_loss > before.log_loss"
```

Judge on rows that the calibrator has not seen. Intervals and differences come from resampling the
rows. With `--fail-if` the exit code is 1 if a condition holds.
""",
    "inspect": """\
Show what a model file holds: bins, path, certificate, where it comes from.

```
isoroc inspect model.json
isoroc inspect model.json --json
```
""",
    "export": """\
Turn a model file into ONNX or SQL.

```
isoroc export model.json --onnx model.onnx
isoroc export model.json --sql duckdb --table forecasts
isoroc export model.json --sql bigquery --probs p_cat,p_dog,p_bird -o calibrate.sql
```
""",
    "calibrators": """\
List the calibrators, or the parameters of one.

```
isoroc calibrators
isoroc calibrators irp
```
""",
    "demo": """\
The whole job on generated data: fit, evaluate, apply.

```
isoroc demo
isoroc demo --keep folder
```
""",
    "reproduce": """\
The paper's experiments and figures, next to what isoroc makes of the same data.

```
isoroc reproduce --quick --out results
```
""",
}
