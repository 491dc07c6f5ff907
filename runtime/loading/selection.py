"""The compiled function of a module: the named function, or the only public one."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from timetile.passes.diagnostics import refuse
from timetile.runtime.loading.axes import check_axes
from timetile.runtime.loading.definitions import check_definitions


def functions_with_body(module: ModuleOp) -> list[FuncOp]:
    """The functions defined by a module, in order."""
    return [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]


def is_private(function: FuncOp) -> bool:
    """Whether other modules cannot call a function."""
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def host_function(module: ModuleOp, name: str | None = None) -> FuncOp:
    """
    The function to run: the named function, or the only function neither private nor called by
    another. Raises CompileError without such a function, or for several and no name.
    """
    functions = functions_with_body(module)
    if name is None:
        public = [function for function in functions if not is_private(function)]
        called = {symbol for function in functions for symbol in called_from(function)}
        chosen = [f for f in public if f.sym_name.data not in called] or public
    else:
        chosen = [function for function in functions if function.sym_name.data == name]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(
        f"@{function.sym_name.data}" + (" (private)" if is_private(function) else "")
        for function in functions
    )
    what = f"@{name}" if name is not None else "one public function"
    if not known:
        refuse(module, f"the module must hold {what}, and holds no function with a body; write one")
    refuse(
        module,
        f"the module must hold {what}, and holds {known}; name one with --function (function= in "
        "Python)",
    )


def symbols_in(attribute: Attribute) -> set[str]:
    """The names of symbols in an attribute and its parts."""
    match attribute:
        case SymbolRefAttr():
            return {attribute.root_reference.data}
        case ArrayAttr():
            parts = list(attribute.data)
        case DictionaryAttr():
            parts = list(attribute.data.values())
        case ParametrizedAttribute():
            parts = list(attribute.parameters)
        case _:
            return set()
    return {symbol for part in parts for symbol in symbols_in(part)}


def called_from(op: Operation) -> set[str]:
    """The names of functions in an operation and operations inside."""
    found: set[str] = set()
    for inner in op.walk():
        for attribute in (*inner.properties.values(), *inner.attributes.values()):
            found |= symbols_in(attribute)
    return found


def keep_only(module: ModuleOp, name: str | None) -> FuncOp:
    """
    Erase the functions not needed by the function to run, make this function public and others
    private. Needed are the function to run, functions called by it directly or through others, and
    functions called by the module's other operations (kernels). CompileError for a value used above
    its definition, and for an axis that cells do not have.
    """
    entry = host_function(module, name)
    if is_private(entry):
        entry.sym_visibility = StringAttr("public")
    functions = {function.sym_name.data: function for function in functions_with_body(module)}
    kept: set[str] = set()
    others = [op for op in module.ops if op not in functions.values()]
    waiting = [
        entry.sym_name.data,
        *(symbol for op in others for symbol in sorted(called_from(op))),
    ]
    while waiting:
        symbol = waiting.pop()
        if symbol in kept or symbol not in functions:
            continue
        kept.add(symbol)
        waiting += sorted(called_from(functions[symbol]))
    for symbol, function in functions.items():
        if symbol not in kept:
            function.detach()
            function.erase(safe_erase=False)
            continue
        check_definitions(function)
        check_axes(function)
        if function is not entry:
            function.sym_visibility = StringAttr("private")
    return entry
