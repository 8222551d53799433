"""The public names and the modules that hold them; `__init__.py` reads this list."""

from annotmix.approaches import Approach as Approach
from annotmix.approaches import Batch as Batch
from annotmix.approaches import get_approach as get_approach
from annotmix.approaches import list_approaches as list_approaches
from annotmix.approaches import register as register
from annotmix.datasets import list_datasets as list_datasets
from annotmix.datasets import load_dataset as load_dataset
from annotmix.encoders import ImageEncoder as ImageEncoder
from annotmix.encoders import TextEncoder as TextEncoder
from annotmix.estimators import AnnotMixSegmenter as AnnotMixSegmenter
from annotmix.estimators import load as load
from annotmix.estimators import make_classifier as make_classifier
from annotmix.estimators import suggest as suggest
from annotmix.estimators.classifiers import AnnotMixClassifier as AnnotMixClassifier
from annotmix.estimators.classifiers import AnnotMixPlusClassifier as AnnotMixPlusClassifier
from annotmix.estimators.classifiers import ConalClassifier as ConalClassifier
from annotmix.estimators.classifiers import CrowdArClassifier as CrowdArClassifier
from annotmix.estimators.classifiers import CrowdLayerClassifier as CrowdLayerClassifier
from annotmix.estimators.classifiers import DsMixupClassifier as DsMixupClassifier
from annotmix.estimators.classifiers import GeoRegFClassifier as GeoRegFClassifier
from annotmix.estimators.classifiers import GeoRegWClassifier as GeoRegWClassifier
from annotmix.estimators.classifiers import MadlClassifier as MadlClassifier
from annotmix.estimators.classifiers import MvBaseClassifier as MvBaseClassifier
from annotmix.estimators.classifiers import MvMixupClassifier as MvMixupClassifier
from annotmix.estimators.classifiers import TraceRegClassifier as TraceRegClassifier
from annotmix.estimators.classifiers import TrueBaseClassifier as TrueBaseClassifier
from annotmix.estimators.classifiers import UnionNetClassifier as UnionNetClassifier
from annotmix.estimators.crowd import CrowdClassifier as CrowdClassifier
from annotmix.labels import Agreement as Agreement
from annotmix.labels import AlternativeTest as AlternativeTest
from annotmix.labels import Annotations as Annotations
from annotmix.labels import KindComparison as KindComparison
from annotmix.labels import LabelSets as LabelSets
from annotmix.labels import MultiLabelPosterior as MultiLabelPosterior
from annotmix.labels import Posterior as Posterior
from annotmix.labels import aggregate as aggregate
from annotmix.labels import agreement as agreement
from annotmix.labels import alternative_test as alternative_test
from annotmix.labels import compare_kinds as compare_kinds
from annotmix.labels import dawid_skene as dawid_skene
from annotmix.labels import hold_out as hold_out
from annotmix.labels import majority_vote as majority_vote
from annotmix.labels import posterior as posterior
from annotmix.runs.aggregate_parts import aggregate_parts as aggregate_parts

__version__: str
