"""`mirada.load` and what it gives: one model, or several as one, with everything that is done with a model."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from mirada import hub, loading
from mirada.config.configfile import changed
from mirada.config.options import Config, SearchConfig
from mirada.errors import ConfigError, MiradaError
from mirada.files import expanded, new_folder
from mirada.notebook.pairs import texts
from mirada.texts import Scored, Translation

if TYPE_CHECKING:
    from mirada import runtime
    from mirada.evaluation.units import Units
    from mirada.explain.edits import Edits
    from mirada.notebook.explanation import Explanation
    from mirada.notebook.measuring import Evaluation
    from mirada.translator import Translator

Link = tuple[int, int]


def load(
    folder: str | Path | Sequence[str | Path],
    *,
    device: str = "auto",
    precision: Literal["float32", "int8"] = "float32",
    workers: int | None = None,
    ensemble_mode: Literal["linear", "log_linear"] = "linear",
) -> Model:
    """Load a model: a folder, several as an ensemble, an exported model (which needs no torch), or one on the hub.

    >>> mirada.load("runs/luong")
    <mirada.Model luong (general), on cpu, from runs/luong>

    A model on the hub is `hf:USER/NAME`, or USER/NAME where neither that nor a folder USER is here; a Path is never
    one. `ensemble_mode`: of several models the mean of the probabilities (linear) or of the log-probabilities
    (log_linear). Raises ModelFolderError, naming what is wrong with a folder, and ConfigError for models that are no
    ensemble or for a precision or device that an exported model has not.
    """
    folders = loading.located_all(folder)
    translator = loading.load(folders, device=device, precision=precision, workers=workers, ensemble_mode=ensemble_mode)
    return Model(translator, folders)


class Model:
    """A model that was loaded or trained, or several as one. One text gives one result, a list of them a list.

    `translator` is what the command line works with: batches, streams, warnings (`model.translator.warn = print`).
    """

    def __init__(self, translator: Translator | runtime.Translator, folders: Sequence[Path]):
        self.translator, self.folders = translator, tuple(folders)

    def __repr__(self) -> str:
        options = self.config.model
        score = f" ({options.score_name})" if options.score_name else ""
        several = f" and {len(self.folders) - 1} more" if len(self.folders) > 1 else ""
        return f"<mirada.Model {options.decoder}{score}{several}, on {self.device}, from {self.folders[0]}>"

    @property
    def config(self) -> Config:
        """The options in force, of the first of an ensemble."""
        return self.translator.config

    @property
    def device(self) -> str:
        """Where it computes."""
        return str(getattr(self.translator, "device", "cpu"))

    @property
    def metrics(self) -> dict[str, Any]:
        """How good it was on its dev pairs; empty for an exported model."""
        return dict(getattr(self.translator, "metrics", {}))

    @property
    def has_attention(self) -> bool:
        """Whether outputs can come with weights over the source."""
        return self.translator.has_attention

    # Overlap: a text is itself something that gives texts, its letters; the first that fits is taken.
    @overload
    def translate(self, text: str, *, beam_size: int | None = None) -> str: ...  # type: ignore[overload-overlap]

    @overload
    def translate(self, text: str, *, n_best: int, beam_size: int | None = None) -> list[str]: ...  # type: ignore[overload-overlap]

    @overload
    def translate(self, text: Iterable[str], *, beam_size: int | None = None) -> list[str]: ...

    @overload
    def translate(self, text: Iterable[str], *, n_best: int, beam_size: int | None = None) -> list[list[str]]: ...

    def translate(self, text: str | Iterable[str], *, n_best: int | None = None, beam_size: int | None = None) -> Any:
        """The best output of a text, or of each of many; with `n_best` a list of so many for each.

        >>> output = model.translate("the red fox sleeps")
        >>> model.translate(["the red fox sleeps", ""]) == [output, ""]
        True
        >>> len(model.translate(["the red fox sleeps", "a cat"], n_best=2, beam_size=4)[1])
        2

        Raises DataError for what is no text, ConfigError for numbers that do not fit each other.
        """
        one = isinstance(text, str)
        asked = {"n_best": 1 if n_best is None else n_best, **({} if beam_size is None else {"beam_size": beam_size})}
        found = self.search([text] if isinstance(text, str) else text, options=changed(self.config.search, asked))
        outputs = [[output.text for output in several] for several in found]
        shown = [several[0] for several in outputs] if n_best is None else outputs
        return shown[0] if one else shown

    def search(
        self,
        text: Iterable[str],
        *,
        options: SearchConfig | None = None,
        prefixes: Sequence[str] | None = None,
        batch_size: int | None = 64,
        with_attention: bool = False,
    ) -> list[list[Translation]]:
        """The `n_best` outputs of each text with all that is known of them: scores, tokens, attention.

        >>> [[best]] = model.search(["a cat"], with_attention=True)
        >>> best.attention.shape == (len(best.tokens), len(best.source_tokens))
        True

        `prefixes` are how outputs begin, to the character. Raises DataError for what is no text.
        """
        return self.translator.search(
            texts(text, "texts", "text"),
            options=options,
            prefixes=prefixes,
            batch_size=batch_size,
            with_attention=with_attention,
        )

    def stream(
        self, lines: Iterable[str], *, options: SearchConfig | None = None, with_attention: bool = False
    ) -> Iterator[list[Translation]]:
        """Outputs of each line, in order and at constant memory, however many there are.

        >>> [best.finished for best, *_ in model.stream(iter(["a cat", ""]))] == [False, True]
        True
        """
        return self.translator.stream(lines, options=options, with_attention=with_attention)

    @overload
    def score(self, source: str, target: str, *, with_attention: bool = False) -> Scored: ...  # type: ignore[overload-overlap]

    @overload
    def score(self, source: Iterable[str], target: Iterable[str], *, with_attention: bool = False) -> list[Scored]: ...

    def score(self, source: Any, target: Any, *, with_attention: bool = False) -> Scored | list[Scored]:
        """How likely a given output is: its natural log-probability, in all and by token; of one pair or of many.

        >>> found = model.score("a cat", "un gato")
        >>> found.log_probability == sum(found.token_log_probabilities)
        True

        Raises DataError if the counts differ.
        """
        sources, targets, one = _sides(source, target)
        found = self.translator.score(sources, targets, with_attention=with_attention)
        return found[0] if one else found

    def align(self, source: Any, target: Any, *, units: Units = "words") -> Any:
        """Word links (source, target), from 0, of a pair or of each of many, by the attention of forced decoding.

        >>> links = model.align("a cat", "un gato")
        >>> {j for i, j in links} == {0, 1}
        True

        `units`: words between blanks; or punctuation, which counts the marks at their ends by themselves; or tokens.
        Raises ConfigError for a model without attention, DataError if the counts differ.
        """
        from mirada.notebook.measuring import links

        sources, targets, one = _sides(source, target)
        found = links(self.torch_model("align"), sources, targets, units)
        return found[0] if one else found

    def explain(
        self,
        text: str,
        *,
        reference: str | None = None,
        prefix: str | None = None,
        beam_size: int | None = None,
        top: int = 5,
        edits: Edits | None = None,
    ) -> Explanation:
        """Every number of one text's output, in the order in which it is computed; it draws itself in a notebook.

        >>> how = model.explain("the red fox sleeps")
        >>> how.attention.shape == (len(how.tokens), len(how.source_tokens))
        True

        `reference` is a given output and `prefix` its beginning; `top` next tokens are listed at each step; `edits`
        (mirada.explain.edits) change the attention. Raises DataError for a text without tokens, ConfigError for an
        ensemble or an exported model.
        """
        from mirada.notebook.explanation import explain

        search = {"n_best": 1, **({} if beam_size is None else {"beam_size": beam_size})}
        given = {"reference": reference, "prefix": prefix}
        return explain(self.torch_model("explain"), text, search, given, top=top, edits=edits)

    def evaluate(
        self,
        source: Iterable[str],
        target: Iterable[str | Sequence[str]],
        *,
        metrics: Sequence[str] = (),
        beam_size: int | None = None,
    ) -> Evaluation:
        """How good outputs are by their references, with 95 % intervals; it draws itself in a notebook.

        >>> model.evaluate(["a cat", "the cat"], ["un gato", "el gato"], metrics=["chrf"])["chrf"].value < 50
        True

        A target may be a list of references. `metrics`: those of `mirada evaluate`; by default those that fit the
        tokens. Raises DataError if the counts differ, ConfigError for an unknown metric.
        """
        from mirada.notebook.measuring import evaluate

        search = {"n_best": 1, **({} if beam_size is None else {"beam_size": beam_size})}
        return evaluate(self.translator, source, target, metrics, search)

    def save(self, folder: str | Path) -> Path:
        """Copy the model into a folder of its own, which `mirada.load` and the command line take; returns it.

        >>> model.save("copied").name
        'copied'

        The state of a training that can go on stays behind. Raises ConfigError for an ensemble, MiradaError where
        something stands there already or the model's own folder is gone.
        """
        if len(self.folders) > 1:
            raise ConfigError(f"an ensemble of {len(self.folders)} models is no folder; save each of them")
        files = [self.folders[0] / name for name in (*hub.MODEL, *hub.EXPORTED)]
        if not files[0].is_file():
            raise MiradaError(f"{self.folders[0]}: no model stands there any more, so there is nothing to copy")
        with new_folder(expanded(folder)) as made:
            for file in files:
                if file.is_file():
                    shutil.copyfile(file, made / file.name)
        return expanded(folder)

    def to(self, device: str) -> Model:
        """Move the model to a device: auto, cpu, cuda or cuda:N; returns it.

        >>> model.to("cpu").device
        'cpu'

        Raises ConfigError for a device that is not there, and for an exported model, which runs on a CPU.
        """
        from mirada.devices import choose_device

        translator, where = self.torch_model("to"), choose_device(device)
        for member in translator.members.models:
            member.model.to(where)
        self.translator = type(translator)(
            translator.members, warn=translator.warn, precision=translator.precision, workers=translator.workers
        )
        return self

    def torch_model(self, what: str) -> Translator:
        """The model as PyTorch has it; raises ConfigError, naming what needs it, for an exported one."""
        from mirada.translator import Translator

        if not isinstance(self.translator, Translator):
            raise ConfigError(f"{what} needs the model that was trained; an exported one only translates and scores")
        return self.translator


def _sides(source: Any, target: Any) -> tuple[list[str], list[str], bool]:
    """Sources, targets, and whether they were one pair."""
    one = isinstance(source, str) and isinstance(target, str)
    sides = ([source], [target]) if one else (source, target)
    return texts(sides[0], "sources", "source"), texts(sides[1], "targets", "target"), one
