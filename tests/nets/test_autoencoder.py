"""The networks of autoencoders: KL, reparameterisation and losses held against what they mean."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from firth.nets.autoencoder import Code, Shape, TableNet, divergence_loss, divergences, sample_code
from firth.nets.user_autoencoder import Baskets, UserNet, negative_log_likelihood


def some_code(rows: int = 5, dim: int = 3) -> Code:
    generator = torch.Generator().manual_seed(1)
    mean, logvar = torch.randn(2, rows, dim, generator=generator, dtype=torch.float64)
    return Code(mean, logvar)


def test_kl_is_its_closed_form_and_its_mean_over_draws():
    code = some_code()
    assert code.logvar is not None
    deviation = torch.exp(0.5 * code.logvar)
    kl = divergences(code)
    posterior, prior = Normal(code.mean, deviation), Normal(torch.zeros(()), torch.ones(()))
    torch.testing.assert_close(kl, kl_divergence(posterior, prior))
    noise = torch.randn(60_000, *code.mean.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    points = sample_code(code, noise)
    estimate = (posterior.log_prob(points) - prior.log_prob(points)).mean(0)
    torch.testing.assert_close(kl, estimate, atol=0.03, rtol=0.03)
    assert divergences(Code(torch.zeros(2, 3), torch.zeros(2, 3))).abs().sum() == 0


def test_free_bits_stop_the_pull_below_them():
    code = Code(torch.tensor([[0.1, 3.0]], requires_grad=True), torch.zeros(1, 2))
    by_dim = [0.5 * 0.1**2, 0.5 * 9]
    assert math.isclose(divergence_loss(code).item(), sum(by_dim), rel_tol=1e-6)
    loss = divergence_loss(code, free_bits=0.5)
    assert math.isclose(loss.item(), 0.5 + by_dim[1], rel_tol=1e-6)
    loss.backward()
    assert code.mean.grad is not None and code.mean.grad.tolist() == [[0.0, 3.0]]


def test_gradients_flow_through_a_draw():
    """d/dμ E[f(z)] and d/dσ E[f(z)] of f(z) = z² are 2μ and 2σ; and gradcheck holds for each draw."""
    mean = torch.tensor([[0.7]], dtype=torch.float64, requires_grad=True)
    logvar = torch.tensor([[-0.6]], dtype=torch.float64, requires_grad=True)
    noise = torch.randn(400_000, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (sample_code(Code(mean, logvar), noise) ** 2).mean().backward()
    deviation = math.exp(-0.3)
    assert mean.grad is not None and logvar.grad is not None
    assert math.isclose(float(mean.grad), 2 * 0.7, rel_tol=0.01)
    assert math.isclose(float(logvar.grad), 2 * deviation * deviation / 2, rel_tol=0.01)  # dσ/dlogvar = σ/2
    some = noise[:4]
    assert torch.autograd.gradcheck(lambda m, v: sample_code(Code(m, v), some) ** 3, (mean, logvar))


def test_a_row_costs_minus_the_logarithm_of_its_probability():
    shape = Shape(varies=(True, False), gaps=(), levels=(3,), dim=2, variational=True)
    net = TableNet(shape).double()
    assert net.deviations is not None
    net.deviations.data[:] = torch.tensor([-0.05, 0.3])  # log σ = −0.5; the other column does not vary
    outputs = torch.tensor([[0.4, 0.0, 1.0, 2.0, -1.0], [0.1, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    numbers = torch.tensor([[1.0, 0.0], [math.nan, 0.0]], dtype=torch.float64)
    ids = torch.tensor([[1], [-1]])
    expected = -Normal(0.4, math.exp(-0.5)).log_prob(torch.tensor(1.0)) - Categorical(
        logits=torch.tensor([1.0, 2.0, -1.0])
    ).log_prob(torch.tensor(1))
    losses = net.row_losses(outputs, numbers, ids)
    assert math.isclose(losses[0].item(), float(expected), rel_tol=1e-6)
    assert losses[1].item() == 0.0  # all that could vary is missing


def test_a_missing_cell_is_not_seen_and_known_to_be_missing():
    shape = Shape(varies=(True, True), gaps=(1,), levels=(2,), dim=2, hidden_sizes=(4,), embedding=True)
    net = TableNet(shape)
    row = net.input(torch.tensor([[1.0, math.nan]]), torch.tensor([[-1]]))
    zero = net.input(torch.tensor([[1.0, 0.0]]), torch.tensor([[0]]))
    assert torch.isfinite(row).all() and row[0, -1] == 1 and zero[0, -1] == 0
    assert not torch.equal(row[0, 2:-1], zero[0, 2:-1])  # a vector of its own for a missing category


def test_tied_weights_are_the_encoders_own():
    shape = Shape(varies=(True,) * 3, gaps=(), levels=(2,), dim=2, hidden_sizes=(6, 4), embedding=False, tied=True)
    net = TableNet(shape)
    assert sum(part.numel() for part in net.decoder.parameters()) == 4 + 6 + 5
    code = torch.randn(3, 2)
    w1, w2 = (layer.weight for layer in net.encoder.layers)
    gelu = torch.nn.functional.gelu
    assert net.encoder.straight is not None and net.encoder.last is not None
    expected = code @ net.encoder.straight.weight + gelu(gelu(code @ net.encoder.last.weight) @ w2) @ w1
    torch.testing.assert_close(net.decode(code), expected)


def test_users_are_read_as_a_dense_layer_would():
    torch.manual_seed(4)
    net = UserNet(6, (5,), 3, variational=True).double().eval()
    baskets = Baskets(torch.tensor([0, 2, 2, 5]), torch.tensor([1, 4, 0, 1, 5]), torch.ones(5, dtype=torch.float64))
    dense = np.array([[0, 1, 0, 0, 1, 0], [0] * 6, [1, 1, 0, 0, 0, 1]], float)
    lengths = np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    hidden = torch.tanh(torch.from_numpy(dense / lengths) @ net.first.weight + net.bias)
    torch.testing.assert_close(net.encode(baskets).mean, net.encoder[0](hidden)[:, :3])
    logits = net.decode(net.encode(baskets).mean)
    expected = -(torch.log_softmax(logits, 1) * torch.from_numpy(dense)).sum(1)
    torch.testing.assert_close(negative_log_likelihood(logits, baskets), expected)
