"""Networks with the shapes of Lambda's benchmark, which ran NVIDIA's DeepLearningExamples; they are never trained here.

Shapes and lengths are those that Lambda's logs print (GNMT, Transformer-XL and NCF also print their number of
parameters, which these have to the digit) and the defaults of the scripts. A recurrent layer is written as its two
products over all steps at once: the same arithmetic as cuDNN's fused layer, without a call for each step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


class Lstm(nn.Module):
    """batch × steps × features in, batch × steps × width out; the state enters a step late, which costs no product."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.data, self.state = nn.Linear(features, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        before = x[..., : self.state.in_features]
        gates = self.data(x) + self.state(before)
        opened, cell = gates.split((gates.shape[-1] * 3 // 4, gates.shape[-1] // 4), -1)
        come, kept, out = opened.sigmoid().chunk(3, -1)
        cell = cell.tanh() * come + kept
        return cell.tanh() * out


class BothWays(nn.Module):
    """One layer forwards and one backwards, side by side."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.there, self.back = Lstm(features, width), Lstm(features, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.there(x), self.back(x.flip(1)).flip(1)), -1)


class Additive(nn.Module):
    """Bahdanau attention over all steps at once: batch × queries × keys × width is written and kept."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.score, self.bias = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.scale = nn.Parameter(torch.empty(1))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        sums = self.query(query).unsqueeze(2) + self.key(keys).unsqueeze(1) + self.bias
        scores = sums.tanh() @ (self.score / self.score.norm() * self.scale)
        return scores.softmax(-1) @ keys


class Gnmt(nn.Module):
    """GNMT v2, four layers a side; embedding shared by both sides. Out: batch × steps × words."""

    def __init__(self, words: int = 31_794, width: int = 1024) -> None:
        super().__init__()
        self.words, self.answer = nn.Embedding(words, width), nn.Linear(width, words)
        self.drop = nn.Dropout(0.2)
        self.first, self.second = BothWays(width, width), Lstm(2 * width, width)
        self.encoder = nn.ModuleList(Lstm(width, width) for _ in range(2))
        self.start, self.attention = Lstm(width, width), Additive(width)
        self.decoder = nn.ModuleList(Lstm(2 * width, width) for _ in range(3))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        keys = self.second(self.drop(self.first(self.drop(self.words(source)))))
        for layer in self.encoder:
            keys = keys + layer(self.drop(keys))
        x = self.start(self.drop(self.words(target)))
        context = self.attention(x, keys)
        for index, layer in enumerate(self.decoder):
            out = layer(torch.cat((self.drop(x), context), -1))
            x = out + x if index else out
        return self.answer(x)


class Relative(nn.Module):
    """Attention with relative positions and a memory; unfused, it writes two score matrices and their sum."""

    def __init__(self, width: int, heads: int, forget: float) -> None:
        super().__init__()
        self.heads, self.forget = heads, nn.Dropout(forget)
        self.inner, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.position = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, memory: Tensor, places: Tensor, biases: nn.ParameterList) -> Tensor:
        parts = self.inner(torch.cat((memory, x), 1)).unflatten(-1, (3, self.heads, -1))
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        query = query[..., -x.shape[1] :, :]
        content = (query + biases[0].unsqueeze(1)) @ key.transpose(-1, -2)
        apart = self.position(places).unflatten(-1, (self.heads, -1)).permute(1, 2, 0)
        scores = (content + _shifted((query + biases[1].unsqueeze(1)) @ apart)) / query.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:]).triu(1 + memory.shape[1]).bool()
        chances = self.forget(scores.masked_fill_(later, -torch.inf).softmax(-1))
        return self.out((chances @ value).transpose(1, 2).flatten(-2))


def _shifted(scores: Tensor) -> Tensor:
    """Row i moved left by the number of rows that follow it: column j then is the distance to key j."""
    rows, columns = scores.shape[-2:]
    padded = functional.pad(scores, (1, 0)).view(*scores.shape[:-2], columns + 1, rows)
    return padded[..., 1:, :].reshape(scores.shape)


class Remembering(nn.Module):
    def __init__(self, width: int, heads: int, drop: float, forget: float) -> None:
        super().__init__()
        self.attention, self.drop = Relative(width, heads, forget), nn.Dropout(drop)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, memory: Tensor, places: Tensor, biases: nn.ParameterList) -> Tensor:
        x = self.first(x + self.drop(self.attention(x, memory, places, biases)))
        wide = self.drop(functional.relu(self.wide(x), inplace=True))
        return self.second(x + self.drop(self.narrow(wide)))


