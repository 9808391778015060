"""The package's rooms import in one direction, and no module imports itself by a detour; imports anywhere count."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import vit

PACKAGE = Path(vit.__file__).parent
# What each room, a folder or a single module, may import beside itself.
MAY = {
    **dict.fromkeys(("config", "stem", "familiarity", "memory", "kernels", "hub", "extras", "turn"), ""),
    "model": "config stem",
    "precision": "kernels model turn",
    "registers": "config model turn",
    "summary": "config model",
    "photos": "memory",
    "explain": "familiarity kernels model turn",
    "classifier": "explain familiarity kernels memory model photos precision registers turn",
    "export": "classifier explain photos",
    "onnx_export": "classifier photos",
    "checkpoints": "classifier config familiarity hub model photos precision",
    "processes": "extras",
    "many": "classifier processes",
    "finetune": "checkpoints classifier config explain extras familiarity hub kernels model photos processes registers",
    "spaces": "checkpoints hub photos",
    "page": "checkpoints classifier explain export hub model photos spaces turn",
    "app": "checkpoints extras memory page photos spaces",
    "__init__": "checkpoints classifier config explain hub model photos",
    "__main__": "app checkpoints classifier config explain export extras finetune hub many memory onnx_export "
    "photos precision processes spaces summary",
}


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, in functions and for types too."""
    package, found = ["vit", *path.relative_to(PACKAGE).parent.parts], set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parts, *(node.module or "").split(".")]).strip(".")
            found |= {name if name in MODULES else base for name in (f"{base}.{alias.name}" for alias in node.names)}
    return found & MODULES


def name_of(path: Path) -> str:
    return ".".join(["vit", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = set(FILES)
IMPORTS = {name: imported(path) for name, path in FILES.items()}


def test_rooms_import_in_one_direction():
    assert [*TopologicalSorter({room: may.split() for room, may in MAY.items()}).static_order()]
    room = {name: name.split(".")[1] if "." in name else "__init__" for name in MODULES}
    wrong = {
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if room[other] not in (room[name], *MAY[room[name]].split())
    }
    assert not wrong


def test_no_module_imports_itself_by_a_detour():
    assert len([*TopologicalSorter(IMPORTS).static_order()]) == len(MODULES)
