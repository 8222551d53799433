"""Datasets with true classes only, whose annotators are simulated."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase

from annotmix.datasets import readers
from annotmix.datasets.spec import ENCODED, TABULAR, Figures, File, Simulation, Spec, words

_TREC_URL = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
_AGNEWS_URL = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
_FLOWERS_URL = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102"
_FLOWERS_SHA256 = {
    "classes": "sha256:4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d",
    "parts": "sha256:46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd",
}
_DTD_URL = "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz"
_DTD_MD5 = "md5:fff73e5086ae6bdbea199a49dfb8a4c1"

_DIGITS = Spec(
    name="digits",
    kind="tabular",
    description="Handwritten digits, 8 × 8 pixels, that come with scikit-learn; simulated annotators.",
    citation="Alpaydin & Kaynak (1998). Optical recognition of handwritten digits. UCI.",
    licence="CC BY 4.0",
    reader=readers.read_digits,
    settings={**TABULAR, "dropout": 0.5},
    sizes={"train": 1797},
    draws=(("test", "train", 500), ("valid", "train", 100)),
    simulation=Simulation((3, 3)),
)

SIMULATED = (
    Spec(
        name="letter",
        kind="tabular",
        description="Capital letters in distorted fonts, 16 features of their shape; simulated annotators.",
        citation="Frey & Slate (1991). Letter recognition using Holland-style adaptive classifiers. Machine "
        "Learning 6.",
        licence="CC BY 4.0",
        reader=readers.read_class_first,
        settings=TABULAR,
        files={
            "data": File(
                "letter/letter-recognition.data",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/letter-recognition/"
                "letter-recognition.data",
                "sha256:2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
            )
        },
        classes=tuple(ascii_uppercase),
        sizes={"train": 20_000},
        draws=(("test", "train", 4000), ("valid", "train", 500)),
        simulation=Simulation((2, 4), max_epochs=20),
        paper=Figures(15_500, 500, 4000, 26, 20, 3.0, 2325, 51.9),
    ),
    Spec(
        name="flowers102",
        kind="image",
        description="Photos of 102 kinds of flowers; simulated annotators.",
        citation="Nilsback & Zisserman (2008). Automated flower classification over a large number of "
        "classes. ICVGIP.",
        licence="not stated; for research",
        reader=readers.read_mat,
        settings=ENCODED,
        files={
            key: File(f"flowers102/{name}", f"{_FLOWERS_URL}/{name}", _FLOWERS_SHA256[key])
            for key, name in (("classes", "imagelabels.mat"), ("parts", "setid.mat"))
        },
        options={"checksums": _FLOWERS_SHA256},
        item_files={
            "images": File(
                "flowers102/jpg",
                f"{_FLOWERS_URL}/102flowers.tgz",
                "md5:52808999861908f626f3c1f4e79d11fa",
                inside="jpg",
            )
        },
        classes=tuple(range(1, 103)),
        sizes={"train": 1020, "valid": 1020, "test": 6149},
        simulation=Simulation((2, 4), max_epochs=5, a=(0.0, 1.5), b=(1.0, 2.0)),
        paper=Figures(1020, 1020, 6149, 102, 20, 3.0, 152, 67.5),
    ),
    Spec(
        name="trec6",
        kind="text",
        description="Questions by the kind of their answer; simulated annotators.",
        citation="Li & Roth (2002). Learning question classifiers. COLING.",
        licence="not stated; for research",
        reader=readers.read_questions,
        settings=ENCODED,
        files={
            "train": File(
                "trec6/train_5500.label",
                f"{_TREC_URL}/train_5500.label",
                "sha256:9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
            ),
            "test": File(
                "trec6/TREC_10.label",
                f"{_TREC_URL}/TREC_10.label",
                "sha256:033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
            ),
        },
        classes=words("ABBR DESC ENTY HUM LOC NUM"),
        sizes={"train": 5452, "test": 500},
        draws=(("valid", "train", 500),),
        simulation=Simulation((2, 4), max_epochs=20),
        paper=Figures(4952, 500, 500, 6, 20, 3.0, 743, 36.9),
    ),
    Spec(
        name="aloi",
        kind="tabular",
        description="A thousand small objects, 128 features of their colours; simulated annotators.",
        citation="Geusebroek, Burghouts & Smeulders (2005). The Amsterdam library of object images. IJCV 61.",
        licence="not stated; for research",
        reader=readers.read_libsvm,
        settings=TABULAR,
        files={
            "data": File(
                "aloi/aloi.bz2",
                "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/aloi.bz2",
                also=("aloi/aloi",),
            )
        },
        options={"n_features": 128},
        sizes={"train": 108_000},
        draws=(("test", "train", 21_600), ("valid", "train", 2000)),
        simulation=Simulation((1, 1), max_epochs=20),
        paper=Figures(84_400, 2000, 21_600, 1000, 20, 1.0, 4220, 43.4),
    ),
    Spec(
        name="dtd",
        kind="image",
        description="Photos of 47 kinds of textures; simulated annotators.",
        citation="Cimpoi, Maji, Kokkinos, Mohamed & Vedaldi (2014). Describing textures in the wild. CVPR.",
        licence="for research",
        reader=readers.read_photo_lists,
        settings=ENCODED,
        files={"lists": File("dtd/labels", _DTD_URL, _DTD_MD5, inside="dtd/labels")},
        item_files={"images": File("dtd/images", _DTD_URL, _DTD_MD5, inside="dtd/images")},
        sizes={"train": 1880, "valid": 1880, "test": 1880},
        simulation=Simulation((1, 1), max_epochs=10),
        paper=Figures(1880, 1880, 1880, 47, 20, 1.0, 94, 76.8),
    ),
    Spec(
        name="agnews",
        kind="text",
        description="News by topic, title and description; simulated annotators.",
        citation="Zhang, Zhao & LeCun (2015). Character-level convolutional networks for text "
        "classification. NeurIPS.",
        licence="for non-commercial use",
        reader=readers.read_news,
        settings=ENCODED,
        files={
            "train": File(
                "agnews/train.csv", f"{_AGNEWS_URL}/train.csv", "md5:b1a00f826fdfbd249f79597b59e1dc12"
            ),
            "test": File(
                "agnews/test.csv",
                f"{_AGNEWS_URL}/test.csv",
                "sha256:521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
            ),
        },
        classes=("World", "Sports", "Business", "Sci/Tech"),
        sizes={"train": 120_000, "test": 7600},
        draws=(("valid", "train", 2000),),
        simulation=Simulation((1, 1), max_epochs=10, a=(0.0, 0.5), b=(0.0, 2.0)),
        paper=Figures(118_000, 2000, 7600, 4, 20, 1.0, 5900, 56.8),
    ),
    _DIGITS,
    replace(
        _DIGITS,
        name="digits-images",
        kind="image",
        description="The same digits, split and labels as images, for convolutional networks.",
        settings={**TABULAR, "backbone": "cnn", "hidden": (32, 64)},
        options={"images": True},
    ),
)
