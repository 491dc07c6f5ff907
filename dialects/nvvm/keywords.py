"""Enumerations, printed as a keyword in angle brackets, as in MLIR: `#nvvm.shfl_kind<down>`.

xDSL's `EnumAttribute` prints an enumeration of a dialect as `#nvvm<shfl_kind down>`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class KeywordAttr(ParametrizedAttribute):
    """Base of the enumerations; a member prints as `<word>`."""

    value: StringAttr
    WORDS: ClassVar[tuple[str, ...]]

    def verify(self) -> None:
        if self.value.data not in self.WORDS:
            raise VerifyException(f"expected one of {', '.join(self.WORDS)}, got {self.value.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.value.data)
