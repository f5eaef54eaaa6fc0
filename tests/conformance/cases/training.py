"""In-graph training: backward(), optimizers and learning rate schedulers of PyTorch inside a converted function."""

from __future__ import annotations

import torch
from torch import nn, optim

from tests.conformance.family import BOTH, Family, vec

family = Family("In-graph training")
case = family.case


@case("backward() of a leaf made inside", *BOTH)
def leaf_inside(x):
    y = x.detach().requires_grad_()
    (y * y).sum().backward()
    return y.grad


@case("a gradient that is added to", *BOTH)
def accumulated(x):
    w = torch.ones(3, requires_grad=True)
    for factor in range(3):
        (w * x.detach() * factor).sum().backward()
    return w.grad


@case("retain_graph=True", *BOTH)
def retained(x):
    w = torch.ones(3, requires_grad=True)
    loss = (w * x.detach()).sigmoid().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return w.grad


@case("a .grad that is stored", *BOTH)
def stored(x):
    w = torch.ones(3, requires_grad=True)
    w.grad = x.detach() * 2
    (w * w).sum().backward()
    return w.grad


@case("retain_grad() of what is no leaf", *BOTH)
def not_a_leaf(x):
    w = torch.ones(3, requires_grad=True)
    h = w * x.detach()
    h.retain_grad()
    (h * h).sum().backward()
    return h.grad, w.grad


@case("backward() on one path", *BOTH)
def one_path(x):
    w = torch.ones(3, requires_grad=True)
    loss = (w * x.detach()).sum()
    if loss > 0:
        loss.backward()
    else:
        (loss * 2).backward()
    return w.grad


@case("a step of SGD", *BOTH)
def sgd(x):
    w = torch.ones(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)
    for _ in range(3):
        opt.zero_grad()
        ((w - x.detach()) ** 2).sum().backward()
        opt.step()
    return w.detach()


@case("Adam in a long loop", *BOTH)
def adam(x):
    w = torch.zeros(3, requires_grad=True)
    opt = optim.Adam([w], lr=0.1)
    for _ in range(100):
        opt.zero_grad()
        ((w - x.detach()) ** 2).sum().backward()
        opt.step()
    return w.detach()


@case("a loop until the loss is small", *BOTH, (vec(0.0, 0.0, 0.0),))
def until_small(x):
    w = torch.zeros(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.3)
    steps = 0
    loss = ((w - x.detach()) ** 2).sum()
    while loss > 0.01:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        loss = ((w - x.detach()) ** 2).sum()
    return w.detach(), steps


@case("a step that may be left out", *BOTH)
def left_out(x):
    w = torch.ones(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    loss = (w * x.detach()).sum()
    loss.backward()
    if loss > 0:
        opt.step()
    return w.detach(), w.grad


@case("a learning rate scheduler", *BOTH)
def scheduled(x):
    w = torch.ones(3, requires_grad=True)
    opt = optim.SGD([w], lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
    for _ in range(6):
        opt.zero_grad()
        ((w - x.detach()) ** 2).sum().backward()
        opt.step()
        scheduler.step()
    return w.detach(), scheduler.get_last_lr()


@case("clipped gradients", *BOTH)
def clipped(x):
    net = nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        net.weight.fill_(0.5)
    opt = optim.SGD(net.parameters(), lr=0.1)
    (net(x.detach()) ** 2).sum().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    opt.step()
    return norm, net.weight.detach()


@case("backward() a second time", *BOTH, refused="D2S213")
def second_time(x):
    w = torch.ones(3, requires_grad=True)
    loss = (w * x.detach()).sigmoid().sum()
    loss.backward()
    loss.backward()
    return w.grad


@case("a step of L-BFGS", *BOTH, refused="D2S213")
def lbfgs(x):
    w = torch.ones(3, requires_grad=True)
    opt = optim.LBFGS([w])

    def closure():
        opt.zero_grad()
        loss = ((w - x.detach()) ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    return w.detach()
