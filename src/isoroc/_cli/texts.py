"""Texts of ``--help``."""

import re
from textwrap import dedent


def _markdown(text: str) -> str:
    """A text with its indented lines, the examples, as a block of code."""
    examples = re.compile(r"(?m)((?:^  .+\n)+)")
    return examples.sub(lambda lines: f"\n```\n{dedent(lines[1])}```\n\n", text)


ABOUT = _markdown("""\
Calibrate the forecasts of classifiers.
  isoroc fit march.parquet --label y --probs p_cat,p_dog,p_bird -o model.json
  isoroc evaluate april.parquet --label y --model model.json
  isoroc report april.parquet --model model.json -o report.html
  isoroc apply model.json new.csv -o calibrated.csv
  isoroc export model.json --sql duckdb --table forecasts
Input files may be CSV, TSV, NDJSON (each also compressed: .gz, .zst), Parquet or Arrow. Several
files, globs and folders are read as one table; - stands for standard input or output.
`isoroc COMMAND --help` describes a command, `isoroc demo` runs an example.
""")

EPILOGUE = """\
Exit codes: 0 success; 1 a condition of `--fail-if` holds, or `monitor` raised an alarm;
2 invalid options, files or data; 3 a bug in isoroc; 141 standard output was closed (broken pipe);
128 + n ended by signal n, so 130 interrupted. Every command accepts `--quiet`, which shows only
results, warnings and errors, and `--debug`, which shows the traceback of an error.
"""

_TEXTS = {
    "fit": """\
Fit a calibrator to forecasts and outcomes.
  isoroc fit march.parquet --label y --probs p_cat,p_dog,p_bird -o model.json
  isoroc fit --counts march.counts.parquet april.counts.parquet -o model.json
  isoroc fit march.parquet -o new.json --compare old.json --fail-if "unseen.log_loss > old.log_loss"
  zcat log.csv.gz | isoroc fit - -w weight -c irp --monotonicity global -o model.json
A column belongs to the class that its name ends in: proba_cat to cat. If no name ends in a label,
the columns are in the order of the sorted labels. The same file always gives the same model,
because `--random-state` is 0 by default.
""",
    "count": """\
Count forecasts and outcomes in cells, and write the weight of each class per cell to a small file.
  isoroc count march.parquet --label y --probs p_cat,p_dog,p_bird -o march.counts.parquet
  isoroc count 'days/*.csv.gz' --label clicked --probs p_click --fold-by user -o days.counts.parquet
  isoroc fit --counts '*.counts.parquet' -o model.json
Rows are read in batches, so large files need little memory. Forecasts are probabilities, or logits
with `--unit logit`. Counts of different files add up if they have the same classes and the same
resolution.
""",
    "merge": """\
Merge files of counts.
  isoroc merge day1.counts.parquet day2.counts.parquet -o both.counts.parquet
  isoroc merge old.counts.parquet today.counts.parquet --decay 0.9 -o new.counts.parquet
The output cannot be one of the inputs, so a job that is repeated counts nothing twice.
""",
    "apply": """\
Add calibrated forecasts to a table.
  isoroc apply model.json new.parquet -o calibrated.parquet
  isoroc apply model.json new.parquet -o out.parquet --on-bad null
  isoroc apply model.json new.parquet -o out.parquet --rule rule.json
  cat new.ndjson | isoroc apply model.json - -o - | head
Rows keep their order and other columns do not change. Rows are processed in batches, so large files
need little memory. The output file is complete or not written at all.
""",
    "update": """\
Let an online calibrator learn from rows whose labels have arrived.
  isoroc update state.json yesterday.parquet --label y --create
  isoroc update state.json yesterday.parquet --batch 2026-07-01 --plot history.png
  isoroc apply state.json today.parquet -o calibrated.parquet
The state is a model file, so all other commands take it. Rows that were counted before are skipped,
so a job can be repeated. The file is replaced at once, or not at all.
""",
    "accept": """\
Find the rows that may go out without a person, with a limit on their error.
  isoroc accept labelled.csv --model model.json --max-error 0.02 -o rule.json
  isoroc accept labelled.csv -m model.json --max-error no=0.02,yes=0.1 -o rule.json
  isoroc accept labelled.csv -m model.json --max-error 0.05 --fail-if "coverage < 0.6"
Use rows that the calibrator was not fitted on. With probability 95 % over these rows, at most the
given share of the accepted new rows is wrong, if new rows are like these.
""",
    "monitor": """\
Test whether calibrated forecasts are still right on new rows.
  isoroc monitor model.json today.parquet --label y --state state.json
  isoroc monitor model.json today.parquet --state state.json --rule rule.json
  isoroc monitor model.json today.parquet --state state.json --prometheus /metrics/isoroc.prom
  isoroc monitor model.json tomorrow.parquet --unlabelled
Runs with the same state file accumulate evidence. The chance of ever raising a false alarm is at
most 5 %, however often the command runs. Rows that were counted before are skipped, so a job can be
repeated. The exit code is 1 after an alarm.
""",
    "evaluate": """\
Evaluate forecasts before and after calibration.
  isoroc evaluate april.parquet --label y --model model.json
  isoroc evaluate april.parquet -m model.json --fail-if "after.log_loss > before.log_loss"
Use rows that the calibrator was not fitted on. With `--fail-if` the exit code is 1 if a condition
holds.
""",
    "report": """\
Write a report: one self-contained HTML page.
  isoroc report april.parquet --model model.json -o report.html
  isoroc report --counts april.counts.parquet --model model.json -o report.html
Use rows that the calibrator was not fitted on. The page needs no network and no other file.
""",
    "rate": """\
Estimate the rate of an outcome from few labels and scores of all rows.
  isoroc rate answers.csv --label correct --probs judge
  isoroc rate answers.csv --label correct --probs judge --by system
Rows without a label count as unlabelled. The others must be a random sample of all rows.
""",
    "inspect": """\
Show the contents of a model file: fitted parameters, bins, path, certificate, origin.
  isoroc inspect model.json
  isoroc inspect model.json --json
""",
    "export": """\
Convert a model file to ONNX or SQL.
  isoroc export model.json --onnx model.onnx
  isoroc export model.json --sql duckdb --table forecasts
  isoroc export model.json --sql postgres --table logs.may --keep id --view logs.calibrated
""",
    "calibrators": """\
List the calibrators, or the parameters of one of them.
  isoroc calibrators
  isoroc calibrators irp
""",
    "demo": """\
Fit, evaluate and apply on generated data.
  isoroc demo
  isoroc demo --keep folder
""",
}
COMMANDS = {name: _markdown(text) for name, text in _TEXTS.items()}
