"""Training loops as people write them, none of which knows gpuwise: python loops.py FOLDER LOOP…

Each runs in a fork of its own and writes FOLDER/LOOP.json with what it computed; marks go to FOLDER/LOOP/.
"""

from __future__ import annotations

import atexit
import copy
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

STEPS = 12


def data(samples: int = 48, batch: int = 4, **options: Any) -> DataLoader[Any]:
    pictures = torch.rand(samples, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(pictures, torch.arange(samples) % 3), batch_size=batch, **options)


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 3),
    )  # fmt: skip


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any) -> float:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def plain() -> list[float]:
    """Two epochs with validation by another loader after each."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(2):
        model.train()
        losses += [train_step(model, optimizer, x, y) for x, y in data(shuffle=True)]
        model.eval()
        with torch.no_grad():
            losses += [float(nn.functional.cross_entropy(model(x), y)) for x, y in data(16)]
    return losses


class Known(Dataset[Any]):
    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        return torch.full((8,), float(index)), index % 2


class Slow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        time.sleep(0.020)
        return self.linear(x)


class SlowSgd(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        time.sleep(0.040)
        return super().step(closure)


def slow_collate(samples: list[Any]) -> Any:
    time.sleep(0.010)
    return torch.utils.data.default_collate(samples)


def known() -> dict[str, list[float]]:
    """Read 10, forward 20, optimizer 40 ms a batch, by sleeping; what they took by the program's own clock."""
    spent: dict[str, list[float]] = {"wait": [], "forward": [], "optimizer": []}
    model = Slow()
    optimizer = SlowSgd(model.parameters(), 0.1)
    batches = iter(DataLoader(Known(), batch_size=4, collate_fn=slow_collate))
    for _ in range(25):
        times = [time.perf_counter()]
        x, y = next(batches)
        times.append(time.perf_counter())
        output = model(x)
        times.append(time.perf_counter())
        nn.functional.cross_entropy(output, y).backward()
        begin = time.perf_counter()
        optimizer.step()
        spent["wait"].append(times[1] - times[0])
        spent["forward"].append(times[2] - times[1])
        spent["optimizer"].append(time.perf_counter() - begin)
        optimizer.zero_grad()
    return spent


def accumulation() -> list[float]:
    model, losses = net(), []
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for i, (x, y) in enumerate(data()):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return losses


def gan() -> list[float]:
    """Two optimizers a batch: one step."""
    critic, painter, losses = nn.Linear(4, 1), nn.Linear(2, 4), []
    first, second = torch.optim.SGD(critic.parameters(), 0.1), torch.optim.SGD(painter.parameters(), 0.1)
    for (real,) in DataLoader(TensorDataset(torch.rand(48, 4)), batch_size=4):
        first.zero_grad()
        loss = critic(painter(torch.rand(4, 2)).detach()).mean() - critic(real).mean()
        loss.backward()
        first.step()
        second.zero_grad()
        other = -critic(painter(torch.rand(4, 2))).mean()
        other.backward()
        second.step()
        losses += [loss.item(), other.item()]
    return losses


def tensors() -> list[float]:
    """No loader at all, with validation on a tensor every four steps."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.rand(40, 3, 8, 8), torch.arange(40) % 3
    for i in range(STEPS):
        rows = slice(4 * (i % 10), 4 * (i % 10) + 4)
        losses.append(train_step(model, optimizer, x[rows], y[rows]))
        if i % 4 == 3:
            model.eval()
            with torch.no_grad():
                losses.append(float(model(x).sum()))
            model.train()
    return losses


def generator() -> list[float]:
    """Batches from a generator of one's own."""

    def batches() -> Iterator[Any]:
        for _ in range(STEPS):
            yield torch.rand(5, 3, 8, 8), torch.arange(5) % 3

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return [train_step(model, optimizer, x, y) for x, y in batches()]


def kept_batches() -> list[float]:
    """The loader runs once, its batches are kept in a list."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batches = list(data())
    return [train_step(model, optimizer, x, y) for _ in range(2) for x, y in batches]


def by_hand() -> list[float]:
    """Gradient descent without an optimizer."""
    model, losses = nn.Linear(4, 1), []
    for (x,) in DataLoader(TensorDataset(torch.rand(96, 4)), batch_size=4):
        loss = model(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        losses.append(loss.item())
    return losses


def closure() -> list[float]:
    """The optimizer calls forward and backward itself."""
    model, losses = nn.Linear(4, 1), []
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for (x,) in DataLoader(TensorDataset(torch.rand(48, 4)), batch_size=4):

        def again(x: Any = x) -> Any:
            optimizer.zero_grad()
            time.sleep(0.002)
            loss = model(x).square().mean()
            loss.backward()
            return loss

        losses.append(optimizer.step(again).item())
    return losses


def teacher() -> list[float]:
    """A frozen network in evaluation mode beside the one that learns: no validation."""
    model, frozen, losses = net(), net().eval(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, _ in data():
        with torch.no_grad():
            wanted = frozen(x)
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def scaled() -> list[float]:
    """Mixed precision with a scaler."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    for x, y in data():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.linear = nn.Embedding(50, 16), nn.Linear(16, 50)

    def forward(self, input_ids: Any) -> Any:
        q = self.embedding(input_ids).unsqueeze(1)
        return self.linear(nn.functional.scaled_dot_product_attention(q, q, q).squeeze(1))


