import pytest
import torch
from conftest import SKIMAGE, randomise
from PIL import Image

import vit

CAT, COFFEE = SKIMAGE / "chelsea.png", SKIMAGE / "coffee.png"


@pytest.fixture(scope="module")
def tiny(tiny_config):
    model = randomise(vit.ViT(tiny_config))
    return vit.Classifier(model, ["pizza", "steak", "sushi"], vit.Preprocessing(36, (32, 32)))


def test_a_real_model_names_the_cat_and_the_espresso(real):
    cats = {"Egyptian cat", "tabby", "tiger cat"}
    assert real.predict(CAT)[0][0] in cats
    assert sum(probability for label, probability in real.predict(CAT) if label in cats) > 0.9
    label, probability = real.predict(COFFEE)[0]
    assert label == "espresso" and probability > 0.9


def test_predictions_are_the_likeliest_first(tiny):
    predictions = tiny.predict(CAT)
    labels, probabilities = zip(*predictions)
    assert sorted(labels) == tiny.labels
    assert list(probabilities) == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)
    assert tiny.predict(CAT, top_k=2) == predictions[:2]


def test_a_path_a_string_and_a_picture_are_the_same_photo(tiny):
    with Image.open(CAT) as picture:
        assert tiny.predict(CAT) == tiny.predict(str(CAT)) == tiny.predict(picture)


def test_an_explanation_has_the_probabilities_of_the_predictions(real):
    explanation = real.explain(COFFEE)
    assert explanation.probabilities.shape == (len(real.labels),)
    best = explanation.probabilities.argmax()
    label, probability = real.predict(COFFEE, top_k=1)[0]
    assert explanation.labels[best] == label
    assert explanation.probabilities[best].item() == pytest.approx(probability, abs=1e-5)


def test_an_explanation_has_the_attention_of_all_layers_and_heads(real):
    explanation = real.explain(CAT)
    tokens = len(explanation.prefix) + 14 * 14
    assert explanation.attention.shape == (12, 3, tokens, tokens)
    assert explanation.tokens.shape == (12, tokens, 192)
    assert explanation.grid == (14, 14)
    assert explanation.prefix == ("class", *(f"register {number + 1}" for number in range(real.model.config.registers)))
    torch.testing.assert_close(explanation.attention.sum(-1), torch.ones(12, 3, tokens), rtol=0, atol=1e-5)
    with Image.open(CAT) as photo:
        left, top, right, bottom = explanation.box
        assert right - left == pytest.approx(bottom - top, rel=0.01)
        assert (left + right) / 2 == pytest.approx(photo.width / 2, abs=1)
        assert (top + bottom) / 2 == pytest.approx(photo.height / 2, abs=1)


def test_a_checkpoint_without_a_classifier_explains_but_does_not_predict(tiny_config):
    config = vit.ViTConfig(**{**tiny_config.to_dict(), "classes": 0, "registers": 2})
    headless = vit.Classifier(randomise(vit.ViT(config)), [], vit.Preprocessing((32, 48)), "some/dino")
    explanation = headless.explain(CAT)
    assert explanation.probabilities.shape == (0,)
    assert explanation.grid == (4, 6)
    assert explanation.prefix == ("class", "register 1", "register 2")
    assert explanation.attention.shape == (2, 2, 27, 27)
    with pytest.raises(ValueError, match="some/dino has no classifier, so it predicts nothing: use explain"):
        headless.predict(CAT)
