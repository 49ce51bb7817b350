"""How documents are cut into chunks, and how large they may be. Units stand last in names."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from muniment.core.record import Integer, Record

__all__ = ["CorpusPolicy"]

Positive = Annotated[Integer, Field(ge=1)]


class CorpusPolicy(Record):
    """A chunk is what a pointer names and a search answers: long enough to stand alone, short enough to be read."""

    chunk_chars: Annotated[Integer, Field(ge=16)] = 1_200
    """What a chunk should have, at most; a paragraph over it stays whole up to the next."""
    chunk_chars_max: Annotated[Integer, Field(ge=16)] = 2_000
    """What no chunk exceeds."""
    chunk_chars_min: Annotated[Integer, Field(ge=0)] = 120
    """A section below it is joined with the next one."""
    document_bytes_max: Positive = 16 * 1024 * 1024
    """A document over this is refused."""
    title_chars_max: Positive = 300
    """A longer title is refused; one that was found in the text is cut."""
    reason_chars_max: Positive = 2_000
    """Why a document was retracted."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.chunk_chars_min <= self.chunk_chars <= self.chunk_chars_max:
            raise ValueError("chunk_chars should lie between chunk_chars_min and chunk_chars_max")
        return self
