"""Makes the Fortran module of the C interface: `fortran_module.py waywiser.h waywiser.f90.in waywiser.f90`.

The template has what a header cannot say; constants and interfaces are those of the header's enumerations and
functions.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Of a parameter: its C type, with const and stars, and how Fortran declares it.
BY_VALUE = {
    "int": "integer(c_int), value",
    "size_t": "integer(c_size_t), value",
    "double": "real(c_double), value",
    "uint64_t": "integer(c_int64_t), value",
    "ww_type": "integer(c_int), value",
    "ww_op": "integer(c_int), value",
    "ww_halo_variant": "integer(c_int), value",
    "ww_mode": "type(ww_mode), value",
}
BY_ADDRESS = {
    "const char*": "character(kind=c_char), intent(in) :: {}(*)",
    "const size_t*": "integer(c_size_t), intent(in) :: {}(*)",
    "size_t*": "integer(c_size_t), intent(out) :: {}",
    "int*": "integer(c_int), intent(out) :: {}",
    "const int*": "integer(c_int), intent(in) :: {}(*)",
    "uint64_t*": "integer(c_int64_t), intent(out) :: {}",
    "const uint64_t*": "integer(c_int64_t), intent(in) :: {}(*)",
    "double*": "real(c_double), intent(out) :: {}",
    "const ww_remote_number*": "type(ww_remote_number), intent(in) :: {}(*)",
    "const ww_remote_argument*": "type(ww_remote_argument), intent(in) :: {}(*)",
    "const ww_remote_shape*": "type(ww_remote_shape), intent(in) :: {}",
    "const int64_t*": "integer(c_int64_t), intent(in) :: {}(*)",
    "int64_t*": "integer(c_int64_t), intent(out) :: {}(*)",
    "const ww_exchange*": "type(ww_exchange), intent(in) :: {}(*)",
    "const ww_halo_neighbor*": "type(ww_halo_neighbor), intent(in) :: {}(*)",
    "const ww_halo_field*": "type(ww_halo_field), intent(in) :: {}(*)",
    "const ww_halo_variant*": "integer(c_int), intent(in) :: {}(*)",
    "const ww_plan_key*": "type(ww_plan_key), intent(in) :: {}",
    "ww_plan_choice*": "type(ww_plan_choice), intent(out) :: {}",
    "ww_plan_facts*": "type(ww_plan_facts), intent(out) :: {}",
    "ww_halo_side*": "type(ww_halo_side), intent(out) :: {}",
    "ww_halo_seconds*": "type(ww_halo_seconds), intent(out) :: {}",
    "ww_message_status*": "type(ww_message_status), intent(inout), target :: {}",
    "ww_halo_totals*": "type(ww_halo_totals), intent(out) :: {}",
    "const ww_join_options*": "type(ww_join_options), intent(in) :: {}",
    "ww_unique_id*": "type(ww_unique_id), intent(out) :: {}",
    "const ww_unique_id*": "type(ww_unique_id), intent(in) :: {}",
    "ww_future* const*": "type(c_ptr), intent(in) :: {}(*)",
}
RESULTS = {
    "int": "integer(c_int)",
    "size_t": "integer(c_size_t)",
    "double": "real(c_double)",
    "const char*": "type(c_ptr)",
}
# What a call may leave out: parameters by address that may be NULL in C.
OPTIONAL = {
    ("ww_join", "options"),
    ("ww_join_by_id", "options"),
    ("ww_make_unique_id", "towards"),
    ("ww_plan_open", "file"),
    ("ww_plan_describe", "partner"),
    ("ww_file_open", "way"),
    ("ww_file_replace", "way"),
    ("ww_shuffle_begin", "spill"),
    ("ww_remote_open", "key"),
    ("ww_remote_run", "arrays"),
    ("ww_remote_run", "numbers"),
}
LONGEST_LINE = 120
# Fortran does not tell ww_wait from WW_WAIT.
OTHER_NAMES = {"ww_timeout": "ww_timed_out"}


def declared(parameter: str) -> tuple[str, str]:
    """Name and declaration of a parameter."""
    kind, _, name = re.sub(r"\s*(\*+)\s*", r"\1 ", parameter).strip().rpartition(" ")
    if kind in BY_VALUE:
        return name, f"{BY_VALUE[kind]} :: {name}"
    if kind in BY_ADDRESS:
        return name, BY_ADDRESS[kind].format(name)
    if kind.endswith("**"):
        return name, f"type(c_ptr), intent(out) :: {name}"
    return name, f"type(c_ptr), value :: {name}"


def may_be_left_out(function: str, name: str, declaration: str) -> tuple[str, str]:
    if (function, name) in OPTIONAL:
        assert "value" not in declaration, f"{name} of {function} is no address"
        declaration = declaration.replace(" ::", ", optional ::")
    return name, declaration


def interface(result: str, name: str, parameters: str) -> list[str]:
    given = [] if parameters == "void" else [declared(each) for each in parameters.split(",")]
    declarations = [may_be_left_out(name, *each) for each in given]
    kind = "subroutine" if result == "void" else "function"
    # Those that return a text have a function around them in the template.
    fortran, binding = (f"{name}_c", f', name="{name}"') if result == "const char*" else (name, "")
    names = ", ".join(each for each, _ in declarations)
    head = f"    {kind} {fortran}({names}) bind(c{binding})" + (" result(answer)" if kind == "function" else "")
    if len(head) > LONGEST_LINE:
        head = head.replace(") bind(c", ") &\n      bind(c")
    lines = [head, "      import", *(f"      {declaration}" for _, declaration in declarations)]
    lines += [f"      {RESULTS[result]} :: answer"] if kind == "function" else []
    return [*lines, f"    end {kind}"]


def constants(header: str) -> list[str]:
    return [
        f"  integer(c_int), parameter :: {OTHER_NAMES.get(name.lower(), name.lower())} = {value}"
        for body in re.findall(r"typedef enum \w+ WW_ANY_INT \{(.*?)\}", header, re.DOTALL)
        for name, value in re.findall(r"(\w+) = (-?\d+)", body)
    ]


def module(header: str, template: str) -> str:
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    functions = re.findall(r"WW_API\s+([^;]*?)\s*(ww_\w+)\(([^;]*)\);", header)
    interfaces = [line for function in functions for line in interface(*function)]
    optional = sum(", optional ::" in line for line in interfaces)
    assert optional == len(OPTIONAL), f"{len(OPTIONAL)} parameters may be left out, and the header has {optional}"
    return template.replace("@constants@\n", "\n".join(constants(header)) + "\n").replace(
        "@interfaces@\n", "\n".join(interfaces) + "\n"
    )


if __name__ == "__main__":
    header_file, template_file, made = map(Path, sys.argv[1:])
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(module(header_file.read_text(), template_file.read_text()))
