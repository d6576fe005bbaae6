"""Changed latents and their pictures: even steps over a range, what lies between two codes, and runs without them."""

import numpy as np
import pytest
import torch
from torch import nn

from qlae.metrics.heatmap import UNINFORMATIVE
from qlae.models.latents import ContinuousLatent, QuantizedLatent, VectorQuantizedLatent
from qlae.models.model import Model
from qlae.observations import square_images
from qlae.report.image_pictures import FRAME, GAP, arrange_strips, fade, plot_strips
from qlae.scoring.interventions import (
    NUM_STEPS,
    NUM_STRIP,
    decode_changed,
    decode_strips,
    interpolation_steps,
    intervention_steps,
    make_pictures,
)
from qlae.scoring.latent_labels import LatentLabels


class Painter(nn.Module):
    """A decoder whose images show the latents: channel c of every pixel is the logit of latent c."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, z):
        return (self.scale * z[:, :3, None, None]).expand(-1, -1, 8, 8)


def painter(latent) -> Model:
    return Model(nn.Linear(1, 1), latent, Painter(), observations=square_images(8))


def brightness(values) -> np.ndarray:
    return np.round(255 / (1 + np.exp(-np.asarray(values, float)))).astype(np.uint8)


@pytest.fixture
def quantized() -> tuple[Model, np.ndarray, np.ndarray]:
    """Three latents with uneven values, and a sample of 5 in which the last value of the first never occurs."""
    latent = QuantizedLatent(3, 4)
    with torch.no_grad():
        latent.values.copy_(torch.tensor([[2.0, -2.0, 0.0, 9.0], [0.0, 0.1, 3.0, 3.1], [1.0, 1.0, 1.0, 1.0]]))
    codes = np.array([[0, 0, 2], [1, 1, 2], [2, 2, 2], [0, 3, 2], [1, 0, 2]])
    model = painter(latent)
    return model, codes, latent.look_up(torch.as_tensor(codes)).detach().numpy()


def test_interpolations_are_even_steps_over_the_range_of_the_sample(quantized):
    model, _, values = quantized
    steps = interpolation_steps(values)
    assert steps.shape == (NUM_STEPS, 3)
    assert np.allclose(steps[:, 0], np.linspace(-2, 2, NUM_STEPS))  # 9 never occurs
    assert np.allclose(steps[:, 1], np.linspace(0, 3.1, NUM_STEPS))
    assert (steps[:, 2] == 1).all()
    images = decode_changed(model, values[:2], steps)
    assert images.shape == (2, NUM_STEPS, 3, 8, 8, 3)
    assert np.array_equal(images[1, :, 0, 0, 0, 0], brightness(steps[:, 0]))
    assert (images[1, :, 0, 0, 0, 1] == brightness(values[1, 1])).all()  # the other latents are kept
    assert not np.isin(steps[1:-1, 0].round(6), [-2.0, 0.0, 2.0]).all()  # values that are in no codebook


def test_a_strip_goes_from_a_code_to_the_next_that_changes_the_image_most(quantized):
    model, codes, values = quantized
    strips, ends = decode_strips(model, codes, values, sample=0)
    assert strips.shape == (3, NUM_STRIP, 8, 8, 3)
    assert ends.tolist()[1] == [1, 2]  # from 0.1 to 3.0, and not from 0.0 to 0.1
    assert np.array_equal(strips[1, :, 0, 0, 1], brightness(np.linspace(0.1, 3.0, NUM_STRIP)))
    assert (strips[1, :, 0, 0, 0] == brightness(values[0, 0])).all()
    assert set(ends[0]) <= {0, 1, 2}  # the fourth code does not occur
    assert ends[2].tolist() == [2, 2]
    assert (strips[2] == strips[2, :1]).all()


def test_pictures_of_codes_have_all_three_kinds(quantized):
    model, codes, values = quantized
    model.encoder.forward = lambda images: torch.zeros(len(images), 3)
    pictures = make_pictures(model, np.zeros((5, 8, 8, 3), np.uint8), {"codes": codes, "latents": values})
    assert pictures["interventions"].shape[:3] == (3, 4, 3)  # three samples, and the four codes of the second latent
    assert pictures["interpolations"].shape[:3] == (3, NUM_STEPS, 3)
    assert pictures["strips"].shape[:2] == (3, NUM_STRIP)
    assert np.array_equal(pictures["intervention_steps"], intervention_steps(model, codes))


def test_continuous_latents_and_vectors_have_interventions_only():
    random = np.random.default_rng(0)
    model = painter(ContinuousLatent(3))
    model.encoder.forward = lambda images: torch.zeros(len(images), 3)
    images, latents = np.zeros((5, 8, 8, 3), np.uint8), random.normal(size=(5, 3)).astype(np.float32)
    pictures = make_pictures(model, images, {"latents": latents})
    assert "interpolations" not in pictures
    assert np.array_equal(pictures["intervention_steps"], interpolation_steps(latents))
    vectors = painter(VectorQuantizedLatent(3, num_values=4, vector_size=2))
    vectors.encoder.forward = lambda images: torch.zeros(len(images), 6)
    pictures = make_pictures(vectors, images, {"codes": random.integers(0, 4, (5, 3))})
    assert not {"interpolations", "strips"} & pictures.keys()


def test_decode_takes_values_between_codes(quantized):
    model, codes, values = quantized
    assert np.array_equal(model.decode(codes), model.decode(values))
    between = (values[:1] + values[1:2]) / 2
    assert model.decode(between)[0, 0, 0, 0] == brightness(0.0)


def labels(names, informative=None):
    active = np.ones(len(names), bool)
    return LatentLabels(active, active if informative is None else np.array(informative), names)


def test_strips_show_latents_with_two_codes_and_grey_those_that_say_nothing(rng):
    strips = rng.integers(0, 200, (3, 5, 8, 8, 3), dtype=np.uint8)
    codes = np.array([[0, 1], [2, 2], [1, 2]])
    figure = plot_strips(strips, codes, labels(["hue", "", ""], [True, True, False]), "x")
    (axes,) = figure.axes
    colours = {text.get_text(): text.get_color() for text in axes.get_yticklabels()}
    assert colours == {"$z_{0}$ hue": "black", "$z_{2}$": UNINFORMATIVE}  # the second latent has one code
    sheet, centres = arrange_strips(np.stack([strips[0], fade(strips[2])]))
    assert np.array_equal(axes.images[0].get_array(), sheet)
    assert sheet.shape == (2 * 8 + GAP, (8 + 2) + (3 * (8 + GAP) - GAP) + (2 + 8), 3)  # a quarter of an image apart
    assert np.array_equal(sheet[:8, 10:18], strips[0, 1])
    assert (sheet[0, :8] == FRAME).all()  # codes are framed
    assert np.array_equal(sheet[1:7, 1:7], strips[0, 0, 1:-1, 1:-1])
    assert centres == [4, 10 + 14, 40 + 4]
    assert plot_strips(strips, codes[[1, 1, 1]], labels(["", "", ""]), "x") is None


def test_labels_and_heads_of_strips_lie_inside_the_picture(rng):
    strips = rng.integers(0, 255, (2, 9, 8, 8, 3), dtype=np.uint8)
    figure = plot_strips(strips, np.array([[0, 1], [1, 2]]), labels(["lighting direction", "x"]), "short")
    width, height = figure.get_size_inches() * figure.dpi
    (axes,) = figure.axes
    for text in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
