"""Our maps against other people's code: captum's gradients on timm's model, and transformers' attention."""

import captum.attr
import pytest
import pytorch_grad_cam
import torch
import transformers
from conftest import SKIMAGE
from peers import LABELS, VIT_PROCESSOR, from_transformers, vit_config
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn

import vit
from benchmarks.material import in_timm
from vit.photos.files import open_photo

CAT = SKIMAGE / "chelsea.png"


@pytest.fixture(scope="module")
def timms(real):
    """timm's own model with the weights of `real`, its softmax in reach."""
    model = in_timm(real.model)
    for block in model.blocks:
        block.attn.fused_attn = False
    return model


@pytest.fixture(scope="module")
def image(real):
    return real.preprocessing(CAT)[None]


@pytest.fixture(scope="module")
def explanation(real):
    return real.explain(CAT)


@pytest.fixture(scope="module")
def label(explanation) -> int:
    return explanation.class_index(None)


def patches(tokens, timms):
    """Those of a row of tokens, as they lie on the photo (…, R, C)."""
    return tokens[..., timms.num_prefix_tokens :].unflatten(-1, (14, 14))


@pytest.fixture(scope="module")
def weighted(timms, image, label):
    """Gradient × attention of the likeliest class's logit in each layer, by captum (L, H, T, T)."""
    layers = [block.attn.attn_drop for block in timms.blocks]
    return torch.cat(
        [captum.attr.LayerGradientXActivation(timms, layer).attribute(image, target=label) for layer in layers]
    )


def test_gradient_times_attention_is_captums_on_timms_model(explanation, label, weighted, timms):
    expected = patches(weighted.clamp(min=0).mean(dim=1)[:, 0], timms)
    found = explanation.gradient_attention(label)
    assert expected.max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_relevance_is_chefers_rule_on_captums_gradients(explanation, label, weighted, timms):
    R = torch.eye(weighted.shape[-1])
    for layer in weighted.clamp(min=0).mean(dim=1):
        R = R + torch.matmul(layer, R)
    torch.testing.assert_close(explanation.relevance(label), patches(R[0], timms), rtol=0, atol=1e-5)


def test_grad_cam_is_captums_on_timms_model(timms, image, explanation, label):
    first = timms.num_prefix_tokens

    class ChannelsFirst(nn.Module):
        """timm's model with the patches that enter its last block laid out as a CNN's feature map."""

        def __init__(self):
            super().__init__()
            self.features = nn.Identity()

        def forward(self, images):
            z = timms._pos_embed(timms.patch_embed(images))
            z = timms.blocks[:-1](z)
            patches = self.features(z[:, first:].transpose(1, 2).unflatten(2, (14, 14)))  # B, D, R, C
            z = torch.cat([z[:, :first], patches.flatten(2).transpose(1, 2)], dim=1)
            return timms.forward_head(timms.norm(timms.blocks[-1](z)))

    model = ChannelsFirst()
    cam = captum.attr.LayerGradCam(model, model.features).attribute(image, target=label, relu_attributions=True)
    # captum sums over the channels where the paper, and we, do so too; the scale is the same.
    assert cam.max() > 1e-4  # far above what is tolerated
    torch.testing.assert_close(explanation.grad_cam(label), cam[0, 0].detach(), rtol=1e-4, atol=1e-6)


def test_rollout_is_the_product_of_transformers_attentions(tmp_path):
    peer = from_transformers(vit_config(**LABELS), "ViTForImageClassification", VIT_PROCESSOR)
    ours = vit.load(peer.save(tmp_path))
    _, attentions = peer.answer(
        transformers.AutoImageProcessor.from_pretrained(tmp_path)(open_photo(CAT), return_tensors="pt")["pixel_values"]
    )
    layers = [(attention[0].mean(0) + torch.eye(17)) / 2 for attention in attentions]
    expected = torch.linalg.multi_dot(layers[::-1])[0, 1:].unflatten(0, (4, 4))
    torch.testing.assert_close(ours.explain(CAT).rollout()[-1], expected, rtol=0, atol=1e-5)


def test_captum_hooks_our_blocks(real, image, explanation, label):
    """It asks a block for its tokens, and finds the gradients that our own backward pass finds."""
    block = real.model.blocks[-2]
    found = captum.attr.LayerGradientXActivation(real.model, block).attribute(image, target=label)
    gradients = explanation.gradients(label).tokens[-2]
    torch.testing.assert_close(found[0].detach(), explanation.tokens[-2] * gradients, rtol=1e-3, atol=1e-5)


def test_pytorch_grad_cam_hooks_our_blocks(real, image, explanation, label):
    prefix = len(explanation.prefix)

    def channels_first(tokens):
        return tokens[:, prefix:].transpose(1, 2).unflatten(2, (14, 14))  # B, D, R, C

    with pytorch_grad_cam.GradCAM(real.model, [real.model.blocks[-2]], reshape_transform=channels_first) as cam:
        cam(image, [ClassifierOutputTarget(label)])
        found = torch.from_numpy(cam.compute_cam_per_layer(image, [ClassifierOutputTarget(label)], False)[0][0, 0])
    expected = explanation.grad_cam(label)  # theirs is from 0 to 1, at the image's size
    expected = nn.functional.interpolate(expected[None, None], found.shape, mode="bilinear")[0, 0]
    found, expected = found.flatten(), expected.flatten()
    assert torch.corrcoef(torch.stack([found, expected]))[0, 1] > 0.98


def test_a_hook_gets_tokens_recorded_or_not(real, image):
    seen = []
    handle = real.model.blocks[3].register_forward_hook(lambda module, given, tokens: seen.append(tokens))
    with torch.inference_mode():
        real.model(image)
        real.model.record(image)
    handle.remove()
    torch.testing.assert_close(*seen, rtol=0, atol=1e-4)
