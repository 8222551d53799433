"""Datasets with labels of human annotators."""

from __future__ import annotations

from dataclasses import replace

from annotmix.datasets.cifar import CIFAR10_CLASSES, CIFAR100_CLASSES, read_cifar_h, read_cifar_n
from annotmix.datasets.readers import PARTS, read_crowd_table, read_label_matrix
from annotmix.datasets.spec import ENCODED, RESNET, TABULAR, Figures, File, Spec, words

_MGC_URL = "http://fprodrigues.com/mturk-datasets.tar.gz"
_LABELME_URL = "http://fprodrigues.com/deep_LabelMe.tar.gz"
_CIFAR_N_URL = "https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main"
_CIFAR10_IMAGES = File(
    "cifar10/cifar-10-batches-py",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "md5:c58f30108f718f92721af3b95e74349a",
    inside="cifar-10-batches-py",
    also=("cifar-10-batches-py",),
)
_CIFAR100_IMAGES = File(
    "cifar100/cifar-100-python",
    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    "md5:eb9058c3a382ffc7106e4002c42a8d85",
    inside="cifar-100-python",
    also=("cifar-100-python",),
)


def _mgc(name: str) -> File:
    return File(f"mgc/{name}", _MGC_URL, inside=f"music_genre_classification/{name}")


def _labelme(name: str) -> File:
    return File(f"labelme/{name}", _LABELME_URL, inside=f"LabelMe/{name}")


_LABELME = Spec(
    name="labelme",
    kind="image",
    description="Photos of eight kinds of scenes, labelled on Amazon Mechanical Turk.",
    citation="Rodrigues & Pereira (2018). Deep learning from crowds. AAAI.",
    licence="not stated; for research",
    reader=read_label_matrix,
    settings=ENCODED,
    files={
        "labels": _labelme("answers.txt"),
        **{f"classes {part}": _labelme(f"labels_{part}.txt") for part in PARTS},
        **{f"names {part}": _labelme(f"filenames_{part}.txt") for part in PARTS},
    },
    item_files={part: _labelme(part) for part in PARTS},
    classes=words("highway insidecity tallbuilding street forest coast mountain opencountry"),
    sizes={"train": 1000, "valid": 500, "test": 1188},
    paper=Figures(1000, 500, 1188, 8, 59, 2.5, 43, 26.0),
)

_CIFAR10H = Spec(
    name="cifar10h",
    kind="image",
    description="CIFAR-10's test images, labelled by the 100 least accurate of 2571 annotators.",
    citation="Peterson, Battleday, Griffiths & Russakovsky (2019). Human uncertainty makes classification "
    "more robust. ICCV.",
    licence="CC BY-NC-SA 4.0",
    reader=read_cifar_h,
    settings=RESNET,
    files={
        "labels": File(
            "cifar10h/cifar10h-raw.zip",
            "https://github.com/jcpeterson/cifar-10h/raw/master/data/cifar10h-raw.zip",
        )
    },
    item_files={"images": _CIFAR10_IMAGES},
    classes=CIFAR10_CLASSES,
    options={"n_annotators": 100},
    sizes={"test": 50_000},
    draws=(("valid", "test", 500),),
    paper=Figures(8621, 500, 49_500, 10, 100, 2.3, 200, 22.5),
)

_CIFAR10N = Spec(
    name="cifar10n",
    kind="image",
    description="CIFAR-10's training images with one label each, the worst of three annotators' labels.",
    citation="Wei, Zhu, Cheng, Liu, Niu & Liu (2022). Learning with noisy labels revisited: a study using "
    "real-world human annotations. ICLR.",
    licence="CC BY-NC 4.0",
    reader=read_cifar_n,
    settings=RESNET,
    files={
        "labels": File(
            "cifar10n/CIFAR-10_human.pt",
            f"{_CIFAR_N_URL}/data/CIFAR-10_human.pt",
            "sha256:873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
        ),
        "people": File(
            "cifar10n/side_info_cifar10N.csv",
            f"{_CIFAR_N_URL}/side_info_cifar10N.csv",
            "sha256:50fcbe619a003d0b804a20ece51447dcdb48978c60e1202371d08302b2e14351",
        ),
    },
    item_files={"images": _CIFAR10_IMAGES},
    classes=CIFAR10_CLASSES,
    options={
        "label": "worse_label",
        "candidates": tuple((f"random_label{k}", f"Worker{k}-id") for k in (1, 2, 3)),
        "batch": 10,
        "train": tuple(f"data_batch_{k}" for k in range(1, 6)),
        "test": "test_batch",
    },
    sizes={"train": 50_000, "test": 10_000},
    draws=(("valid", "test", 500),),
    paper=Figures(50_000, 500, 9500, 10, 733, 1.0, 68, 40.2),
)

HUMAN = (
    Spec(
        name="mgc",
        kind="tabular",
        description="Songs of ten genres, labelled on Amazon Mechanical Turk.",
        citation="Rodrigues, Pereira & Ribeiro (2013). Learning from multiple annotators: distinguishing "
        "good from random labelers. Pattern Recognition Letters 34(12).",
        licence="not stated; for research",
        reader=read_crowd_table,
        settings={**TABULAR, "dropout": 0.5},
        files={
            "labels": _mgc("music_genre_mturk.csv"),
            "train": _mgc("music_genre_gold.csv"),
            "test": _mgc("music_genre_test.csv"),
        },
        classes=words("blues classical country disco hiphop jazz metal pop reggae rock"),
        sizes={"train": 700, "test": 300},
        draws=(("valid", "test", 100),),
        paper=Figures(700, 100, 200, 10, 44, 4.2, 70, 44.0),
    ),
    _LABELME,
    replace(
        _LABELME,
        name="labelme-vgg16",
        kind="tabular",
        description="LabelMe as 512 features per photo: VGG-16, averaged over positions (paper: DINOv2).",
        files={**_LABELME.files, **{part: File(f"labelme/vgg16_avg_{part}.npy") for part in PARTS}},
        item_files={},
    ),
    _CIFAR10H,
    *(
        replace(
            _CIFAR10H,
            name=f"cifar10h-{k}",
            description=f"CIFAR-10's test images, labelled by the {k} least accurate of 2571 annotators.",
            options={"n_annotators": k},
            paper=Figures(valid=500, test=49_500, classes=10, annotators=k) if k < 100 else _CIFAR10H.paper,
        )
        for k in (10, 20, 40, 100)
    ),
    _CIFAR10N,
    replace(
        _CIFAR10N,
        name="cifar100n",
        description="CIFAR-100's training images with the label of one annotator each.",
        files={
            "labels": File(
                "cifar100n/CIFAR-100_human.pt",
                f"{_CIFAR_N_URL}/data/CIFAR-100_human.pt",
                "sha256:bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394",
            ),
            "people": File(
                "cifar100n/side_info_cifar100N.csv",
                f"{_CIFAR_N_URL}/side_info_cifar100N.csv",
                "sha256:22b9ca66e25a9c0663ddc415ea3a5b9063f30d434d802ccbd0f0bf3d532d19a9",
            ),
        },
        item_files={"images": _CIFAR100_IMAGES},
        classes=CIFAR100_CLASSES,
        options={
            "label": "noisy_label",
            "candidates": (("noisy_label", "Worker-id"),),
            "batch": 5,
            "train": ("train",),
            "test": "test",
        },
        paper=Figures(50_000, 500, 9500, 100, 519, 1.0, 96, 40.2),
    ),
)
