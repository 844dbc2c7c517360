"""``isoroc inspect`` and ``isoroc calibrators``: contents of a model file, list of calibrators."""

from inspect import getdoc
from typing import Any

from isoroc._cli import options as opt
from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.models import DEFAULT, Model
from isoroc._cli.terminal import print_json, print_table, print_text
from isoroc._maps.modelfile import decode, read


def inspect(model: opt.ModelFile, /, *, json: opt.Json = False) -> None:
    """Show the contents of a model file: fitted parameters, bins, path, certificate, origin."""
    calibrator = Model.load(model).calibrator
    document = read(model)
    about = {
        "file": model,
        "calibrator": calibrator.calibrator,
        "classes": calibrator.classes_,
        "n_columns": calibrator.n_features_in_,
        "parameters": _parameters(calibrator.parameters),
        "saved": document["saved"],
        "isoroc": document["library"],
        "checksum": document["checksum"],
        "summary": document["summary"],
    }
    tables = {name.removesuffix("_"): table for name, table in calibrator.tables().items()}
    certificate = calibrator.certificate()
    if "verdict_" in calibrator.state:
        verdict = calibrator.state["verdict_"]
        about["verdict"] = verdict.to_dict() if json else str(verdict)
    about["fitted"] = _values(document["model"])
    if json:
        if certificate is not None:
            tables["certificate"] = certificate.table()
        simple = (str, int, float, list, type(None))
        given = about["parameters"].items()
        about["parameters"] = {k: v if isinstance(v, simple) else str(v) for k, v in given}
        print_json("inspect", about | tables)
        return
    rows = [row for name, value in about.items() for row in _rows(name, value)]
    print_table(f"model {model}", ["", "value"], rows)
    for name, table in tables.items():
        print_text(f"\n{name.replace('_', ' ')}\n{table}")
    if certificate is not None:
        print_text(f"\n{certificate}")


def _parameters(stored: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a stored calibrator. Nested calibrators become text."""
    return {name: decode(entry, name, _describe) for name, entry in stored.items()}


def _describe(model: dict[str, Any], _: str) -> str:
    parameters = _parameters(model["parameters"])
    given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return f"{model['kind']}({given})"


def _values(entry: Any) -> Any:
    """Values of a stored entry, without the description of how they are stored."""
    if isinstance(entry, list) and any(isinstance(part, dict) for part in entry):
        parts = [part if isinstance(part, dict) else {"value": part} for part in entry]
        named = ((f"{k}_{part.get('kind', '')}".rstrip("_"), part) for k, part in enumerate(parts))
        return {name: _values(part) for name, part in named}
    if not isinstance(entry, dict):
        return entry
    match entry.get("type"):
        case "array":
            return entry["values"]
        case "table":
            return {}  # shown as a table of its own
        case "calibrator":
            shown_above = ("classes_", "n_features_in_", "verdict_")
            fitted = {k: _values(v) for k, v in entry["state"].items() if k not in shown_above}
            fitted |= _values(entry.get("map", {}))
            return {name: values for name, values in fitted.items() if values != {}}
        case "map":
            entry = {f"{name}_": part for name, part in entry["numbers"].items()}
    return {name: _values(part) for name, part in entry.items() if name != "type"}


def _rows(name: str, value: Any) -> list[tuple[str, str]]:
    """Rows of the table about a model. A dictionary gives one row per entry."""
    if isinstance(value, dict):
        return [row for key, entry in value.items() for row in _rows(f"{name}: {key}", entry)]
    if not isinstance(value, str) and hasattr(value, "__len__"):
        shown = ", ".join(map(str, value[:12]))
        return [(name, shown if len(value) <= 12 else f"{shown}, ... ({len(value)} in total)")]
    return [(name, f"{value:.6g}" if isinstance(value, float) else str(value))]


def calibrators(name: str | None = None, /) -> None:
    """List the calibrators, or the parameters of one of them.

    Parameters
    ----------
    name
        A calibrator.
    """
    from isoroc._calibrators.registry import methods  # noqa: PLC0415 -- slow to import

    known = methods()
    texts = {key: getdoc(kind) or "" for key, kind in known.items()}
    if name is None:
        rows = [
            [key, text.partition("\n")[0], "*" if key == DEFAULT else ""]
            for key, text in texts.items()
        ]
        print_table("calibrators", ["name", "description", "default"], rows)
        return
    if name not in known:
        raise CommandError(f"{name}: not a calibrator; {did_you_mean(name, known)}")
    print_text(texts[name].partition("\n\nAttributes\n")[0])
