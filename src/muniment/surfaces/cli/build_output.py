"""A build on standard output, in one of three forms: the prompt text, the packet's bytes, or one JSON document."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json

if TYPE_CHECKING:
    from muniment.packets.builds import Build

__all__ = ["check_form", "form_options", "show_build"]

F = TypeVar("F", bound=Callable[..., Any])


def form_options(command: F) -> F:
    """--text, --packet, --json: what of the build is printed."""
    command = json_option(command)
    command = click.option("--packet", "as_packet", is_flag=True, help="Print the packet: its canonical bytes.")(
        command
    )
    return click.option("--text", "as_text", is_flag=True, help="Print the prompt text (the default).")(command)


def check_form(as_text: bool, as_packet: bool, as_json: bool) -> None:
    if as_text + as_packet + as_json > 1:
        raise InvalidInput("--text, --packet and --json exclude each other", path="$.json", hint="give one of them")


def show_build(build: Build, as_packet: bool, as_json: bool) -> None:
    """Text and packet stand alone on stdout, so that they can be piped; the build's id goes to stderr."""
    if as_json:
        packet = build.packet.to_wire()
        emit_json({"build_id": build.id, "tokens": build.tokens, "text": build.text, "packet": packet})
        return
    if as_packet:
        sys.stdout.buffer.write(build.packet_bytes)
    else:
        click.echo(build.text, nl=bool(build.text) and not build.text.endswith("\n"))
    said = "" if build.text else "; nothing to tell"
    click.echo(f"build {build.id}: {build.tokens} of {build.request.budget.max_tokens} tokens{said}", err=True)
