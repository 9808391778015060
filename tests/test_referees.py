"""Our maps against other people's code: captum's gradients on timm's model, and transformers' attention."""

import captum.attr
import pytest
import torch
import transformers
from conftest import SKIMAGE
from peers import LABELS, VIT_PROCESSOR, from_transformers, vit_config
from torch import nn

import vit

CAT = SKIMAGE / "chelsea.png"


@pytest.fixture(scope="module")
def timms(shared, real):
    """timm's own model with the weights of `real`, its softmax in reach."""
    import timm
    from safetensors.torch import load_file

    model = timm.create_model("vit_tiny_patch16_224").eval()
    model.load_state_dict(load_file(shared / "weights" / "vit_tiny_patch16_224.safetensors"))
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
def weighted(timms, image):
    """Gradient × attention of the tabby's logit in each layer, by captum (L, H, T, T)."""
    layers = [block.attn.attn_drop for block in timms.blocks]
    return torch.cat(
        [captum.attr.LayerGradientXActivation(timms, layer).attribute(image, target=281) for layer in layers]
    )


def test_gradient_times_attention_is_captums_on_timms_model(explanation, weighted):
    expected = weighted.clamp(min=0).mean(dim=1)[:, 0, 1:].unflatten(1, (14, 14))
    found = explanation.gradient_attention("tabby")
    assert expected.max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_relevance_is_chefers_rule_on_captums_gradients(explanation, weighted):
    R = torch.eye(197)
    for layer in weighted.clamp(min=0).mean(dim=1):
        R = R + torch.matmul(layer, R)
    torch.testing.assert_close(explanation.relevance(281), R[0, 1:].unflatten(0, (14, 14)), rtol=0, atol=1e-5)


def test_grad_cam_is_captums_on_timms_model(timms, image, explanation):
    class ChannelsFirst(nn.Module):
        """timm's model with the patches that enter its last block laid out as a CNN's feature map."""

        def __init__(self):
            super().__init__()
            self.features = nn.Identity()

        def forward(self, images):
            z = timms._pos_embed(timms.patch_embed(images))
            z = timms.blocks[:-1](z)
            patches = self.features(z[:, 1:].transpose(1, 2).unflatten(2, (14, 14)))  # B, D, R, C
            z = torch.cat([z[:, :1], patches.flatten(2).transpose(1, 2)], dim=1)
            return timms.forward_head(timms.norm(timms.blocks[-1](z)))

    model = ChannelsFirst()
    cam = captum.attr.LayerGradCam(model, model.features).attribute(image, target=281, relu_attributions=True)
    # captum sums over the channels where the paper, and we, do so too; the scale is the same.
    assert cam.max() > 1e-3
    torch.testing.assert_close(explanation.grad_cam("tabby"), cam[0, 0].detach(), rtol=1e-4, atol=1e-5)


def test_rollout_is_the_product_of_transformers_attentions(tmp_path):
    peer = from_transformers(vit_config(**LABELS), "ViTForImageClassification", VIT_PROCESSOR)
    ours = vit.load(peer.save(tmp_path))
    _, attentions = peer.answer(
        transformers.AutoImageProcessor.from_pretrained(tmp_path)(vit.images.open_photo(CAT), return_tensors="pt")[
            "pixel_values"
        ]
    )
    layers = [(attention[0].mean(0) + torch.eye(17)) / 2 for attention in attentions]
    expected = torch.linalg.multi_dot(layers[::-1])[0, 1:].unflatten(0, (4, 4))
    torch.testing.assert_close(ours.explain(CAT).rollout()[-1], expected, rtol=0, atol=1e-5)
