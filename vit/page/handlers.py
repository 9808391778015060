"""What a visitor's doings set off, as plain methods: paths and names come in, what the page shows goes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Semaphore, Thread
from typing import Any
from weakref import WeakSet

import anyio
import gradio as gr
from gradio.context import LocalContext
from gradio.data_classes import FileData
from PIL import Image

from ..checkpoints import CheckpointError
from ..classifier import Answer as Said
from ..classifier import Backward, Classifier
from ..explain.explanation import Explanation, UnsupportedError
from ..export import Options
from ..hub import HubError
from ..model import ViT
from ..photos.files import PhotoError
from ..photos.uploads import open_upload
from ..spaces.zero_gpu import ON_ZERO_GPU, device, gpu
from ..turn import Turn
from .explorer import Answer, ExplorerFiles, Progress
from .files import arrays_file, attention_file, first_file, map_files, patch_file
from .kept import Kept, Lately
from .models import REGISTERS, Models
from .photo import digest, digests
from .together import Together
from .turns import Budget, Crowd, TurnError

VISITOR_ERRORS = (PhotoError, CheckpointError, HubError, UnsupportedError, TurnError)  # in sentences for visitors
WAITING = 64  # visitors at once; the next are told that it is busy
LATELY = 3000.0  # seconds: as long as what visitors send


@contextmanager
def shown_errors() -> Iterator[None]:
    """Let a visitor see what went wrong as one sentence, and nothing of the server."""
    try:
        yield
    except VISITOR_ERRORS as error:
        raise gr.Error(str(error), print_exception=False) from None
    except gr.Error:
        raise
    except Exception as error:
        raise gr.Error("Something went wrong here: try again, or try another photo.") from error


class Handlers:
    """The handlers of a page that offers these models and examples."""

    def __init__(self, models: Models, examples: Sequence[Path] = ()) -> None:
        self.models = models
        self.examples = {photo.stem: photo for photo in examples}
        self.known = digests(examples)
        self.crowd = Crowd(WAITING)
        self.together = Together(models.lock)
        self.answered: Lately[Said] = Lately(2000, LATELY)
        self.kept = Kept(self.known, models.first.name, LATELY)
        self._trying: WeakSet[ViT] = WeakSet()  # models whose precision is being chosen
        # Threads of their own: who waits for a model that is being fetched must not take those that serve files.
        self._aside = partial(anyio.to_thread.run_sync, limiter=anyio.CapacityLimiter(WAITING))
        self._opened, self._opened_later = Semaphore(2), Semaphore(1)  # photos at once: each may be large
        self._mapped = Semaphore(Backward.GRAPHS)  # photos whose maps are made at once: their passes are kept meanwhile
        # As methods of this very object: where there is a GPU for them, what they take is pickled.
        self.first_on_gpu, self.attention_on_gpu = gpu(self.find_first), gpu(self.find_attention)
        self.maps_on_gpu, self.patch_on_gpu = gpu(self.find_maps), gpu(self.find_patch)
        self.arrays_on_gpu, self.answer_on_gpu = gpu(self.find_arrays), gpu(self.find_answer)

    async def predict(self, photo: str | None, model: str) -> dict[str, float]:
        """The five likeliest labels of a photo, each with its probability.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers
        """
        with shown_errors(), self.crowd:
            # Some checkpoints have a label twice (ImageNet's crane, a bird and a machine): the likelier is shown.
            return dict(reversed((await self._answer(photo, model)).predictions))

    async def familiarity(self, photo: str | None, model: str) -> float | None:
        """How like its training photos the photo is, 0 to 1: below 0.05 the model was trained on nothing like it.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers

        Returns:
            the share of held-out training photos that are less like them; null where the model does not know
        """
        with shown_errors(), self.crowd:
            return (await self._answer(photo, model)).familiarity

    async def _answer(self, photo: str | None, model: str) -> Said:
        """What the model says of a photo, together with those of other visitors; asked again, as it was."""
        path, left = there(photo), has_left()
        asked, found = await self._aside(self._kept_or_model, path, model)
        if isinstance(found, Said):
            return found
        if found is None:
            said = await self._aside(self.answer_on_gpu, path, model)
        else:
            said = await self.together.answer(found, path, left)
        self.answered.put(asked, said, 1)
        return said

    def _kept_or_model(self, photo: str, model: str) -> tuple[tuple[str, str], Said | Classifier | None]:
        """What is asked; its answer if it is kept, or the model, or nothing for a GPU that is lent to one at a time.

        All in one go: each way aside takes time.
        """
        asked = digest(photo), model
        return asked, self.answered.get(asked) or (None if ON_ZERO_GPU else self._ready(model))

    def find_answer(self, photo: str, model: str) -> Said:
        """What the model says of a photo, by itself."""
        with self.opened(photo, model) as (classifier, picture):
            return classifier.answer(picture)

    def explain(self, photo: str | None, model: str) -> ExplorerFiles:
        """What the model looks at in a photo: its attention, and the maps of other methods, for the likeliest classes.

        Args:
            photo: the photo, a file of any common format
            model: one of the models that the page offers

        Returns:
            files in the safetensors format: attention = scale × share², by layer, head and token
        """
        with shown_errors(), self.crowd:
            path, turn = there(photo), self.budget()
            with self._mapped:
                explanation, file = self._explained(path, model, turn)
                files = ExplorerFiles(photo=FileData(path=path), model=model, explanation=file)
                files.maps.extend(map_files(explanation, turn))
            return files

    def show(self, photo: str | None, model: str, files: ExplorerFiles | None) -> Any:
        """What is looked at first of the photo in the box, or of that which the page opened with."""
        wanted = files.photo.path if photo is None and files is not None else photo
        if wanted is None:
            return gr.skip()
        with shown_errors(), self.crowd:
            return self.open(there(wanted), model)

    def open(self, photo: str, model: str) -> ExplorerFiles:
        """What is looked at first of a photo; the page asks for the rest."""
        [file] = self.kept.files("first", photo, model, lambda: [self.first_on_gpu(photo, model)])
        return ExplorerFiles(photo=FileData(path=photo), model=model, explanation=file)

    def put_back(self, files: ExplorerFiles | None) -> Any:
        """After a photo that could not be explained, the one that is shown."""
        return None if files is None else files.photo.path

    def pick(self, event: gr.EventData) -> str:
        """The example that was clicked."""
        if event.name not in self.examples:
            raise gr.Error("There is no such example: choose one that is shown.", print_exception=False)
        return str(self.examples[event.name])

    def choose_model(self, current: str, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        """The model that is wanted, with its progress, or with a sentence the current one."""
        wanted = event.model + (REGISTERS if event.registers else "")
        for answer, model in self._loading(wanted, current, event):
            yield gr.skip() if model is None else model, answer

    def follow_link(self, current: str, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        """The example and the model that a link names; layer, head and map are the explorer's to read."""
        photo = self.examples.get(event.example or "")
        for answer, model in self._loading(event.model or current, current, event):
            shown = gr.skip() if model is None or photo is None else str(photo)
            yield shown, gr.skip() if model is None else model, answer

    def ask_attention(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        asked = files.photo.path, files.model
        yield from answers(
            self.crowd, event, lambda: self.kept.files("whole", *asked, lambda: [self.attention_on_gpu(*asked)])
        )

    def ask_maps(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        asked = files.photo.path, files.model
        yield from answers(self.crowd, event, lambda: self.kept.files("maps", *asked, lambda: self.maps_on_gpu(*asked)))

    def ask_patch(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        yield from answers(self.crowd, event, lambda: [self.patch_on_gpu(files.photo.path, files.model, event.patch)])

    def save_arrays(self, files: ExplorerFiles, event: gr.EventData) -> Iterator[Answer]:
        options = Options(label=event.label, against=event.against, heads=event.heads, patch=event.patch)
        yield from answers(self.crowd, event, lambda: [self.arrays_on_gpu(files.photo.path, files.model, options)])

    def find_first(self, photo: str, model: str) -> FileData:
        """What is looked at first: predictions, and what the class token looks at."""
        with shown_errors(), self._picture(self._opened, photo, model) as (classifier, picture):
            with self.models.lock:
                explanation = classifier.explain(picture)
            return first_file(*self._names(photo), picture, classifier, explanation)

    def find_attention(self, photo: str, model: str) -> FileData:
        """What every token looks at."""
        with shown_errors(), self.opened_later(photo, model) as (classifier, picture):
            return attention_file(classifier.explain(picture))

    def find_maps(self, photo: str, model: str) -> Iterator[FileData]:
        """The maps of other methods than attention, as they are ready."""
        with shown_errors():
            turn = self.budget()
            with self._mapped:
                yield from map_files(self._explanation(photo, model, turn), turn)

    def find_patch(self, photo: str, model: str, patch: int | None) -> FileData:
        """What a patch looks at, and what looks at it; None: the class token."""
        with shown_errors(), self.opened_later(photo, model) as (classifier, picture):
            return patch_file(classifier.explain(picture), patch)

    def find_arrays(self, photo: str, model: str, options: Options) -> FileData:
        """The maps as arrays to download."""
        with shown_errors():
            turn = self.budget()
            explanation = self._explanation(photo, model, turn)
            return arrays_file(explanation, Path(photo).stem, options, turn)

    def _names(self, photo: str) -> tuple[str, str | None]:
        """The photo's name, and the example's that it is."""
        return Path(photo).stem, self.known.get(digest(photo))

    def _loading(self, wanted: str, current: str, event: gr.EventData) -> Iterator[tuple[Answer, str | None]]:
        """Answers with the progress of a load, then one with the model that is there."""
        progress: Queue[Progress | None] = Queue()
        problem = []

        def load() -> None:
            try:
                self.models.get(wanted, lambda share, text: progress.put(Progress(share=share, text=text)))
            except VISITOR_ERRORS as error:
                problem.append(str(error))
            except Exception:
                problem.append(f"{wanted} could not be loaded: try again.")
                raise
            finally:
                progress.put(None)

        Thread(target=load, daemon=True).start()
        asked = dict(event._data)
        while (now := progress.get()) is not None:
            yield Answer(asked=asked, progress=now), None
        if problem:
            said, _, _ = problem[0].rpartition(": ")  # what to do about it is not the visitor's to do
            gr.Warning(f"{said or problem[0]}. {self.models.title(current)} stays.")
        yield Answer(asked=asked, done=True), current if problem else wanted

    # The photo itself is let go before maps are made of these, when other visitors have their turns in between.
    def _explained(self, photo: str, model: str, turn: Turn) -> tuple[Explanation, FileData]:
        with self._picture(self._opened_later, photo, model) as (classifier, picture):
            with turn():
                explanation = classifier.explain(picture)
            return explanation, first_file(*self._names(photo), picture, classifier, explanation, whole=True)

    def _explanation(self, photo: str, model: str, turn: Turn) -> Explanation:
        with self.opened_later(photo, model, turn) as (classifier, picture):
            return classifier.explain(picture)

    def budget(self) -> Budget:
        """The turns of a request that takes long, or is tried out: for none of them others wait long."""
        return Budget(self.models.lock, has_left())

    @contextmanager
    def opened(self, photo: str | None, model: str) -> Iterator[tuple[Classifier, Image.Image]]:
        """The model where it runs, and the photo of a stranger, opened before its turn comes: both while it lasts."""
        with self._picture(self._opened, photo, model) as found, self.models.lock:
            yield found

    @contextmanager
    def opened_later(
        self, photo: str | None, model: str, turn: Turn | None = None
    ) -> Iterator[tuple[Classifier, Image.Image]]:
        """The same in a turn of a `budget`: whoever wants an answer does not wait for it."""
        with self._picture(self._opened_later, photo, model) as found, (turn or self.budget())():
            yield found

    @contextmanager
    def _picture(self, opened: Semaphore, photo: str | None, model: str) -> Iterator[tuple[Classifier, Image.Image]]:
        """The model and the photo, one of those that may be open at once, in nobody's turn."""
        path, classifier = there(photo), self._model(model)
        with opened:
            yield classifier, open_upload(path)

    def _ready(self, source: str) -> Classifier:
        """The model, in float32 until a trial has chosen its precision, which is run aside: nobody waits for that."""
        classifier = self._model(source)
        classifier.check_predicts()
        if classifier.is_settled:
            return classifier
        if classifier.model not in self._trying:
            self._trying.add(classifier.model)
            Thread(target=self._settle, args=(classifier,), daemon=True).start()
        return replace(classifier, precision="float32")

    def _settle(self, classifier: Classifier) -> None:
        try:
            classifier.settled(lambda: self.models.lock)
        finally:  # where it failed, another visitor's question tries again
            self._trying.discard(classifier.model)

    def _model(self, source: str) -> Classifier:
        """The model, where it runs."""
        classifier = self.models.get(source)
        if classifier.model.position_embedding.device.type != device():  # to ask is quick, and to move takes 2 ms
            classifier.model.to(device())
        return classifier


def has_left() -> Callable[[], bool]:
    """Tells, whenever it is called, whether the visitor has left whose request this is."""
    blocks, number = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = None if blocks is None or number is None else blocks._queue.event_ids_to_events.get(number)
    return lambda: event is not None and not event.alive


def there(photo: str | None) -> str:
    """The photo's path, where it is still kept."""
    if photo is None:
        raise PhotoError("There is no photo: choose one first.")
    if not Path(photo).exists():
        raise PhotoError("The photo is no longer kept here: choose it again.")
    return photo


def answers(crowd: Crowd, event: gr.EventData, find: Callable[[], Iterable[FileData]]) -> Iterator[Answer]:
    """An answer with each file; where one fails, a sentence, and the explorer hears that there are no more."""
    answer = Answer(asked=dict(event._data))
    try:
        with shown_errors(), crowd:
            for file in find():
                answer.files.append(file)
                yield answer
    except gr.Error as error:
        gr.Warning(error.message)
    answer.done = True
    yield answer
