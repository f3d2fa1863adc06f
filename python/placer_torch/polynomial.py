"""Whole numbers that depend on the number of samples, as polynomials of degree two at most."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Sequence


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """c[0] + c[1] n + c[2] n^2, whole coefficients."""

    c: tuple[int, int, int]

    def at(self, n: int) -> int:
        return self.c[0] + n * (self.c[1] + n * self.c[2])

    def covers(self, other: Polynomial) -> bool:
        """Whether it is seen from the coefficients at 1 + m that at every n from 1 it is no
        less than the other."""
        a, b, c = (x - y for x, y in zip(self.c, other.c))
        return c >= 0 and b + 2 * c >= 0 and a + b + c >= 0

    def text(self, name: str) -> str:
        """As a graph file has it: `3*batch*batch + 512*batch - 4`."""
        terms = [(x, "*".join([name] * k)) for k, x in reversed(list(enumerate(self.c))) if x]
        terms.sort(key=lambda t: t[0] < 0)  # those that are added first: a text begins with no sign
        made = ""
        for x, power in terms:
            one = power if power and abs(x) == 1 else f"{abs(x)}*{power}" if power else str(abs(x))
            made += one if not made else f" {'-' if x < 0 else '+'} {one}"
        return made or "0"


def fit(points: Sequence[tuple[int, int]]) -> Polynomial | None:
    """The polynomial through all (n, value), of the least degree; None where it has fractions,
    is negative, or where as many points as it has coefficients are all that there are."""
    for degree in range(min(3, len(points) - 1)):
        c = _through(points[: degree + 1])
        if c is None:
            continue
        p = Polynomial((*c, *[0] * (2 - degree)))  # type: ignore[arg-type]
        if all(p.at(n) == y for n, y in points):
            return p
    return None


def _through(points: Sequence[tuple[int, int]]) -> list[int] | None:
    """Coefficients of the polynomial through so many points, by Newton's divided differences."""
    xs = [x for x, _ in points]
    d = [Fraction(y) for _, y in points]
    for k in range(1, len(points)):
        for i in range(len(points) - 1, k - 1, -1):
            d[i] = (d[i] - d[i - 1]) / (xs[i] - xs[i - k])
    c = [Fraction(0)] * len(points)
    for i in range(len(points) - 1, -1, -1):  # c = c (n - x) + d
        c = [(c[k - 1] if k else Fraction(0)) - xs[i] * c[k] for k in range(len(points))]
        c[0] += d[i]
    return [int(x) for x in c] if all(x.denominator == 1 for x in c) else None