class TransformerXl(nn.Module):
    """On WikiText-103; the memory is as long as the sequence. Lambda ran it without the adaptive softmax, so that each
    token is scored against all 267,735 words. Out: one loss a token."""

    def __init__(self, layers: int, width: int, heads: int, drop: float, forget: float, words: int = 267_735) -> None:
        super().__init__()
        self.words, self.unlikely = nn.Embedding(words, width), nn.Parameter(torch.empty(words))
        self.drop = nn.Dropout(drop)
        self.layers = nn.ModuleList(Remembering(width, heads, drop, forget) for _ in range(layers))
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(heads, width // heads)) for _ in range(2))

    def forward(self, tokens: Tensor, memory: Tensor) -> Tensor:
        x, places = self.drop(self.words(tokens)), self.drop(_waves(2 * tokens.shape[1], memory.shape[-1]))
        for index, layer in enumerate(self.layers):
            x = layer(x, memory[index], places, self.biases)
        scores = functional.linear(self.drop(x).flatten(0, 1), self.words.weight, self.unlikely)
        return -functional.log_softmax(scores, -1).gather(1, tokens.reshape(-1, 1)).squeeze(1)


def _waves(steps: int, width: int) -> Tensor:
    """Sines and cosines of the distances, steps × width."""
    angles = torch.outer(torch.arange(steps - 1.0, -1.0, -1.0), 1e4 ** -(torch.arange(0.0, width, 2.0) / width))
    return torch.cat((angles.sin(), angles.cos()), -1)


def _narrow(wide: int, out: int, size: int = 1, dilation: int = 1) -> nn.Module:
    """A convolution over time that keeps the length, its weights normalised."""
    layer = nn.Conv1d(wide, out, size, dilation=dilation, padding=(size - 1) * dilation // 2)
    return parametrizations.weight_norm(layer)


class Wave(nn.Module):
    """One coupling of WaveGlow: eight gated layers of 512 channels whose dilation doubles, each told the spectrum."""

    def __init__(self, half: int, told: int, width: int = 512, layers: int = 8) -> None:
        super().__init__()
        self.width, self.start, self.end = width, _narrow(half, width), nn.Conv1d(width, 2 * half, 1)
        self.gates = nn.ModuleList(_narrow(width, 2 * width, 3, 2**n) for n in range(layers))
        self.told = nn.ModuleList(_narrow(told, 2 * width) for _ in range(layers))
        self.ways = nn.ModuleList(_narrow(width, width if n == layers - 1 else 2 * width) for n in range(layers))

    def forward(self, x: Tensor, spectrum: Tensor) -> Tensor:
        x, total = self.start(x), None
        for gates, told, ways in zip(self.gates, self.told, self.ways, strict=True):
            tanh, sigmoid = (gates(x) + told(spectrum)).chunk(2, 1)
            out = ways(tanh.tanh() * sigmoid.sigmoid())
            skipped = out[:, -self.width :]
            total = skipped if total is None else total + skipped
            x = out[:, : self.width] + x if out.shape[1] > self.width else x
        return self.end(total)


class WaveGlow(nn.Module):
    """Twelve flows over groups of eight samples; after each four, two of the eight leave. In: a spectrum of 80 bands
    (a frame each 256 samples, batch × bands × frames) and sound (batch × samples)."""

    def __init__(self, bands: int = 80, group: int = 8, flows: int = 12) -> None:
        super().__init__()
        self.group, self.stretch = group, nn.ConvTranspose1d(bands, bands, 1024, stride=256)
        left = [group - 2 * (n // 4) for n in range(flows)]
        self.mixes = nn.ModuleList(nn.Conv1d(n, n, 1, bias=False) for n in left)
        self.waves = nn.ModuleList(Wave(n // 2, bands * group) for n in left)

    def forward(self, spectrum: Tensor, sound: Tensor) -> list[Tensor]:
        told = self.stretch(spectrum)[..., : sound.shape[1]].unfold(2, self.group, self.group)
        told = told.transpose(1, 2).flatten(2).transpose(1, 2)
        x, out = sound.unfold(1, self.group, self.group).transpose(1, 2), []
        for index, (mix, wave) in enumerate(zip(self.mixes, self.waves, strict=True)):
            if index and index % 4 == 0:
                out.append(x[:, :2])
                x = x[:, 2:]
            x = mix(x)
            out.append(mix.weight.squeeze(-1).logdet())
            kept, changed = x.chunk(2, 1)
            shift, scale = wave(kept, told).chunk(2, 1)
            out.append(scale)
            x = torch.cat((kept, scale.exp() * changed + shift), 1)
        return [*out, x]


def _heard(wide: int, out: int, act: Callable[[], nn.Module]) -> nn.Sequential:
    """Five frames wide, over time: batch × channels × steps."""
    return nn.Sequential(nn.Conv1d(wide, out, 5, padding=2), nn.BatchNorm1d(out), act(), nn.Dropout(0.5))


class Looking(nn.Module):
    """Attention that knows where it looked before: one step of it."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.memory = nn.Linear(1024, 128, bias=False), nn.Linear(512, 128, bias=False)
        self.place, self.places = nn.Conv1d(2, 32, 31, padding=15, bias=False), nn.Linear(32, 128, bias=False)
        self.score = nn.Linear(128, 1, bias=False)

    def forward(self, state: Tensor, keys: Tensor, memory: Tensor, looked: Tensor) -> tuple[Tensor, Tensor]:
        places = self.places(self.place(looked).transpose(1, 2))
        scores = self.score((self.query(state.unsqueeze(1)) + places + keys).tanh()).squeeze(-1)
        weights = scores.softmax(1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class Tacotron2(nn.Module):
    """Characters (batch × length) and a spectrum of 80 bands (batch × frames × bands), which it learns to continue
    frame by frame in a loop."""

    def __init__(self, symbols: int = 148, bands: int = 80) -> None:
        super().__init__()
        self.symbols = nn.Embedding(symbols, 512)
        self.encoder = nn.Sequential(*(_heard(512, 512, nn.ReLU) for _ in range(3)))
        self.memory = BothWays(512, 256)
        dims = ((bands, 256), (256, 256))
        self.before = nn.Sequential(
            *(nn.Sequential(nn.Linear(a, b, bias=False), nn.ReLU(), nn.Dropout(0.5)) for a, b in dims)
        )
        self.look, self.looker, self.speaker = Looking(), nn.LSTMCell(768, 1024), nn.LSTMCell(1536, 1024)
        self.frame, self.gate, self.drop = nn.Linear(1536, bands), nn.Linear(1536, 1), nn.Dropout(0.1)
        middle = (_heard(512, 512, nn.Tanh) for _ in range(3))
        self.after = nn.Sequential(_heard(bands, 512, nn.Tanh), *middle, _heard(512, bands, nn.Identity))

    def forward(self, text: Tensor, spectrum: Tensor) -> list[Tensor]:
        memory = self.memory(self.encoder(self.symbols(text).transpose(1, 2)).transpose(1, 2))
        frames, gates = self._spoken(memory, self.before(spectrum))
        spoken = torch.stack(frames, -1)
        return [spoken, spoken + self.after(spoken), torch.cat(gates, 1)]

    def _spoken(self, memory: Tensor, before: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        keys, batch = self.look.memory(memory), memory.shape[0]
        first = second = (memory.new_zeros(batch, 1024), memory.new_zeros(batch, 1024))
        context, weights = memory.new_zeros(batch, 512), memory.new_zeros(batch, memory.shape[1])
        summed, frames, gates = weights, [], []
        for frame in before.unbind(1):
            first = self._dropped(self.looker(torch.cat((frame, context), -1), first))
            context, weights = self.look(first[0], keys, memory, torch.stack((weights, summed), 1))
            summed = summed + weights
            second = self._dropped(self.speaker(torch.cat((first[0], context), -1), second))
            both = torch.cat((second[0], context), 1)
            frames.append(self.frame(both))
            gates.append(self.gate(both))
        return frames, gates

    def _dropped(self, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return self.drop(state[0]), state[1]


class NeuMf(nn.Module):
    """NCF on MovieLens-20M: factors of 64 beside layers of 256, 256, 128 and 64. Out: one score a pair."""

    def __init__(self, users: int = 138_493, items: int = 26_744) -> None:
        super().__init__()
        self.factors = nn.ModuleList(nn.Embedding(n, 64) for n in (users, items))
        self.inputs = nn.ModuleList(nn.Embedding(n, 128) for n in (users, items))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in ((256, 256), (256, 128), (128, 64)))
        self.drop, self.score = nn.Dropout(0.5), nn.Linear(128, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        factors = self.factors[0](user) * self.factors[1](item)
        x = torch.cat((self.inputs[0](user), self.inputs[1](item)), 1)
        for layer in self.layers:
            x = self.drop(layer(x).relu())
        return self.score(torch.cat((factors, x), 1)).squeeze(1)
