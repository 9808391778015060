import pytest

from vit import ViTConfig, summary


def test_the_papers_shapes():
    rows = {row.layer: row for row in summary.rows(ViTConfig.of("B/16"))}
    assert (rows["patch_embedding"].shape_in, rows["patch_embedding"].shape_out) == ((1, 3, 224, 224), (1, 196, 768))
    assert rows["class_token"].shape_out == (1, 1, 768)
    assert rows["position_embedding"].shape_out == (1, 197, 768)
    for layer in range(12):
        for part in ("", ".attention_norm", ".attention", ".mlp_norm", ".mlp"):
            row = rows[f"blocks.{layer}{part}"]
            assert row.shape_in == row.shape_out == (1, 197, 768)
    assert (rows["head"].shape_in, rows["head"].shape_out) == ((1, 768), (1, 1000))


@pytest.mark.parametrize(
    "options",
    [{}, dict(distillation=True, distillation_head=True), dict(layer_scale=1.0, registers=4), dict(classes=0)],
)
def test_every_parameter_is_counted_once(options):
    from vit import ViT

    config = ViTConfig.of("Ti/16", **options)
    total = sum(parameter.numel() for parameter in ViT(config).parameters())
    rows = summary.rows(config)
    assert sum(row.parameters for row in rows if not row.part) == total
    assert summary.table(config).splitlines()[-1].split() == ["total", f"{total:,}"]
    block = sum(row.parameters for row in rows if row.part and row.layer.startswith("blocks.0."))
    assert block == next(row.parameters for row in rows if row.layer == "blocks.0")
