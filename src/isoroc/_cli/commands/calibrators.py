"""``isoroc calibrators``: the calibrators and their parameters."""

from inspect import getdoc

from isoroc._calibrators.registry import methods
from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.models import DEFAULT
from isoroc._cli.terminal import print_table, print_text


def calibrators(name: str | None = None, /) -> None:
    """List the calibrators, or the parameters of one of them.

    Parameters
    ----------
    name
        A calibrator.
    """
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
