"""Parts of models, in torch: backbones, annotator networks, heads, losses and mixes; no training."""

from annotmix.networks.annotators import AnnotatorEmbedding, AnnotatorNetwork, DescribedEmbedding
from annotmix.networks.backbones import CNN, MLP, Classifier, ResNet18, depths, make_backbone
from annotmix.networks.features import Features

__all__ = [
    "CNN",
    "MLP",
    "AnnotatorEmbedding",
    "AnnotatorNetwork",
    "Classifier",
    "DescribedEmbedding",
    "Features",
    "ResNet18",
    "depths",
    "make_backbone",
]