def text() -> list[float]:
    """Dictionaries of token ids, four sequences of seven, attention on the CPU."""
    model, losses = Tokens(), []
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    rows = [{"input_ids": torch.arange(7) + i} for i in range(40)]
    for batch in DataLoader(rows, batch_size=4):  # type: ignore[arg-type]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(**batch).flatten(0, 1), batch["input_ids"].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def saved() -> list[float]:
    """The whole model is saved, copied and scripted in the middle of training."""
    model, losses, file = nn.Linear(4, 1), [], io.BytesIO()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for (x,) in DataLoader(TensorDataset(torch.rand(48, 4)), batch_size=4):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(model, file)
    clone = copy.deepcopy(model)
    assert b"gpuwise" not in file.getvalue()
    assert not model._forward_hooks
    assert not clone._forward_hooks
    return losses


def recovered() -> list[float]:
    """A forward pass fails now and then, and the program goes on."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i, (x, y) in enumerate(data()):
        try:
            losses.append(train_step(model, optimizer, x[:, :2] if i in (1, 5) else x, y))
        except RuntimeError:
            losses.append(-1.0)
    return losses


class Secretive(Dataset[Any]):
    """Its length may be asked for once."""

    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        if self.asked > 1:
            raise RuntimeError("asked once too often")
        return 48

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index)), index % 2


def secretive() -> list[float]:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return [train_step(model, optimizer, x, y) for x, y in DataLoader(Secretive(), batch_size=4)]


def compiled() -> list[float]:
    """A compiled module, traced as a whole."""
    model = net()
    fast = torch.compile(model, backend="eager", fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return [train_step(fast, optimizer, x, y) for x, y in data()]


def compiled_step() -> list[float]:
    """A compiled function with a module and its loss inside."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_of = torch.compile(lambda x, y: nn.functional.cross_entropy(model(x), y), backend="eager", fullgraph=True)
    for x, y in data():
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def background() -> list[float]:
    """Another thread takes the batches from the loader."""
    import queue

    waiting: queue.Queue[Any] = queue.Queue(2)
    batches = iter(data())  # draws a random number, which two threads must not do at once

    def fill() -> None:
        for batch in batches:
            waiting.put(batch)
        waiting.put(None)

    thread = threading.Thread(target=fill)
    thread.start()
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    while (batch := waiting.get()) is not None:
        losses.append(train_step(model, optimizer, *batch))
    thread.join()
    return losses


def ahead() -> list[float]:
    """The next batch is taken before the step, as Accelerate's loader does."""

    def looked_ahead() -> Iterator[Any]:
        batches = iter(data())
        now = next(batches)
        for later in batches:
            yield now
            now = later
        yield now

    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        model.train()
        losses += [train_step(model, optimizer, x, y) for x, y in looked_ahead()]
        model.eval()
        with torch.no_grad():
            losses += [float(model(x).sum()) for x, _ in looked_ahead()]
    return losses


def inside() -> list[float]:
    """Each weight is updated by an optimizer of its own in the middle of the backward pass."""
    model = net()
    updates = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def update(p: Any) -> None:
        updates[p].step()
        updates[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    losses = []
    for x, y in data():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
    return losses


def recomputed() -> list[float]:
    """Activations are computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    first, last, losses = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1), []
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], 0.1)
    for (x,) in DataLoader(TensorDataset(torch.rand(48, 4, requires_grad=True)), batch_size=4):
        optimizer.zero_grad()
        loss = last(checkpoint(first, x, use_reentrant=True)).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    return losses


def metered() -> list[float]:
    """The program marks its steps itself: two updates are one of its steps."""
    from gpuwise.meter import Meter

    model, losses, meter = net(), [], Meter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i, (x, y) in enumerate(data()):
        losses.append(train_step(model, optimizer, x, y))
        if i % 2:
            meter.step(samples=8)
    return losses


def short() -> list[float]:
    """Many short steps."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.rand(4, 4), torch.arange(4) % 2
    return [train_step(model, optimizer, x, y) for _ in range(260)]


def files() -> int:
    """Pictures of a folder, read, decoded and augmented by two workers."""
    from PIL import Image
    from torchvision import datasets, transforms

    folder = Path(os.environ["PICTURES"])
    for i in range(16):
        (folder / str(i % 2)).mkdir(parents=True, exist_ok=True)
        Image.effect_noise((200, 160), 60 + i).convert("RGB").save(folder / str(i % 2) / f"{i}.jpg")
    steps = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    loader = DataLoader(datasets.ImageFolder(folder, steps), batch_size=4, num_workers=2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    return len([train_step(model, optimizer, x, y) for x, y in loader])


def narrowed() -> list[float]:
    """Something pins the process to one CPU before training."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return plain()


def run(loop: Callable[[], Any], folder: Path) -> None:
    """In the child of a fork."""
    torch.manual_seed(0)
    (folder / f"{loop.__name__}.json").write_text(json.dumps(loop()))


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)  # the first one imports torch._dynamo, in seconds
    for name in names:
        marks = folder / name
        marks.mkdir(exist_ok=True)
        os.environ["PICTURES"] = str(folder / "pictures")
        if "GPUWISE_MARKS" in os.environ:
            os.environ["GPUWISE_MARKS"] = str(marks)
        if not (child := os.fork()):
            run(globals()[name], folder)  # an error ends the child with its traceback
            atexit._run_exitfuncs()
            os._exit(0)  # taking torch apart would take most of a second
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{name} failed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
