"""What the data of a job are, as far as that is known without reading all of them: their kind and their shape."""

import json
from functools import lru_cache

from ..data import load_again
from ..data.array_files import is_array_file, kind_of_file, shape_in_file
from ..data.picture_size import DEFAULT_RESOLUTION, picture_size
from ..data.tables import is_table
from ..observations import IMAGES, VECTORS
from .jobs import Job


def kind_and_shape(job: Job) -> tuple[str, tuple[int, ...]]:
    """Return the kind of a job's observations and the shape of one, without the features of a table."""
    return _kind_and_shape(job.data_name, job.resolution, json.dumps(job.recipe, sort_keys=True))


@lru_cache(maxsize=64)
def _kind_and_shape(name: str, resolution: int | str, recipe: str) -> tuple[str, tuple[int, ...]]:
    content = json.loads(recipe)
    path, kind = content.get("path"), content.get("kind")
    if path is None:
        observations = load_again(name, resolution, content).observations
        return observations.kind, observations.shape
    if is_table(path):
        return VECTORS, ()
    if is_array_file(path) and not resolution:
        return kind_of_file(path, kind), shape_in_file(path)
    return IMAGES, picture_size(resolution or DEFAULT_RESOLUTION).shape
