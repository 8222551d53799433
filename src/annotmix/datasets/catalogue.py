"""The table of datasets: the paper's, their variants, and one that needs no files.

Checksums are of the files as their homes give them: SHA-256 computed from the files themselves, MD5 as
published with torchvision and torchtext. Where there is none (mgc, labelme, cifar10h, aloi), the format alone
is checked.
"""

from __future__ import annotations

from annotmix.datasets.human import HUMAN
from annotmix.datasets.simulated import SIMULATED
from annotmix.datasets.spec import Spec

#: All datasets by name.
SPECS: dict[str, Spec] = {spec.name: spec for spec in (*HUMAN, *SIMULATED)}
