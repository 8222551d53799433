"""Pairings, coefficients and mixing against loops and known moments."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from annotmix.networks.mixup import coefficients, mix, pair_across, pair_within, paste

quick = settings(deadline=None, max_examples=60, derandomize=True)


def chi_square(counts: Counter, n_outcomes: int, n_draws: int) -> float:
    expected = n_draws / n_outcomes
    return sum((count - expected) ** 2 / expected for count in counts.values()) + expected * (
        n_outcomes - len(counts)
    )


# ---------------------------------------------------------------- pairings


@quick
@given(st.lists(st.integers(-5, 5), max_size=30), st.integers(0, 2**32 - 1))
def test_pair_within_is_a_permutation_that_stays_within_groups(names, seed):
    group = np.array(names, dtype=np.int64)
    partner = pair_within(group, np.random.default_rng(seed))
    assert sorted(partner.tolist()) == list(range(len(group)))
    assert np.array_equal(group[partner], group)


def test_pair_within_reaches_every_entry_of_the_group():
    group = np.array([1, 1, 0, 1])
    reached = {int(pair_within(group, np.random.default_rng(seed))[0]) for seed in range(50)}
    assert reached == {0, 1, 3}


def test_an_entry_alone_is_its_own_partner():
    assert pair_within(np.arange(50), np.random.default_rng(0)).tolist() == list(range(50))
    assert len(pair_within(np.zeros(0, dtype=np.int64), np.random.default_rng(0))) == 0
    assert len(pair_across(0, np.random.default_rng(0))) == 0


@pytest.mark.parametrize("size", [2, 3, 4])
def test_pair_within_is_uniform_over_permutations(size):
    # the statistic is above the bound with probability 1e-6 for a uniform pairing; the seed is fixed
    n_draws, rng = 4000, np.random.default_rng(7)
    item = np.repeat([0, 1, 2], [1, size, 3])
    counts = Counter(tuple(pair_within(item, rng)[1 : 1 + size] - 1) for _ in range(n_draws))
    assert set(counts) == set(permutations(range(size)))
    n_outcomes = factorial(size)
    assert chi_square(counts, n_outcomes, n_draws) < chi2.ppf(1 - 1e-6, n_outcomes - 1)


def test_pair_across_is_uniform_over_permutations():
    n_draws, rng = 4000, np.random.default_rng(8)
    counts = Counter(tuple(pair_across(4, rng)) for _ in range(n_draws))
    assert set(counts) == set(permutations(range(4)))
    assert chi_square(counts, 24, n_draws) < chi2.ppf(1 - 1e-6, 23)


def test_items_are_shuffled_independently():
    rng, n_draws = np.random.default_rng(9), 4000
    counts = Counter(tuple(pair_within(np.array([0, 0, 1, 1]), rng)) for _ in range(n_draws))
    assert len(counts) == 4
    assert chi_square(counts, 4, n_draws) < chi2.ppf(1 - 1e-6, 3)


# ---------------------------------------------------------------- coefficients


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 4.0])
def test_moments_of_the_coefficients(alpha):
    # Beta(α, α) has mean 1/2 and variance 1/(4(2α+1)); bounds are six standard errors of each estimate
    n = 100_000
    lam = coefficients(n, alpha, np.random.default_rng(0)).double().numpy()
    variance = 1 / (4 * (2 * alpha + 1))
    assert abs(lam.mean() - 0.5) < 6 * np.sqrt(variance / n)
    fourth = ((lam - 0.5) ** 4).mean()
    assert abs(((lam - 0.5) ** 2).mean() - variance) < 6 * np.sqrt((fourth - variance**2) / n)


def test_one_coefficient_for_all_or_one_each():
    shared = coefficients(64, 1.0, np.random.default_rng(0), per_batch=True)
    own = coefficients(64, 1.0, np.random.default_rng(0))
    assert shared.shape == own.shape == (64,)
    assert shared.dtype == own.dtype == torch.float32
    assert len(set(shared.tolist())) == 1
    assert len(set(own.tolist())) == 64


@pytest.mark.parametrize("per_batch", [True, False])
def test_no_entries_no_coefficients(per_batch):
    assert coefficients(0, 1.0, np.random.default_rng(0), per_batch=per_batch).shape == (0,)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e3, 1e6])
def test_extreme_alpha_gives_coefficients_between_zero_and_one(alpha):
    lam = coefficients(5000, alpha, np.random.default_rng(0)).numpy()
    assert np.isfinite(lam).all()
    assert lam.min() >= 0
    assert lam.max() <= 1
    if alpha < 1:  # nearly all of one or of the other, as often
        assert np.mean((lam < 1e-3) | (lam > 1 - 1e-3)) > 0.97
        assert abs(np.mean(lam > 0.5) - 0.5) < 6 * 0.5 / np.sqrt(5000)
    else:
        assert np.abs(lam - 0.5).max() < 6 / np.sqrt(8 * alpha)


def test_the_same_seed_gives_the_same_draws():
    item = np.repeat(np.arange(10), 3)
    for draw in (
        lambda rng: pair_across(30, rng),
        lambda rng: pair_within(item, rng),
        lambda rng: coefficients(30, 1.0, rng).numpy(),
    ):
        assert np.array_equal(draw(np.random.default_rng(3)), draw(np.random.default_rng(3)))
        assert not np.array_equal(draw(np.random.default_rng(3)), draw(np.random.default_rng(4)))


def test_global_randomness_is_left_alone():
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    rng = np.random.default_rng(0)
    pair_across(9, rng), pair_within(np.zeros(9, dtype=np.int64), rng), coefficients(9, 1.0, rng)
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before  # noqa: NPY002


# ---------------------------------------------------------------- mix


@quick
@given(
    st.integers(1, 6),
    st.lists(st.integers(1, 3), max_size=3),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_mix_equals_a_loop(n, shape, dtype, per_batch, seed):
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.normal(size=(n, *shape))).to(dtype)
    partner = torch.from_numpy(pair_across(n, rng))
    lam = coefficients(n, 1.0, rng, per_batch=per_batch)
    mixed = mix(values, partner, lam)
    assert mixed.dtype == dtype
    assert mixed.shape == values.shape
    for i in range(n):
        weight = lam[i].item()
        expected = weight * values[i].double() + (1 - weight) * values[partner[i]].double()
        torch.testing.assert_close(mixed[i].double(), expected, atol=1e-6, rtol=1e-6)


def test_the_ends_are_exact():
    values = torch.tensor([[0.1, 1e8], [0.7, -3.0]])
    partner = torch.tensor([1, 0])
    assert torch.equal(mix(values, partner, torch.ones(2)), values)
    assert torch.equal(mix(values, partner, torch.zeros(2)), values[partner])


def test_an_entry_mixed_with_itself_stays():
    values = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    lam = coefficients(20, 1.0, np.random.default_rng(0))
    torch.testing.assert_close(mix(values, torch.arange(20), lam), values, atol=0, rtol=0)


def test_mixing_indices_of_annotators_is_mixing_their_rows():
    table = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    annotator, partner, lam = torch.tensor([0, 3, 1]), torch.tensor([2, 0, 1]), torch.tensor([0.25, 0.5, 1.0])
    one_hot = torch.nn.functional.one_hot(annotator, 4).double()
    torch.testing.assert_close(mix(table[annotator], partner, lam), mix(one_hot, partner, lam) @ table)


def test_gradients_reach_both_sides():
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    mix(values, torch.tensor([1, 1]), torch.tensor([0.25, 0.5]))[0].backward()
    assert values.grad.tolist() == [0.25, 0.75]


# ---------------------------------------------------------------- paste


def pixels(n: int, height: int, width: int) -> torch.Tensor:
    """Images of two channels of which every pixel says whose it is."""
    return torch.arange(n, dtype=torch.float32).view(-1, 1, 1, 1).expand(n, 2, height, width)


@quick
@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 2**32 - 1))
def test_paste_is_one_rectangle_at_its_place_and_counts_it(n, height, width, per_batch, seed):
    rng = np.random.default_rng(seed)
    images = torch.from_numpy(rng.normal(size=(n, 2, height, width)))
    partner = torch.from_numpy(pair_across(n, rng))
    lam = coefficients(n, 1.0, rng, per_batch=per_batch)
    place = np.random.default_rng(seed + 1)
    found, own = paste(images, partner, lam, np.random.default_rng(seed + 1), per_batch=per_batch)
    assert (found.shape, found.dtype, own.shape) == (images.shape, images.dtype, (n,))
    centre = place.random((1 if per_batch else n, 2), dtype=np.float32)
    for i in range(n):
        row, column = centre[0 if per_batch else i]
        half = np.sqrt(np.float32(1) - lam[i].numpy()) / 2
        expected, count = images[i].clone(), 0
        for r in range(height):
            for c in range(width):
                if round(max(row - half, 0) * height) <= r < round(min(row + half, 1) * height) and (
                    round(max(column - half, 0) * width) <= c < round(min(column + half, 1) * width)
                ):
                    expected[:, r, c] = images[partner[i], :, r, c]
                    count += 1
        assert torch.equal(found[i], expected)
        assert own[i].item() == pytest.approx(1 - count / (height * width), abs=1e-6)


def test_pasted_area_follows_the_coefficient():
    n = 4000
    images, partner = pixels(n, 16, 16), torch.arange(n).roll(1)
    for lam in (0.0, 0.25, 0.75, 1.0):
        found, own = paste(images, partner, torch.full((n,), lam), np.random.default_rng(0))
        share = (found == images).float().mean(dim=(1, 2, 3))
        torch.testing.assert_close(own, share)
        # a side s at a uniform centre keeps s − s²/4 of the image's side on average
        side = np.sqrt(1 - lam)
        assert own.mean().item() == pytest.approx(1 - (side - side**2 / 4) ** 2, abs=0.02)
        assert own.min().item() >= lam - 0.1  # clipping makes it smaller, apart from rounding


def test_one_rectangle_for_the_batch():
    found, own = paste(
        pixels(5, 9, 9),
        torch.arange(5).roll(1),
        torch.full((5,), 0.5),
        np.random.default_rng(3),
        per_batch=True,
    )
    pasted = found != pixels(5, 9, 9)
    assert 0 < pasted[0].sum() < pasted[0].numel()
    assert all(torch.equal(mask, pasted[0]) for mask in pasted)
    assert len(set(own.tolist())) == 1


def test_only_images_can_be_pasted():
    with pytest.raises(ValueError, match=r'found items of shape \(4,\)\. Choose mix="input"'):
        paste(torch.ones(2, 4), torch.arange(2), torch.ones(2), np.random.default_rng(0))
