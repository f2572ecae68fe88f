"""Eight small programs as people write them in PyTorch; `run(torch)` takes the library by the name that it has there.

Each gives numbers that say whether it has learned. The same text runs with PyTorch itself (`tests/peers`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def linear_regression(torch: Any, folder: str) -> Any:
    """A line through points: parameters, a loop, `no_grad`, gradients set to zero by hand."""
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 50).unsqueeze(1)
    y = 3 * x + 0.5
    w = torch.randn(1, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    for _ in range(40):
        loss = ((x.mm(w) + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.3 * w.grad
            b -= 0.3 * b.grad
            w.grad.zero_()
            b.grad.zero_()
    return round(w.item(), 2), round(b.item(), 2)


def classifier(torch: Any, folder: str) -> Any:
    """A perceptron on batches of a loader, with accuracy by `max`."""
    nn = torch.nn
    torch.manual_seed(0)
    x = torch.randn(200, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=50, shuffle=True, num_workers=0
    )
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(inplace=True), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = nn.CrossEntropyLoss()
    for _ in range(25):
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        _, predicted = torch.max(model(x), 1)
    return (predicted == y).float().mean().item() > 0.9


def convolutional(torch: Any, folder: str) -> Any:
    """A small net on images: `view`, `F.max_pool2d`, a class with layers."""
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.out = nn.Linear(4 * 4 * 4, 2)

        def forward(self, x: Any) -> Any:
            x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
            x = x.view(x.size(0), -1)
            return F.log_softmax(self.out(x), dim=1)

    torch.manual_seed(0)
    images = torch.zeros(32, 1, 8, 8)
    labels = torch.arange(32) % 2
    images[labels == 0, 0, 2, :] = 1.0
    images[labels == 1, 0, :, 2] = 1.0
    model = Net().to(torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(15):
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
    correct = model(images).argmax(dim=1, keepdim=True).eq(labels.view(-1, 1)).sum().item()
    return correct == 32, float(loss) < 0.3


def characters(torch: Any, folder: str) -> Any:
    """A model of letters: embedding, LSTM, logits flattened for the loss, a hidden state that is detached."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    text = "hello hello hello hello hello "
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(c) for c in text], dtype=torch.long)

    class Letters(nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.embed = nn.Embedding(count, 8)
            self.rnn = nn.LSTM(8, 16, batch_first=True)
            self.head = nn.Linear(16, count)

        def forward(self, x: Any, state: Any = None) -> Any:
            out, state = self.rnn(self.embed(x), state)
            return self.head(out), state

    model = Letters(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.06)
    inputs, targets = codes[:-1].unsqueeze(0), codes[1:].unsqueeze(0)
    for _ in range(15):
        logits, (h, c) = model(inputs)
        loss = F.cross_entropy(logits.reshape(-1, len(letters)), targets.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
    h, c = h.detach(), c.detach()
    return loss.item() < 1.2, tuple(h.shape), c.requires_grad


def autoencoder(torch: Any, folder: str) -> Any:
    """An encoder and a decoder that share a loss; `torch.randn_like`, `expand_as`, weights by `apply`."""
    nn = torch.nn
    torch.manual_seed(0)

    def start(module: Any) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    encoder = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    decoder = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))
    model = nn.ModuleDict({"encoder": encoder, "decoder": decoder})
    model.apply(start)
    hidden = torch.randn(64, 2)
    data = torch.tanh(hidden @ torch.randn(2, 6))
    data = (data - data.mean(0, keepdim=True).expand_as(data)).detach()
    noisy = data + 0.01 * torch.randn_like(data)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.0)
    first = None
    for _ in range(60):
        loss = nn.functional.mse_loss(model["decoder"](model["encoder"](noisy)), data)
        first = loss.item() if first is None else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item() < 0.3 * first


def own_function(torch: Any, folder: str) -> Any:
    """A function with a derivative of its own, checked against differences."""

    class ClippedExp(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any, limit: float) -> Any:
            result = x.exp().clamp(max=limit)
            ctx.save_for_backward(x, result)
            ctx.limit = limit
            return result

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            _, result = ctx.saved_tensors
            return slope * result * (result < ctx.limit).to(result.dtype), None

    x = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    ClippedExp.apply(x, 10.0).sum().backward()
    good = torch.autograd.gradcheck(lambda t: ClippedExp.apply(t, 10.0), (x,))
    (again,) = torch.autograd.grad(ClippedExp.apply(x, 10.0).sum(), x)
    return [round(g, 4) for g in x.grad.tolist()], bool(good), torch.equal(again, x.grad) is not False


def own_module(torch: Any, folder: str) -> Any:
    """A module with parameters and buffers of its own, in a list of modules."""
    nn = torch.nn

    class Scaled(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x * self.weight

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Scaled(3) for _ in range(2)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        ((net(torch.ones(2, 3)) - 2) ** 2).mean().backward()
        optimizer.step()
    names = [name for name, _ in net.named_parameters()]
    return names, sorted(net.state_dict()), net.layers[0].calls.item(), bool((net.layers[0].weight > 1.1).all())


def transfer(torch: Any, folder: str) -> Any:
    """A frozen part, a scheduler, clipping, and a checkpoint that training goes on from."""
    nn = torch.nn
    torch.manual_seed(0)

    def build() -> Any:
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    model = build()
    for p in model[0].parameters():
        p.requires_grad = False
    before = model[0].weight.clone()
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_value_(model[2].parameters(), 0.5)
        optimizer.step()
        scheduler.step()
    path = folder + "/transfer.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}, path)
    saved = torch.load(path, map_location="cpu")
    other = build()
    other.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    same = torch.allclose(other(x), model(x))
    unchanged = bool((before == model[0].weight).all())
    return bool(same), unchanged, saved["epoch"], optimizer.param_groups[0]["lr"]


PROGRAMS: dict[str, tuple[Callable[[Any, str], Any], Any]] = {  # and what they give
    "linear regression": (linear_regression, (3.0, 0.5)),
    "classifier": (classifier, True),
    "convolutional": (convolutional, (True, True)),
    "characters": (characters, (True, (1, 1, 16), False)),
    "autoencoder": (autoencoder, True),
    "own function": (own_function, ([1.0, 2.7183, 0.0], True, True)),
    "own module": (
        own_module,
        (["layers.0.weight", "layers.1.weight"],
         ["layers.0.calls", "layers.0.weight", "layers.1.calls", "layers.1.weight"], 3.0, True),
    ),
    "transfer": (transfer, (True, True, 4, 0.025)),
}  # fmt: skip
