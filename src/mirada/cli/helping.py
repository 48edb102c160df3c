"""What `--help` shows: examples first, then the usual options; `--help-all` shows every option, each flag once."""

from __future__ import annotations

import argparse

from mirada.messages import spoken

MOST = 18  # a command with no more options than this shows them all
# What people ask for first, in every command that has them.
USUAL = """
    help quiet src tgt tsv jsonl dev-src dev-tgt dev-tsv source-column target-column model-dir decoder score tokenizer
    vocab-size copy-attn epochs max-updates max-minutes learning-rate valid-metrics init-from seed input output scores
    beam-size n-best batch-size precision save-attention alignment hyp ref metrics json systems models budget seeds out
    quick format verify server engine lang
"""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A flag once, without its longer name `--block.flag`, and its value once."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32)

    def _get_help_string(self, action: argparse.Action) -> str:
        return spoken((action.help or "").replace("%%", "%")).replace("%", "%%")

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`--model-dir, --save-model DIR`."""
        if not action.option_strings:
            return super()._format_action_invocation(action)
        flags = ", ".join(flag for flag in action.option_strings if "." not in flag)
        value = "" if action.nargs == 0 else " " + self._format_args(action, action.dest.upper())
        return flags + value


def text(parser: argparse.ArgumentParser, *, everything: bool) -> str:
    """The help of a command."""
    formatter = parser._get_formatter()
    usage = (parser.usage or "").replace("[options]", f"[{spoken('options')}]").replace(", or ", f", {spoken('or')} ")
    formatter.add_usage(usage, parser._actions, parser._mutually_exclusive_groups, f"{spoken('usage')}: ")
    formatter.add_text(spoken(parser.description or ""))
    formatter.add_text(spoken(parser.epilog or ""))
    options = [action for action in parser._actions if action.option_strings]
    shown = {id(action) for action in options if everything or len(options) <= MOST or _is_usual(action)}
    for group in parser._action_groups:
        formatter.start_section(spoken(group.title or ""))
        formatter.add_arguments([one for one in group._group_actions if not one.option_strings or id(one) in shown])
        formatter.end_section()
    if len(shown) < len(options):
        formatter.add_text(spoken(f"{len(options) - len(shown)} more options: {parser.prog} --help-all"))
    return formatter.format_help()


def _is_usual(action: argparse.Action) -> bool:
    return any(flag.lstrip("-") in USUAL.split() for flag in action.option_strings)
