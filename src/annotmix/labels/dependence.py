"""Annotators who err together more often than chance allows, such as copies of one model.

Copies cannot be seen in the answer, as they decide it: ten copies of one annotator make every class theirs.
Annotators m and m' are therefore judged by the labels of all others outside their groups. Let q_n be the
class probabilities of item n that these suggest, and θ the confusion matrices (`annotmix.labels.confusion`).
If m' says what m says with the probability r, and decides alone otherwise, then

    P(z, z') = Σ_c q_nc ((1 − r) θ_m[c, z] θ_m'[c, z'] + r 1[z = z'] (θ_m[c, z] + θ_m'[c, z]) / 2).

r is the one with the greatest likelihood L of the common items. Hard items make everybody err together, which
ρ of `annotmix.labels.evidence` is for; so r counts where it exceeds r°, the median over pairs of different
groups. A pair errs together where z = √(2 (L(r) − L(r°))), in robust standard deviations of those pairs where
these are above 1, is significant (Benjamini & Hochberg, JRSS B 57, 1995) and r is `LEAST` above r°. Two
annotators who agree because both are right are no such pair: others, and so q, say that they are right.

Significant pairs are joined to groups as long as r − r° is `CLOSE` or more on average over all pairs between
two parts. Groups change q, and q changes pairs, for `ROUNDS`. The beginning matters, since the first q must
not be that of the copies: groups to begin with are annotators who agree with one another clearly more often
than with anybody else, the clearest first, each tried with its labels counted once.

Labels of groups count less (`annotmix.labels.groups`) where there are copies, a group with r − r° of `COPIES`
or more on average, and where that makes labels more probable, given labels of *other* groups, by `SURE`
standard errors:

    ℓ = mean w log Σ_c q_n(c) θ_m[c, z_nm],   q without the group of m.

Labels given all others of their items would not do: a copy is predicted best by its copy. Weaker groups alone
are shown, and count fully: labels cannot tell a family that shares errors from good annotators who share the
truth while others err together, and in simulated families the weights did harm about as often as good.
But where weights are used, they are for all groups, since a group left out would decide in place of the
copies. Without copies the answer is the same as without this module. The constants were chosen on simulated
crowds.

Only pairs with `COMMON` common items are judged, on a sample of the items that bounds their number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import PIECE, TINY, Confusion, Floats, Labelled, Shrinkage
from annotmix.labels.groups import Dependence, Groups
from annotmix.labels.names import Index
from annotmix.labels.shrunken import (
    Gold,
    Shrunken,
    expectation_maximisation,
    fix,
    only,
    parts,
    shrunken_dawid_skene,
    softmax,
    standard_errors,
)

#: Common items that a pair needs.
COMMON = 20
#: Common items of all pairs together, these × classes, and labels × classes, that are looked at, at most.
MOST_ROWS, MOST_WORK, MOST_LABELS = 300_000, 6_000_000, 400_000
#: Pairs × classes² whose expected errors are computed.
MOST_CELLS = 100_000_000
#: Expected share of pairs that are found and do not err together.
FALSE_PAIRS = 0.001
#: r − r° of a pair that counts.
LEAST = 0.1
#: Mean r − r° of the pairs between two parts of a group.
CLOSE = 0.2
#: Mean r − r° of the pairs of a group that are copies.
COPIES = 0.5
#: Standard errors by which annotators agree more with one another than with others, to begin with a group.
GAP = 3.0
#: Groups and single annotators, beside a group, without which nobody knows who is right: three give one
#: another's accuracies.
OTHERS = 3
#: Groups to begin with that are tried.
MOST_TRIED = 20
#: Times that pairs are judged anew with the groups found.
ROUNDS = 4
#: The model of the labels, and its rounds of EM.
MODEL, EM_ROUNDS = Shrinkage(20, 10, 10, True), 15
#: Steps of bisection for r.
STEPS = 12


def answer_of_labels(annotations: Annotations, gold: Gold) -> Shrunken:
    """Class probabilities of the items from labels alone, with annotators who err together counted less."""
    dependence = find_dependence(annotations, gold)
    answer = shrunken_dawid_skene(annotations, gold, dependence.used_groups)
    return replace(answer, dependence=dependence)


def find_dependence(annotations: Annotations, gold: Gold) -> Dependence:
    """Judge all pairs of annotators with enough common items; `gold` are rows of items and their classes."""
    part, gold = _sampled(_hard(annotations), gold)
    pairs = _Pairs(part)
    nobody = _groups(pairs, np.zeros(len(pairs.first)), np.zeros(len(pairs.first), dtype=bool))
    groups, none = nobody, np.zeros(len(pairs.first))
    if not len(pairs.first):
        return Dependence(pairs.first, pairs.second, pairs.common, none, none, none, none, groups, 0.0)
    for members in pairs.close():
        inside = np.isin(pairs.first, members) & np.isin(pairs.second, members)
        trial = _joined(groups, _groups(pairs, np.ones(len(inside)), inside))
        if pairs.n_voters(trial) < OTHERS:
            continue
        excess, z = pairs.judge(trial, gold)
        errs = inside & _significant(excess, z)
        if errs.any():
            groups = _joined(groups, _groups(pairs, excess, errs))
    for _ in range(ROUNDS):
        excess, z = pairs.judge(groups, gold)
        before, groups = groups, _close_groups(pairs, excess, _significant(excess, z))
        if pairs.n_voters(groups) < OTHERS:  # nobody is left to say what is right
            groups = before
            break
        if np.array_equal(before.first, groups.first) and np.array_equal(before.second, groups.second):
            break
    together, expected = pairs.wrong_together(groups, gold, z)
    rise = _rise(part, gold, groups) if groups.closest >= COPIES else 0.0
    return Dependence(pairs.first, pairs.second, pairs.common, together, expected, excess, z, groups, rise)


class _Pairs:
    """Pairs of annotators with enough common items, and the labels that they gave these."""

    def __init__(self, annotations: Annotations):
        a, M = annotations, annotations.n_annotators
        self.annotations = a
        one, other = _label_pairs(a)
        keys, pair, common = np.unique(
            a.annotator[one] * M + a.annotator[other], return_inverse=True, return_counts=True
        )
        enough = common >= COMMON
        rows = enough[pair]
        self.pair = (np.cumsum(enough) - 1)[pair[rows]]
        self.one, self.other = one[rows], other[rows]
        self.first, self.second = np.divmod(keys[enough], M)
        self.common = common[enough]
        self.agree = a.label[self.one] == a.label[self.other]
        self.n_agree = self._sum(self.agree)

    def n_voters(self, groups: Groups) -> int:
        """Number of groups and of single annotators among those who are judged."""
        return len(np.unique(groups.group[np.concatenate([self.first, self.second])]))

    def _sum(self, values: Floats | NDArray[np.bool_], rows: Index | slice = slice(None)) -> Floats:
        return np.bincount(self.pair[rows], values, len(self.first)).astype(np.float64)

    def close(self) -> list[Index]:
        """Annotators who agree with one another clearly more often than with anybody else.

        Pairs are joined in the order of their agreement (single linkage); a group is kept if the next pair
        that joins it to others agrees clearly less often.
        """
        share = (self.n_agree + 0.5) / (self.common + 1)
        error = np.sqrt(share * (1 - share) / self.common)
        M = self.annotations.n_annotators
        of, members = np.arange(M), [[m] for m in range(M)]
        formed: dict[int, int] = {}
        found: list[tuple[float, Index]] = []
        for k in np.argsort(-share, kind="stable"):
            one, other = sorted((of[self.first[k]], of[self.second[k]]), key=lambda g: len(members[g]))
            if one == other:
                continue
            for g in (one, other):
                if g in formed:
                    last = formed[g]
                    gap = (share[last] - share[k]) / np.hypot(error[last], error[k])
                    if gap > GAP:
                        found.append((gap, np.array(members[g])))
            members[other] = members[other] + members[one]
            of[members[one]] = other
            formed[other] = k
        return [members for _, members in sorted(found, key=lambda pair: -pair[0])[:MOST_TRIED]]

    def judge(self, groups: Groups, gold: Gold) -> tuple[Floats, Floats]:
        """r − r° and z of all pairs, shape (pairs,), where these groups err together."""
        ratio = self._ratios(groups, gold)
        r = self._most_likely(ratio)
        across = groups.group[self.first] != groups.group[self.second]
        usual = float(np.median(r[across])) if across.sum() > 2 else 0.0
        gain = self._likelihood(ratio, r) - self._likelihood(ratio, np.full(len(r), usual))
        z = np.sign(r - usual) * np.sqrt(2 * np.maximum(gain, 0))
        spread = 1.4826 * float(np.median(np.abs(z[across]))) if across.sum() > 2 else 1.0
        return np.maximum(r - usual, 0) / (1 - min(usual, 0.999)), z / max(spread, 1.0)

    def _fit(self, groups: Groups, gold: Gold) -> tuple[Labelled, Floats, Floats]:
        """The labels, log θ of them, and log q of their items without their group, shapes (P, C)."""
        labelled = Labelled(self.annotations, groups)
        q = fix(labelled.votes(), gold)
        q = expectation_maximisation(labelled, q, MODEL, EM_ROUNDS, 0.0, gold)
        confusion = Confusion(labelled, q, MODEL)
        said = confusion.log_likelihood()
        everything = slice(None)
        sums = labelled.item_sums(said, everything, everything) + confusion.log_shares
        known = np.full(self.annotations.n_items, -1)
        known[gold[0]] = gold[1]
        is_gold = np.flatnonzero(known >= 0)
        sums[is_gold, known[is_gold]] += 1e3
        return labelled, said, sums

    def _ratios(self, groups: Groups, gold: Gold) -> Floats:
        """P(z, z' | one copies the other) / P(z, z' | both decide alone) where they agree, by row."""
        labelled, said, joint = self._fit(groups, gold)
        blocks = labelled.block_sums(said, slice(None))
        at = np.flatnonzero(self.agree)
        one, others = self.one[at], self.other[at]
        same = labelled.block[one] == labelled.block[others]
        result, step = np.empty(len(at)), max(PIECE // self.annotations.n_classes, 1)
        for start in range(0, len(at), step):
            rows = slice(start, start + step)
            m, other = one[rows], others[rows]
            own = blocks[m] + np.where(same[rows, None], 0.0, blocks[other])
            q = softmax(joint[self.annotations.item[m]] - own)
            first, second = np.exp(said[m]), np.exp(said[other])
            copied = np.einsum("pc,pc->p", q, (first + second) / 2)
            result[rows] = copied / np.maximum(np.einsum("pc,pc->p", q, first * second), TINY)
        return result

    def _likelihood(self, ratio: Floats, r: Floats) -> Floats:
        """Log-likelihood of r, against r = 0, shape (pairs,)."""
        at = np.flatnonzero(self.agree)
        own = r[self.pair[at]]
        differ = self.common - self.n_agree
        gain = self._sum(np.log1p(own * (ratio - 1)), at)
        return np.asarray(gain + differ * np.log(np.maximum(1 - r, TINY)))

    def _most_likely(self, ratio: Floats) -> Floats:
        """r with the greatest likelihood, shape (pairs,): its logarithm is concave, so by bisection."""
        at = np.flatnonzero(self.agree)
        pair, differ = self.pair[at], self.common - self.n_agree
        low, high = np.zeros(len(self.first)), np.ones(len(self.first))
        for _ in range(STEPS):
            r = (low + high) / 2
            slope = self._sum((ratio - 1) / (1 + r[pair] * (ratio - 1)), at) - differ / (1 - r)
            low, high = np.where(slope > 0, r, low), np.where(slope > 0, high, r)
        return np.where(low == 0, 0.0, high)

    def wrong_together(self, groups: Groups, gold: Gold, z: Floats) -> tuple[Floats, Floats]:
        """Common items with the same wrong label, as found and as expected, shape (pairs,).

        What is expected needs matrices; of very many pairs it is nan for those with the smallest z.
        """
        labelled, _, joint = self._fit(groups, gold)
        q, a = softmax(joint), self.annotations
        at = np.flatnonzero(self.agree)
        one = self.one[at]
        together = self._sum(1 - q[a.item[one], a.label[one]], at)
        confusion, item = Confusion(labelled, q, MODEL), a.item[self.one]
        total = np.stack([self._sum(q[item, c]) for c in range(a.n_classes)], axis=1)
        expected = np.full(len(z), np.nan)
        largest = np.sort(np.argsort(-z, kind="stable")[: MOST_CELLS // a.n_classes**2])
        step = max(PIECE // a.n_classes**2, 1)
        for start in range(0, len(largest), step):
            k = largest[start : start + step]
            who, place = np.unique([self.first[k], self.second[k]], return_inverse=True)
            theta = confusion.matrices(who)
            first, second = place.reshape(2, -1)
            both = np.einsum("pck,pck->pc", theta[first], theta[second])
            both -= (theta[first] * theta[second]).diagonal(axis1=1, axis2=2)
            expected[k] = (total[k] * both).sum(axis=1)
        return together, expected


def _significant(excess: Floats, z: Floats) -> NDArray[np.bool_]:
    """Pairs that err together, by Benjamini and Hochberg, and far enough."""
    p = np.asarray(ndtr(-z))
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= FALSE_PAIRS * np.arange(1, len(p) + 1) / len(p))
    result = np.zeros(len(p), dtype=bool)
    result[order[: passed.max(initial=-1) + 1]] = True
    return np.asarray(result & (excess >= LEAST))


def _close_groups(pairs: _Pairs, excess: Floats, which: NDArray[np.bool_]) -> Groups:
    """Groups whose members err together, by `CLOSE` or more on average."""
    across: dict[int, dict[int, tuple[float, int]]] = {}
    for m, other, r in zip(pairs.first.tolist(), pairs.second.tolist(), excess.tolist(), strict=True):
        across.setdefault(m, {})[other] = across.setdefault(other, {})[m] = (r, 1)
    group = np.arange(pairs.annotations.n_annotators)
    at = np.flatnonzero(which)
    for k in at[np.argsort(-excess[at], kind="stable")]:
        one, other = int(group[pairs.first[k]]), int(group[pairs.second[k]])
        if one == other:
            continue
        total, n = across[one][other]
        if total / n < CLOSE:
            continue
        group[group == other] = one
        for third, (value, number) in across.pop(other).items():
            del across[third][other]
            if third != one:
                before = across[one].get(third, (0.0, 0))
                across[one][third] = across[third][one] = (before[0] + value, before[1] + number)
    inside = group[pairs.first] == group[pairs.second]
    return Groups(group, pairs.first[inside], pairs.second[inside], excess[inside])


def _groups(pairs: _Pairs, excess: Floats, which: NDArray[np.bool_]) -> Groups:
    M = pairs.annotations.n_annotators
    return Groups.of_pairs(M, pairs.first[which], pairs.second[which], excess[which])


def _joined(one: Groups, other: Groups) -> Groups:
    """The pairs of two sets of groups; the second decides where both have a pair."""
    M = len(one.group)
    keys = [g.first * M + g.second for g in (other, one)]
    at = np.unique(np.concatenate(keys), return_index=True)[1]
    parts = ((getattr(g, name) for g in (other, one)) for name in ("first", "second", "excess"))
    return Groups.of_pairs(M, *(np.concatenate(list(part))[at] for part in parts))


def _rise(annotations: Annotations, gold: Gold, groups: Groups) -> float:
    """How much more probable labels are, given labels of other groups, in standard errors."""
    scores: list[list[Floats]] = [[], []]
    for part in parts(annotations, gold, groups):
        for score, labelled in zip(scores, (part.labelled, Labelled(part.labelled.annotations)), strict=True):
            q = fix(labelled.votes(), gold)
            q = expectation_maximisation(labelled, q, MODEL, EM_ROUNDS, 0.0, gold)
            confusion = Confusion(labelled, q, MODEL)
            held = part.held
            theta = np.exp(confusion.columns(held.annotator, held.label))
            score.append(np.log(np.maximum(np.einsum("pc,pc->p", q[held.item], theta), TINY)) * part.weight)
    return standard_errors(np.hstack(scores[0]) - np.hstack(scores[1]))


def _hard(annotations: Annotations) -> Annotations:
    """One label of every annotator for an item: of soft labels the one with the greatest weight."""
    a = annotations
    if a.weight is None:
        return a
    order = np.lexsort((-a.weight, a.pair))
    first = order[np.flatnonzero(np.diff(a.pair[order], prepend=-1))]
    hard = a.keep(np.sort(first))
    return Annotations(hard.item, hard.annotator, hard.label, a.items, a.annotators, a.classes)


def _sampled(annotations: Annotations, gold: Gold) -> tuple[Annotations, Gold]:
    """The labels and gold classes of a sample of the items with not too many labels and pairs of them."""
    n, C = annotations.labels_per_item, max(annotations.n_classes, 1)
    order = np.random.default_rng(0).permutation(annotations.n_items)
    few = np.ones(len(order), dtype=bool)
    for size, most in ((n * (n - 1) // 2, min(MOST_ROWS, MOST_WORK // C)), (n * C, MOST_LABELS)):
        few &= size[order] <= most // COMMON  # one item must not take the place of all others
        few &= np.cumsum(np.where(few, size[order], 0)) <= most
    if few.all():
        return annotations, gold
    part, place = only(annotations, np.sort(order[few]))
    inside = place[gold[0]] >= 0
    return part, (place[gold[0]][inside], gold[1][inside])


def _label_pairs(annotations: Annotations) -> tuple[Index, Index]:
    """Places of all pairs of labels of one item, by annotators with enough labels; shapes (rows,)."""
    a = annotations
    at = np.flatnonzero(a.labels_per_annotator[a.annotator] >= COMMON)
    at = at[np.lexsort((a.annotator[at], a.item[at]))]
    item, one, other = a.item[at], [], []
    for step in range(1, int(np.bincount(item).max(initial=0))):
        same = np.flatnonzero(item[step:] == item[:-step])
        one.append(at[same])
        other.append(at[same + step])
    if not one:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(one), np.concatenate(other)
