"""What every command needs: errors in one line, and commands that other packages add."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from . import registry
from .play.actions import quoted, visible

LONGEST = 2_000  # characters shown of each line of an error
# What a person wants, and the commands for it, in the order of `--help`.
GROUPS = {
    "Look": ("watch", "serve", "mcp"),
    "Measure": ("evaluate", "verify"),
    "Train": ("train", "sweep"),
    "Read logs": ("triage",),
    "Maintain": ("build-base", "publish-model", "export-harbor"),
}


def fail(error: Exception, status: int = 2) -> typer.Exit:
    """Print an error, safe to show, and return the exit to raise."""
    lines = "\n".join(visible(line, LONGEST) for line in str(error).splitlines())
    typer.secho(f"error: {lines}", fg="red", err=True)
    return typer.Exit(status)


@contextmanager
def errors_in_a_line(status: int = 2) -> Iterator[None]:
    """Turn a command's `ValueError`, `OSError` or missing library into the exit of `fail`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise fail(ValueError(registry.lacking(error)), status) from None
    except (ValueError, OSError) as error:
        raise fail(error, status) from None


# Options that choose incidents, so they do not go with `--suite`.
CHOOSE = ("task", "split", "episodes", "first", "topology")


def given_options(context: typer.Context, among: Container[str]) -> str:
    """The options that stand on the command line, of those parameters: `--task, --split`."""
    given = []
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in among and source is not None and source.name == "COMMANDLINE":
            given.append(parameter.opts[0])
    return ", ".join(given)


def refuse_beside_suite(context: typer.Context) -> None:
    """Raise `ValueError` for options that choose other incidents than a suite has."""
    if others := given_options(context, CHOOSE):
        raise ValueError(f"--suite says which incidents are played; drop {others}")


class Commands(TyperGroup):
    """The commands of this package, and those of others, which are imported when asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = [*super().list_commands(ctx), *registry.names(registry.COMMANDS)]
        listed = [name for names in GROUPS.values() for name in names if name in known]
        return [*listed, *(name for name in known if name not in listed)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in registry.names(registry.COMMANDS):
            with errors_in_a_line():
                added = registry.load(registry.COMMANDS, cmd_name)
            command = get_group(added).commands[cmd_name]
        for group, names in GROUPS.items():
            if cmd_name in names and command is not None:
                command.rich_help_panel = group
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args[0] not in known and not {"train", "triage"} <= {*known}:
            ctx.fail(f"{quoted(args[0])} is no command that is installed; {registry.MORE}")
        return super().resolve_command(ctx, args)
