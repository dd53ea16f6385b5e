"""Runs the Navier-Stokes solver: single cases with pictures, validations beside references, and the table of times.

python apps/navier_stokes/run.py case cavity --ranks 2 --output results -- --cells 4096 --reynolds 400
python apps/navier_stokes/run.py case duct.yaml --ranks 4 --output results
python apps/navier_stokes/run.py check duct.msh
python apps/navier_stokes/run.py validate cavity taylor_green --output results
python apps/navier_stokes/run.py table --cells 0.5M 2M 8M --ranks 1 2 4 --output results
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from program import ROOT, RunError, find_program, run

sys.path.append(str(ROOT / "python"))  # where waywiser is not installed


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="the program for GPUs")
    verbs = parser.add_subparsers(dest="verb", required=True)
    case = verbs.add_parser("case", help="compute one case and draw it; after --: options of the program")
    case.add_argument("name", help="a case of the program, or a case file that ends with .yaml")
    case.add_argument("--ranks", type=int, default=1)
    check = verbs.add_parser("check", help="say what is wrong with a mesh; exit code 1 if it has errors")
    check.add_argument("mesh")
    validate = verbs.add_parser("validate", help="compare with references; exit code 1 if a figure is off")
    names = "cavity, poiseuille, taylor_green, cylinder, bend, draft_tube"
    validate.add_argument("names", nargs="*", help=f"of {names}; default: all")
    validate.add_argument("--ranks", type=int, default=1)
    validate.add_argument("--quick", action="store_true", help="small meshes")
    validate.add_argument("--images", type=Path, help="folder for pictures; default: that of the results")
    table = verbs.add_parser("table", help="time of a step and share of the exchange, by variant")
    table.add_argument("--cells", nargs="+", default=["0.5M", "2M", "8M"])
    table.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4])
    table.add_argument("--steps", type=int, default=10)
    table.add_argument("--variants", nargs="+", help="default: all, and the automatic choice")
    for each in (case, validate, table):
        each.add_argument("--output", type=Path, required=True, help="folder for results")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    chosen = parser.parse_args(words[:cut])
    chosen.options = words[cut + 1 :]
    return chosen


def case(chosen: argparse.Namespace) -> int:
    """One run and its pictures."""
    import figures

    if len(chosen.options) % 2 or any(not word.startswith("--") for word in chosen.options[::2]):
        raise RunError("options of the program come as --name value")
    options: dict[str, object] = {"case": chosen.name}
    if chosen.name.endswith((".yaml", ".yml")):
        from case_file import read_case
        from case_writer import prepare

        prepared, options = prepare(read_case(Path(chosen.name)), chosen.output, chosen.ranks)
        options["case"] = prepared
    options |= {name[2:]: value for name, value in zip(chosen.options[::2], chosen.options[1::2], strict=True)}
    report = run(find_program(chosen.gpu), chosen.ranks, output=chosen.output, **options)
    figures.fields(chosen.output, chosen.output / "fields.png")
    figures.residuals(chosen.output, chosen.output / "residual.png")
    for name, value in report.items():
        print(f"{name}: {value}")
    return 0


def check(chosen: argparse.Namespace) -> int:
    """What a mesh has; 1 if it has errors."""
    import waywiser as ww
    from waywiser.mesh import check_mesh, read_mesh

    try:
        checked = check_mesh(read_mesh(chosen.mesh))
    except ww.Error as error:
        raise RunError(str(error)) from None
    print(checked)
    return 0 if checked.good else 1


def validate(chosen: argparse.Namespace, program: Path) -> int:
    """All findings; 1 if one is off."""
    from validation import VALIDATIONS, Validation

    unknown = [name for name in chosen.names if name not in VALIDATIONS]
    if unknown:
        raise RunError(f"there is no validation {unknown[0]}; there are {', '.join(VALIDATIONS)}")
    on = Validation(program, chosen.ranks, chosen.output, chosen.images or chosen.output, chosen.quick)
    good = True
    for name in chosen.names or VALIDATIONS:
        for finding in VALIDATIONS[name](on):
            print(finding, flush=True)
            good = good and finding.good
    return 0 if good else 1


def main() -> int:
    """The exit code."""
    chosen = arguments()
    try:
        if chosen.verb == "check":
            return check(chosen)
        if chosen.verb == "case":
            return case(chosen)
        program = find_program(chosen.gpu)
        if chosen.verb == "validate":
            return validate(chosen, program)
        from table import VARIANTS, parsed_cells, table

        cells = [parsed_cells(each) for each in chosen.cells]
        print(table(program, cells, chosen.ranks, chosen.steps, chosen.variants or VARIANTS, chosen.output), end="")
        return 0
    except RunError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
