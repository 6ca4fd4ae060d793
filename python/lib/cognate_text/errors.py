"""What can go wrong, by kind.

Every exception of this package is a `CognateError`. Those that say what was asked wrongly are
`ValueError`, too.
"""

from __future__ import annotations


class CognateError(Exception):
    """The root of all exceptions of this package."""


class ModelError(CognateError):
    """A model file cannot be used: it is damaged, cut short, or no model at all."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """There is no such model file."""

    # FileNotFoundError would print its first argument as a number.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FingerprintError(ModelError):
    """A process found another model than the one it was sent to score with."""


class MethodError(CognateError, ValueError):
    """A method does not exist, or cannot do with this model what was asked."""


class NotCalibratedError(MethodError):
    """The model has no threshold for a method."""


class TextError(CognateError, ValueError):
    """A text cannot be scored, and that was to be an error.

    >>> import cognate_text
    >>> try:
    ...     cognate_text.Model().cpdist(["quake", ""], ["tremor", "x"], unscored="error")
    ... except cognate_text.TextError as error:
    ...     print(error, "|", error.argument, error.index)
    a[1] is empty | a 1
    """

    #: The name of the argument that the text was passed in.
    argument: str
    #: The text's place in it; nothing where one text was passed.
    index: int | None

    def __init__(self, message: str, argument: str = "", index: int | None = None) -> None:
        super().__init__(message, argument, index)
        self.argument = argument
        self.index = index

    def __str__(self) -> str:
        return str(self.args[0])


class ScoreError(CognateError, ArithmeticError):
    """A method gave something that is no number: a defect, or a damaged model."""
