"""Lets NIXL find our back end beside its own: `python -m waywiser.nixl_folder [FOLDER]` makes a folder of links and
prints the lines that switch it on. NIXL looks into one folder; its own find their libraries from where they lie."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from waywiser.errors import Error, InputError

HERE = Path(__file__).parent
PLUGIN = HERE / "nixl/libplugin_WAYWISER.so"
PACKAGES = ("nixl_cu13", "nixl_cu12")
SWITCH = "NIXL_PLUGIN_DIR"


def nixl_libraries() -> Path:
    """The folder with libnixl.so of the NIXL that is installed for this Python."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            around = Path(spec.origin).parents[1]
            found = around / f".{package}.mesonpy.libs"
            if (found / "plugins").is_dir():
                return found
    raise InputError(f"no NIXL with back ends is installed for {sys.executable}: pip install nixl, or name its folder")


def make_folder(where: Path, libraries: Path) -> Path:
    """Links to NIXL's libraries, as they lie around its folder of back ends, and to ours; the folder of back ends."""
    if not PLUGIN.exists():
        raise InputError(f"this package has no {PLUGIN}")
    if not (libraries / "plugins").is_dir():
        raise InputError(f"{libraries} has no folder `plugins` of NIXL")
    inner = where / libraries.name
    plugins = inner / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    for link, target in _links(where, inner, libraries):
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            raise InputError(f"{link} is in the way: name a new folder")
        link.symlink_to(target)
    return plugins


def _links(where: Path, inner: Path, libraries: Path) -> Iterator[tuple[Path, Path]]:
    libraries = libraries.resolve()
    for other in sorted(libraries.parent.glob("nixl_*.libs")):
        yield where / other.name, other
    for library in sorted(libraries.glob("*.so*")):
        yield inner / library.name, library
    for plugin in sorted((libraries / "plugins").glob("*.so")):
        yield inner / "plugins" / plugin.name, plugin
    yield inner / "plugins" / PLUGIN.name, PLUGIN
    if (HERE / "lib").is_dir():
        yield inner / "lib", HERE / "lib"  # where our back end looks for our library


def switches(plugins: Path, plan: Path | None) -> list[str]:
    """The lines for a shell."""
    lines = [f"export {SWITCH}={shlex.quote(str(plugins.absolute()))}"]
    if plan is not None:
        lines.append(f"export WAYWISER_PLAN={shlex.quote(str(plan.absolute()))}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m waywiser.nixl_folder", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("waywiser-results/nixl"), help="for the links")
    parser.add_argument("--nixl", type=Path, help="NIXL's folder with libnixl.so; without: that of this Python")
    told = parser.parse_args()
    plan = Path("waywiser-results/plan.json")
    try:
        plugins = make_folder(told.folder, told.nixl or nixl_libraries())
    except (Error, OSError) as error:
        print(f"waywiser: {error}", file=sys.stderr)
        return 2
    print("\n".join(switches(plugins, plan if plan.exists() else None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
